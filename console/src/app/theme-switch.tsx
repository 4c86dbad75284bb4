/** The choice of the theme: as the system, light or dark. */

import type { JSX } from "solid-js";
import { chooseTheme, themeChoice, type ThemeChoice } from "../ui/theme";

const NEXT: Record<ThemeChoice, ThemeChoice> = { system: "light", light: "dark", dark: "system" };
const SIGNS: Record<ThemeChoice, string> = { system: "◐", light: "☀", dark: "☾" };

export function ThemeSwitch(): JSX.Element {
  const label = (): string => `Theme: ${themeChoice() === "system" ? "as the system" : themeChoice()}`;
  return (
    <button type="button" class="quiet theme-switch" aria-label={label()} title={label()} onClick={() => chooseTheme(NEXT[themeChoice()])}>
      {SIGNS[themeChoice()]}
    </button>
  );
}
