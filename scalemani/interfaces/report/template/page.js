"use strict";
// Light or dark: the system's choice until the button is pressed.
const themeButton = document.getElementById("theme");
themeButton.hidden = false;
themeButton.addEventListener("click", () => {
  const root = document.documentElement;
  const dark = (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  root.dataset.theme = dark ? "light" : "dark";
  document.dispatchEvent(new Event("themechange"));
});
