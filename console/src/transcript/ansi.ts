/**
 * Terminal output as pieces of text with classes.
 *
 * Colors and styles (SGR) are kept; all other sequences, among them titles and links (OSC), are dropped. A line that a
 * carriage return writes again is shown as it ends. There is no HTML: components set the pieces as text.
 */

import { visibleLines } from "../ui/visible-text";
import type { TextPiece } from "./text-pieces";

const SEQUENCE =
  // CSI; OSC, DCS, APC, PM and SOS up to their end; a character set; any other escape.
  /\u001b\[([0-?]*)[ -/]*([@-~])|\u001b[\]PX^_][^\u0007\u001b]*(?:\u0007|\u001b\\)?|\u001b[()*+].|\u001b.?/g;

const NAMES = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];

interface Style {
  bold: boolean;
  faint: boolean;
  italic: boolean;
  underline: boolean;
  inverse: boolean;
  foreground: string;
  background: string;
}

const PLAIN: Style = { bold: false, faint: false, italic: false, underline: false, inverse: false, foreground: "", background: "" };

export function parseTerminalOutput(output: string): TextPiece[] {
  const text = overwriteLines(output);
  const pieces: TextPiece[] = [];
  let style = PLAIN;
  let position = 0;
  const add = (end: number): void => {
    const shown = visibleLines(text.slice(position, end));
    if (shown === "") return;
    const classes = classNames(style);
    const last = pieces.at(-1);
    if (last?.classes === classes) last.text += shown;
    else pieces.push({ text: shown, classes });
  };
  for (const match of text.matchAll(SEQUENCE)) {
    add(match.index);
    position = match.index + match[0].length;
    if (match[2] === "m") style = applyCodes(style, match[1] ?? "");
  }
  add(text.length);
  return pieces;
}

/** What is left of lines that carriage returns write again, such as progress bars. */
function overwriteLines(text: string): string {
  if (!text.includes("\r")) return text;
  const lines = text.replaceAll("\r\n", "\n").split("\n");
  return lines.map((it) => it.replace(/\r+$/, "").split("\r").at(-1) ?? "").join("\n");
}

function applyCodes(style: Style, parameters: string): Style {
  const codes = parameters.split(/[;:]/).map((it) => Number(it || "0"));
  let next = { ...style };
  for (let index = 0; index < codes.length; index += 1) {
    const code = codes[index] as number;
    if (code === 38 || code === 48) {
      const isPalette = codes[index + 1] === 5;
      const color = isPalette ? paletteColor(codes[index + 2] ?? 0) : nearestColor(codes.slice(index + 2, index + 5));
      if (code === 38) next.foreground = color;
      else next.background = color;
      index += isPalette ? 2 : 4;
    } else {
      next = applyCode(next, code);
    }
  }
  return next;
}

function applyCode(style: Style, code: number): Style {
  const color = (offset: number): string => NAMES[code - offset] ?? "";
  if (code >= 30 && code <= 37) return { ...style, foreground: color(30) };
  if (code >= 40 && code <= 47) return { ...style, background: color(40) };
  if (code >= 90 && code <= 97) return { ...style, foreground: `bright-${color(90)}` };
  if (code >= 100 && code <= 107) return { ...style, background: `bright-${color(100)}` };
  switch (code) {
    case 0:
      return PLAIN;
    case 1:
      return { ...style, bold: true };
    case 2:
      return { ...style, faint: true };
    case 3:
      return { ...style, italic: true };
    case 4:
      return { ...style, underline: true };
    case 7:
      return { ...style, inverse: true };
    case 22:
      return { ...style, bold: false, faint: false };
    case 23:
      return { ...style, italic: false };
    case 24:
      return { ...style, underline: false };
    case 27:
      return { ...style, inverse: false };
    case 39:
      return { ...style, foreground: "" };
    case 49:
      return { ...style, background: "" };
    default:
      return style;
  }
}

function paletteColor(index: number): string {
  if (index < 8) return NAMES[index] ?? "";
  if (index < 16) return `bright-${NAMES[index - 8]}`;
  if (index >= 232) return index < 244 ? "bright-black" : "white";
  const level = (it: number): number => Math.round((it / 5) * 255);
  const cube = index - 16;
  return nearestColor([level(Math.floor(cube / 36)), level(Math.floor(cube / 6) % 6), level(cube % 6)]);
}

/** One of the named colors, which both themes define readably. */
function nearestColor([red = 0, green = 0, blue = 0]: number[]): string {
  const high = Math.max(red, green, blue);
  if (high < 64) return "black";
  const bits = [red, green, blue].map((it) => (it > high * 0.6 ? 1 : 0));
  const name = NAMES[(bits[0] ?? 0) + 2 * (bits[1] ?? 0) + 4 * (bits[2] ?? 0)] ?? "white";
  return high > 200 ? `bright-${name}` : name;
}

function classNames(style: Style): string {
  const flags = (["bold", "faint", "italic", "underline", "inverse"] as const).filter((it) => style[it]).map((it) => `ansi-${it}`);
  const colors = [style.foreground && `ansi-${style.foreground}`, style.background && `ansi-on-${style.background}`];
  return [...flags, ...colors].filter((it) => it !== "").join(" ");
}
