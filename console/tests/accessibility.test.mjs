/** Every page in both themes, on a desktop and on a phone: no violation of the rules of axe-core. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";
import { startDemo } from "./support/start.mjs";

/** @typedef {import("playwright-core").Page} Page */

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const { daemon, browser, sessions } = await startDemo();
/** A session that waits for an answer. */
const asking = await daemon.openSession("ask");
await daemon.waitForState(asking, "asks");

/** @param {Page} page @param {string} where */
async function assertAccessible(page, where) {
  // The script of axe is no script of the page: it runs in the world of the test, outside of the content security policy.
  await page.evaluate(`${axe}; 0`);
  const found = await page.evaluate(async () => {
    const { violations } = await /** @type {any} */ (globalThis).axe.run();
    return violations.flatMap((/** @type {any} */ it) =>
      it.nodes.map((/** @type {any} */ node) => `${it.id}: ${node.target.join(" ")} ${node.failureSummary.split("\n")[1]?.trim()}`),
    );
  });
  assert.deepEqual(found, [], where);
}

/** The paths of all pages, and what shows that each is complete. */
const allPages = () =>
  /** @type {[string, string][]} */ ([
    ["", "[data-session-row]"],
    ["inbox", "[data-ask]"],
    [`sessions/${sessions.finished}`, "[data-transcript-item]"],
    [`sessions/${asking}`, "[data-ask]"],
    [`sessions/${sessions.finished}/changes`, "main .file-head"],
    [`sessions/${sessions.finished}/timeline`, "main .span-bar"],
    ["usage", "main table"],
    ["agents", "main .agent"],
    ["devices", "main .device"],
    ["fleet", "main h1"],
    ["login", "main form"],
  ]);

for (const theme of /** @type {const} */ (["light", "dark"])) {
  for (const phone of [false, true]) {
    test(`all pages, ${theme}, ${phone ? "phone" : "desktop"}`, async () => {
      const page = await browser.signIn(daemon, { theme, phone });
      for (const [path, ready] of allPages()) {
        await page.goto(`${daemon.url}/console/${path}`);
        await page.locator(ready).first().waitFor();
        for (const it of await page.locator("main .file-head").all()) await it.click();
        await assertAccessible(page, path);
        const isWide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
        assert.equal(isWide, false, `${path} is wider than the window`);
        if (phone) await assertLargeTargets(page, path);
      }
      browser.assertNoProblems();
      await page.context().close();
    });
  }
}

/** Buttons and fields are at least 44 pixels high on a phone; links inside of text are as high as the text. @param {Page} page @param {string} where */
async function assertLargeTargets(page, where) {
  const small = await page.evaluate(() => {
    const targets = [...document.querySelectorAll("main button, main select, main input, nav[aria-label=Pages] a")];
    const isHidden = (/** @type {Element} */ it) => it.matches(".visually-hidden, [type=checkbox], [type=radio], [type=file]") || it.clientHeight === 0;
    return targets.filter((it) => !isHidden(it) && it.getBoundingClientRect().height < 43.5).map((it) => it.outerHTML.slice(0, 120));
  });
  assert.deepEqual(small, [], where);
}

test("tables, forms and dialogs that are shown on request", async () => {
  const page = await browser.signIn(daemon);
  await page.goto(`${daemon.url}/console/sessions/${sessions.finished}/timeline`);
  await page.getByRole("button", { name: "Show as tables" }).click();
  await page.locator("main table").first().waitFor();
  await assertAccessible(page, "timeline as tables");
  await page.goto(`${daemon.url}/console/devices`);
  await page.getByRole("button", { name: /^Rename/ }).first().click();
  await assertAccessible(page, "renaming a device");
  await browser.signIn(daemon, { phone: true });
  await page.reload();
  await page.getByRole("button", { name: /^Revoke/ }).first().click();
  await page.getByRole("dialog").waitFor();
  await assertAccessible(page, "revoking a device");
  await page.keyboard.press("Escape");
  assert.equal(await page.getByRole("dialog").count(), 0);
  browser.assertNoProblems();
});
