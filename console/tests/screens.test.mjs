/** Pictures of every page: desktop and phone, light and dark. `CONSOLE_SCREENSHOTS` names the folder. */

import { test } from "node:test";
import { takeScreenshot } from "./support/browser.mjs";
import { home } from "./support/daemon.mjs";
import { startDemo } from "./support/start.mjs";

const { daemon, browser, sessions } = await startDemo();
const { events } = await daemon.api("GET", `/api/sessions/${sessions.finished}/log?limit=1000`);
/** The event of the tool call that changes a file. @type {number} */
const edited = events.find((/** @type {any} */ it) => it.frame?.params?.update?.kind === "edit")?.seq;

/** Shows the temporary home of the test as `~`. @param {import("playwright-core").Page} page */
const shortenPaths = (page) =>
  page.evaluate((path) => {
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      const node = /** @type {Text} */ (texts.currentNode);
      if (node.data.includes(path)) node.data = node.data.replaceAll(path, "~");
    }
  }, home);

for (const theme of /** @type {const} */ (["light", "dark"])) {
  for (const phone of [false, true]) {
    const suffix = `${phone ? "phone" : "desktop"}-${theme}`;
    test(`pages, ${suffix}`, async () => {
      const page = await browser.signIn(daemon, { theme, phone });
      /** @param {string} path @param {string} name @param {string} ready */
      const show = async (path, name, ready) => {
        await page.goto(`${daemon.url}/console/${path}`);
        await page.locator(ready).first().waitFor();
        // Highlighted code and measured heights follow the first paint.
        await page.waitForTimeout(500);
        await shortenPaths(page);
        await takeScreenshot(page, `${name}-${suffix}`);
      };
      await show("", "list", "[data-session-row]");
      await show(`sessions/${sessions.finished}`, "session", "[data-transcript-item]");
      await show(`sessions/${sessions.finished}?event=${edited}`, "diff", ".diff-table");
      await show(`sessions/${sessions.waiting}`, "request", "[data-ask]");
      await show("inbox", "inbox", "[data-ask]");
      await show(`sessions/${sessions.finished}/changes`, "changes", "main .file-head");
      await show(`sessions/${sessions.finished}/changes?file=src/parser.rs`, "file", "main .diff-table");
      await show(`sessions/${sessions.finished}/timeline`, "timeline", "main .span-bar");
      await show("usage", "usage", "main table");
      await show("agents", "agents", "main .agent");
      await show("devices", "devices", "main .device");
      browser.assertNoProblems();
      await page.context().close();
    });
  }
}
