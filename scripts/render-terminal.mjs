#!/usr/bin/env node
/**
 * Renders a screen that `tmux capture-pane -p -e` wrote as an HTML page, for pictures of the terminal interface.
 * Usage: scripts/render-terminal.mjs screen.ansi > screen.html
 *        chromium --headless --screenshot=screen.png --window-size=WIDTH,HEIGHT screen.html
 */

import { readFileSync } from "node:fs";

const BASE = ["#1d1f27", "#e0616b", "#8cc26f", "#e3b85b", "#6fa8f0", "#c08be8", "#5fc3c9", "#d5d8e0"];
const BRIGHT = ["#6b7080", "#ff8087", "#a8dd8a", "#ffd47d", "#93c1ff", "#d8abff", "#84dfe4", "#ffffff"];
const BACKGROUND = "#14161c";
const FOREGROUND = "#d5d8e0";

/** The color with this number of the palette of 256. @param {number} index */
function indexedColor(index) {
  if (index < 8) return BASE[index];
  if (index < 16) return BRIGHT[index - 8];
  if (index >= 232) {
    const gray = 8 + (index - 232) * 10;
    return `rgb(${gray},${gray},${gray})`;
  }
  const level = (/** @type {number} */ step) => (step === 0 ? 0 : 55 + step * 40);
  const cube = index - 16;
  return `rgb(${level(Math.floor(cube / 36))},${level(Math.floor(cube / 6) % 6)},${level(cube % 6)})`;
}

const PLAIN = { color: "", background: "", bold: false, dim: false, italic: false, underline: false, reverse: false };

/** Applies the parameters of an SGR sequence. @param {typeof PLAIN} style @param {number[]} codes */
function applyCodes(style, codes) {
  let next = { ...style };
  for (let at = 0; at < codes.length; at += 1) {
    const code = codes[at];
    if (code === 0) next = { ...PLAIN };
    else if (code === 1) next.bold = true;
    else if (code === 2) next.dim = true;
    else if (code === 3) next.italic = true;
    else if (code === 4) next.underline = true;
    else if (code === 7) next.reverse = true;
    else if (code === 22) next.bold = next.dim = false;
    else if (code === 23) next.italic = false;
    else if (code === 24) next.underline = false;
    else if (code === 27) next.reverse = false;
    else if (code >= 30 && code <= 37) next.color = BASE[code - 30];
    else if (code >= 90 && code <= 97) next.color = BRIGHT[code - 90];
    else if (code >= 40 && code <= 47) next.background = BASE[code - 40];
    else if (code >= 100 && code <= 107) next.background = BRIGHT[code - 100];
    else if (code === 39) next.color = "";
    else if (code === 49) next.background = "";
    else if (code === 38 || code === 48) {
      const isIndexed = codes[at + 1] === 5;
      const color = isIndexed ? indexedColor(codes[at + 2]) : `rgb(${codes.slice(at + 2, at + 5).join(",")})`;
      if (code === 38) next.color = color;
      else next.background = color;
      at += isIndexed ? 2 : 4;
    }
  }
  return next;
}

/** @param {string} text @param {typeof PLAIN} style */
function renderSpan(text, style) {
  const colors = [style.color || FOREGROUND, style.background || BACKGROUND];
  const [color, background] = style.reverse ? colors.reverse() : colors;
  const css = [`color:${color}`];
  if (background !== BACKGROUND) css.push(`background:${background}`);
  if (style.bold) css.push("font-weight:bold");
  if (style.dim) css.push("opacity:.6");
  if (style.italic) css.push("font-style:italic");
  if (style.underline) css.push("text-decoration:underline");
  const escaped = text.replace(/[&<>]/g, (it) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[it] ?? it);
  return `<span style="${css.join(";")}">${escaped}</span>`;
}

/** @param {string} screen */
function renderScreen(screen) {
  let style = PLAIN;
  let html = "";
  for (const part of screen.split(/(\u001b\[[0-9;]*m)/)) {
    const sequence = /^\u001b\[([0-9;]*)m$/.exec(part);
    if (sequence) style = applyCodes(style, sequence[1].split(";").map(Number));
    else if (part) html += renderSpan(part, style);
  }
  return html;
}

const screen = readFileSync(process.argv[2], "utf8").trimEnd();
process.stdout.write(`<!doctype html><meta charset="utf-8"><title>terminal</title>
<style>body{margin:0;background:${BACKGROUND}}pre{margin:12px;font:15px/18px "DejaVu Sans Mono",monospace}</style>
<pre>${renderScreen(screen)}</pre>
`);
