/** Pictures of every page: desktop and phone, light and dark. `CONSOLE_SCREENSHOTS` names the folder. */

import { after, before, test } from "node:test";
import { Browser, takeScreenshot } from "./support/browser.mjs";
import { Daemon } from "./support/daemon.mjs";
import { openDemoSessions } from "./support/demo.mjs";
import { ScriptedModel } from "./support/model.mjs";

/** @type {Daemon} */
let daemon;
/** @type {Browser} */
let browser;
/** @type {ScriptedModel} */
let model;
/** @type {Awaited<ReturnType<typeof openDemoSessions>>} */
let sessions;
before(async () => {
  model = await ScriptedModel.start();
  const binary = JSON.stringify(process.env["JACKFIELD_BINARY"]);
  const env = `{ OPENAI_BASE_URL = "${model.url}", OPENAI_MODEL = "demo-large", OPENAI_API_KEY = "none" }`;
  const config = `[agents.assistant]\ncommand = [${binary}, "agent"]\nenv = ${env}\n`;
  [daemon, browser] = await Promise.all([Daemon.start({ config }), Browser.start()]);
  sessions = await openDemoSessions(daemon, model);
});
after(async () => {
  await browser.close();
  await daemon.end();
  await model.close();
});

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
