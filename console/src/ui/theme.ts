/** The theme: light, dark, or as the system. */

import { createSignal } from "solid-js";

export type ThemeChoice = "system" | "light" | "dark";

const KEY = "theme";
const dark = matchMedia("(prefers-color-scheme: dark)");
const stored = localStorage.getItem(KEY);
const [themeChoice, setChoice] = createSignal<ThemeChoice>(stored === "light" || stored === "dark" ? stored : "system");

export { themeChoice };

/** Applies the chosen theme, and follows the system when it changes. Called once at the start. */
export function applyTheme(): void {
  const apply = (): void => {
    const isDark = themeChoice() === "dark" || (themeChoice() === "system" && dark.matches);
    document.documentElement.dataset["theme"] = isDark ? "dark" : "light";
  };
  apply();
  dark.addEventListener("change", apply);
}

export function chooseTheme(choice: ThemeChoice): void {
  setChoice(choice);
  if (choice === "system") localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, choice);
  const isDark = choice === "dark" || (choice === "system" && dark.matches);
  document.documentElement.dataset["theme"] = isDark ? "dark" : "light";
}
