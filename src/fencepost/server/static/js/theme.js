// Applies the user's theme before the page is drawn; without one, the system's theme applies.
(() => {
  const theme = localStorage.getItem("fencepost.theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
})();
