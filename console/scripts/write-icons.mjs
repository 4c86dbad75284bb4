/** Draws the icons of the installed console from `public/icon.svg`: `node scripts/write-icons.mjs`, with Chromium. */

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const folder = fileURLToPath(new URL("../public/", import.meta.url));
const svg = readFileSync(`${folder}icon.svg`, "utf8");
/** A maskable icon fills its square, and its picture stays inside the middle 80 percent. */
const maskable = svg.replace('viewBox="0 0 32 32"', 'viewBox="-4 -4 40 40"').replace(/<rect[^>]*\/>/, '<rect x="-4" y="-4" width="40" height="40" fill="#2f6feb"/>');

const browser = await chromium.launch({ executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
for (const [name, size, picture] of /** @type {const} */ ([
  ["icon-180", 180, maskable],
  ["icon-192", 192, svg],
  ["icon-512", 512, svg],
  ["icon-maskable-512", 512, maskable],
])) {
  const page = await browser.newPage({ viewport: { width: size, height: size } });
  await page.setContent(`<style>body { margin: 0 } svg { display: block; width: 100vw; height: 100vh }</style>${picture}`);
  await page.screenshot({ path: `${folder}${name}.png`, omitBackground: true });
  await page.close();
}
await browser.close();
