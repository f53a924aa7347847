"""HTTP and WebSockets: routes, requests, answers, descriptions."""
