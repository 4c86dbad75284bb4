/**
 * A real browser for the tests: Debian's Chromium, driven by playwright-core.
 *
 * A page fails its test if a script throws, the console reports an error, or the content security policy is violated.
 */

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { home } from "./daemon.mjs";
import { WAIT_MS } from "./wait.mjs";

const ARGUMENTS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** The screenshots of a run; kept where `CONSOLE_SCREENSHOTS` says. */
const pictures = process.env["CONSOLE_SCREENSHOTS"] ?? join(home, "screenshots");

/** @typedef {import("playwright-core").Page} Page */
/** @typedef {{ theme?: "light" | "dark", phone?: boolean, allowErrors?: boolean }} ContextOptions */

export class Browser {
  /** @type {import("playwright-core").Browser} */
  #browser;
  /** @type {string[]} */
  problems = [];

  /** @param {import("playwright-core").Browser} browser */
  constructor(browser) {
    this.#browser = browser;
  }

  static async start() {
    const executablePath = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
    return new Browser(await chromium.launch({ executablePath, args: ARGUMENTS, headless: true }));
  }

  async close() {
    await this.#browser.close();
  }

  /** A browser profile of its own: cookies, storage, shared worker. @param {ContextOptions} [options] */
  async newContext({ theme = "light", phone = false } = {}) {
    const viewport = phone ? { width: 390, height: 844 } : { width: 1280, height: 800 };
    const context = await this.#browser.newContext({
      viewport,
      colorScheme: theme,
      hasTouch: phone,
      isMobile: phone,
      reducedMotion: "reduce",
    });
    context.setDefaultTimeout(WAIT_MS);
    return context;
  }

  /**
   * A page in a new profile that has signed in.
   * @param {import("./daemon.mjs").Daemon} daemon
   * @param {ContextOptions} [options]
   */
  async signIn(daemon, options = {}) {
    const page = await (await this.newContext(options)).newPage();
    this.watch(page, options);
    await page.goto(await daemon.loginUrl());
    await page.waitForURL(/\/console\/?$/);
    return page;
  }

  /** Records errors of a page. @param {Page} page @param {ContextOptions} [options] */
  watch(page, { allowErrors = false } = {}) {
    page.on("pageerror", (error) => this.problems.push(`error in ${page.url()}: ${error.stack ?? error.message}`));
    page.on("console", (message) => {
      const text = message.text();
      const isViolation = /Content Security Policy|Trusted/.test(text);
      // A request that fails while the daemon is away is reported by the browser itself.
      const isNetwork = /Failed to load resource|net::ERR_/.test(text);
      if (isViolation || (message.type() === "error" && !isNetwork && !allowErrors)) {
        this.problems.push(`console in ${page.url()}: ${text}`);
      }
    });
  }

  /** Throws if any page had a problem. */
  assertNoProblems() {
    const problems = this.problems.splice(0);
    if (problems.length > 0) throw new Error(problems.join("\n"));
  }
}

/** Stores a picture of a page under this name. @param {Page} page @param {string} name */
export async function takeScreenshot(page, name) {
  mkdirSync(pictures, { recursive: true });
  await page.screenshot({ path: join(pictures, `${name}.png`) });
}
