/** Hostile texts of agents in every place: nothing runs, nothing is loaded, the layout holds. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { workspace } from "./support/daemon.mjs";
import { startDaemonAndBrowser } from "./support/start.mjs";
import { waitFor } from "./support/wait.mjs";

/** @typedef {import("playwright-core").Page} Page */

const agent = fileURLToPath(new URL("support/hostile-agent.mjs", import.meta.url));
const config = `[agents.hostile]\ncommand = ${JSON.stringify([process.execPath, agent])}\n`;
const { daemon, browser } = await startDaemonAndBrowser({ config });

/** Starts the agent with this prompt. @param {string} message */
async function openHostileSession(message) {
  const { sessionId } = await daemon.api("POST", "/api/runs", { agentId: "hostile", cwd: workspace, message });
  return /** @type {string} */ (sessionId);
}

/**
 * A signed-in page that records what must not happen.
 * @param {{ phone?: boolean }} [options]
 */
async function openWatchedPage(options = {}) {
  const page = await browser.signIn(daemon, options);
  /** @type {string[]} */
  const attacks = [];
  page.on("dialog", (dialog) => {
    attacks.push(`a dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("popup", (popup) => attacks.push(`a window: ${popup.url()}`));
  page.on("request", (request) => {
    const { protocol, origin } = new URL(request.url());
    const isOwn = origin === daemon.url || protocol === "blob:" || request.url().startsWith("data:image/");
    if (!isOwn) attacks.push(`a request: ${request.url()}`);
  });
  page.on("framenavigated", (frame) => {
    if (!frame.url().startsWith(`${daemon.url}/console`)) attacks.push(`a frame: ${frame.url()}`);
  });
  return { page, attacks };
}

/** @param {Page} page @param {string[]} attacks @param {string} where */
async function assertHarmless(page, attacks, where) {
  const found = await page.evaluate(() => ({
    ran: "hostile" in globalThis,
    scripts: document.querySelectorAll("main script, main iframe, main object, main embed, main base, main style, main link, main form[action]").length,
    handlers: [...document.querySelectorAll("main *")].flatMap((it) => it.getAttributeNames().filter((name) => name.startsWith("on") || name === "style" && it.closest("[data-markdown]") !== null)),
    links: [...document.querySelectorAll("main a[href]")].map((it) => /** @type {HTMLAnchorElement} */ (it).protocol).filter((it) => !["http:", "https:", "mailto:"].includes(it)),
    isWide: document.documentElement.scrollWidth > innerWidth,
    isTall: document.documentElement.scrollHeight > innerHeight + 1,
  }));
  assert.deepEqual(found, { ran: false, scripts: 0, handlers: [], links: [], isWide: false, isTall: false }, where);
  // The navigation is where it belongs and not covered.
  await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Sessions" }).click({ trial: true });
  assert.deepEqual(attacks, [], where);
  browser.assertNoProblems();
}

/** Scrolls up in the transcript from its end. @param {Page} page @param {string[]} attacks @param {string} where @param {number} steps */
async function readTranscript(page, attacks, where, steps) {
  await page.locator("[data-transcript-item]").first().waitFor();
  for (let step = 0; step < steps; step += 1) {
    // What is collapsed is shown, and pointed at: handlers of the mouse are attacks, too.
    const closed = page.locator('main [aria-expanded="false"], main details:not([open]) > summary');
    for (let index = 0; index < Math.min(await closed.count(), 4); index += 1) {
      await closed.nth(index).click({ timeout: 2_000 }).catch(() => {});
    }
    await assertHarmless(page, attacks, `${where}, step ${step}`);
    await page.locator("[data-transcript-item]").first().hover({ timeout: 2_000 }).catch(() => {});
    await page.mouse.wheel(0, -3_000);
  }
}

for (const group of ["script", "link", "style", "character", "terminal", "layout"]) {
  test(`hostile texts in a session: ${group}`, async () => {
    const sessionId = await openHostileSession(group);
    await daemon.waitForState(sessionId, "idle");
    for (const phone of [false, true]) {
      const { page, attacks } = await openWatchedPage({ phone });
      const path = `${daemon.url}/console/sessions/${sessionId}`;
      await page.goto(path);
      await readTranscript(page, attacks, `${group}, transcript`, phone ? 2 : 6);
      for (const tab of ["changes", "timeline"]) {
        await page.goto(`${path}/${tab}`);
        await page.locator("main .page").waitFor();
        await page.locator("main .loading").waitFor({ state: "detached" });
        for (const row of await page.locator("main .file-head").all()) await row.click();
        await assertHarmless(page, attacks, `${group}, ${tab}`);
      }
      await page.context().close();
    }
  });
}

test("hostile titles, commands and requests", async () => {
  const named = await openHostileSession("names");
  await daemon.waitForState(named, "idle");
  const asking = await openHostileSession("ask");
  await waitFor("the request", async () => (await daemon.api("GET", "/api/asks")).asks.length > 0);
  for (const phone of [false, true]) {
    const { page, attacks } = await openWatchedPage({ phone });
    for (const [path, ready] of /** @type {const} */ ([
      ["", "[data-session-row]"],
      ["inbox", "[data-ask]"],
      [`sessions/${asking}`, "[data-ask]"],
      [`sessions/${named}`, "main"],
      ["usage", "main h1"],
    ])) {
      await page.goto(`${daemon.url}/console/${path}`);
      await page.locator(ready).first().waitFor();
      await assertHarmless(page, attacks, path);
      assert.ok(!(await page.title()).includes("\u202e"), "the title of the window is not reordered");
    }
    await page.context().close();
  }
  await daemon.api("POST", `/api/sessions/${asking}/close`, {});
});

test("lines of 10 MB are shown in part and do not stop the page", async () => {
  const sessionId = await openHostileSession("huge");
  await daemon.waitForState(sessionId, "idle");
  const { page, attacks } = await openWatchedPage();
  await page.goto(`${daemon.url}/console/sessions/${sessionId}`);
  await page.locator("[data-transcript-item]").first().waitFor();
  await assertHarmless(page, attacks, "huge line");
  const elements = await page.evaluate(() => document.querySelector("main")?.textContent?.length ?? 0);
  assert.ok(elements < 2_000_000, `the page draws ${elements} characters`);
});
