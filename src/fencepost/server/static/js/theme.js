// Before anything is drawn: the theme that was chosen, else that of the system.
(() => {
  const chosen = localStorage.getItem("fencepost.theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
