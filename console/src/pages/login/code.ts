/** The one-time code of a login link, and the name that is suggested for this browser. */

/** The code of a link (`…/console/login#code=…`) or of a pasted code; empty if the text has none. */
export function parseCode(text: string): string {
  const trimmed = text.trim();
  const fragment = trimmed.includes("#") ? trimmed.slice(trimmed.indexOf("#") + 1) : "";
  const code = new URLSearchParams(fragment).get("code") ?? trimmed;
  return /^[\w-]{4,256}$/.test(code) ? code : "";
}

/** Returns the code of the address of this page, and removes it from the address and the history. */
export function takeCodeFromAddress(): string {
  if (!location.hash.startsWith("#code=")) return "";
  const code = parseCode(location.hash);
  history.replaceState(history.state, "", location.pathname + location.search);
  return code;
}

const BROWSERS: [RegExp, string][] = [
  [/\bEdg(e|A|iOS)?\//, "Edge"],
  [/\b(OPR|Opera)\//, "Opera"],
  [/\bFxiOS\/|\bFirefox\//, "Firefox"],
  [/\bCriOS\/|\bHeadlessChrome\/|\bChrome\/|\bChromium\//, "Chrome"],
  [/\bSafari\//, "Safari"],
];
const SYSTEMS: [RegExp, string][] = [
  [/\biPhone\b/, "iPhone"],
  [/\biPad\b/, "iPad"],
  [/\bAndroid\b/, "Android"],
  [/\bCrOS\b/, "ChromeOS"],
  [/\bMac OS X\b/, "macOS"],
  [/\bWindows\b/, "Windows"],
  [/\bLinux\b/, "Linux"],
];

/** A name such as `Firefox on Linux`, from what the browser says about itself. */
export function suggestDeviceName(userAgent: string): string {
  const find = (table: [RegExp, string][]) => table.find(([pattern]) => pattern.test(userAgent))?.[1];
  const [browser, system] = [find(BROWSERS) ?? "Browser", find(SYSTEMS)];
  return system === undefined ? browser : `${browser} on ${system}`;
}
