/** Pictures of every page: desktop and phone, light and dark. `CONSOLE_SCREENSHOTS` names the folder. */

import { test } from "node:test";
import { takeScreenshot } from "./support/browser.mjs";
import { startDemo } from "./support/start.mjs";

const { daemon, browser, sessions } = await startDemo();

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
        await takeScreenshot(page, `${name}-${suffix}`);
      };
      await show("", "list", "[data-session-row]");
      await show(`sessions/${sessions.finished}`, "session", "[data-transcript-item]");
      await show(`sessions/${sessions.waiting}`, "request", "[data-ask]");
      await show("inbox", "inbox", "[data-ask]");
      await show(`sessions/${sessions.finished}/changes`, "changes", "main h2, main table, main li");
      await show(`sessions/${sessions.finished}/timeline`, "timeline", "main h2, main table, main li");
      await show("usage", "usage", "main table");
      await show("agents", "agents", "main li, main table, main article");
      await show("devices", "devices", "main li, main table");
      browser.assertNoProblems();
      await page.context().close();
    });
  }
}
