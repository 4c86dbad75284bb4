/** The inbox: one key per answer, no answer by accident, and hostile requests. */

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { startDaemonAndBrowser } from "./support/start.mjs";
import { waitFor } from "./support/wait.mjs";

const { daemon, browser } = await startDaemonAndBrowser();
/** @type {import("playwright-core").Page} */
let page;
beforeEach(async () => {
  page = await browser.signIn(daemon);
});

const openAsks = async () => /** @type {any[]} */ ((await daemon.api("GET", "/api/asks")).asks);

/** Denies all open requests. */
async function closeAsks() {
  for (const { sessionId, ask } of await openAsks()) await daemon.api("POST", `/api/asks/${sessionId}/${ask}`, { option: "deny" });
}

/** Opens a session with a permission request, and waits for it. @param {string} prompt */
async function openAsk(prompt) {
  const sessionId = await daemon.openSession(prompt);
  await waitFor("a request", async () => (await openAsks()).some((it) => it.sessionId === sessionId));
  return sessionId;
}

/** @param {string} sessionId */
const cardOf = (sessionId) => page.locator(`[data-ask^="${sessionId}/"]`);

test("a key that is typed when a request appears does not answer it, and a later one does", async () => {
  await page.goto(`${daemon.url}/console/inbox`);
  await page.getByText("Nothing waits for you").waitFor();
  // The user types on while the request appears.
  const sessionId = await openAsk("ask");
  await cardOf(sessionId).waitFor();
  await cardOf(sessionId).focus();
  await page.keyboard.press("y");
  await page.getByText("too early").waitFor();
  assert.equal((await openAsks()).length, 1);
  await waitFor("the answers to be enabled", async () => (await cardOf(sessionId).locator('[aria-disabled="true"]').count()) === 0);
  await waitFor("the answer", async () => {
    await page.keyboard.press("y");
    return (await openAsks()).length === 0;
  });
  await page.getByText("You answered: allow-once").waitFor();
  browser.assertNoProblems();
});

test("requests are listed with the oldest first, walked with j and k, and opened with o", async () => {
  const [first, second] = [await openAsk("ask-about one"), await openAsk("ask-about two")];
  await page.goto(`${daemon.url}/console/inbox`);
  await cardOf(second).waitFor();
  const cards = await page.locator("[data-ask]").evaluateAll((all) => all.map((it) => it.getAttribute("data-ask")));
  assert.deepEqual(cards.map((it) => it?.split("/")[0]), [first, second]);
  assert.match(await page.title(), /^\(2\) /);
  for (const [key, sessionId] of [["j", second], ["k", first], ["j", second]]) {
    await page.keyboard.press(/** @type {string} */ (key));
    const focused = page.locator(`[data-ask^="${sessionId}/"]:focus`);
    await focused.waitFor();
  }
  await page.keyboard.press("o");
  await page.waitForURL(`**/console/sessions/${second}`);
  await closeAsks();
  browser.assertNoProblems();
});

test("a hostile request is shown as text, with its hidden characters visible", async () => {
  const sessionId = await openAsk('ask-about <img src=x onerror=alert(1)> \u202egnp.exe <a href="javascript:alert(1)">x</a>');
  await page.goto(`${daemon.url}/console/inbox`);
  await cardOf(sessionId).waitFor();
  assert.match(await cardOf(sessionId).innerText(), /<img src=x onerror=alert\(1\)> \\u\{202e\}gnp\.exe/);
  assert.equal(await cardOf(sessionId).locator("img, a[href^=javascript]").count(), 0);
  await closeAsks();
  browser.assertNoProblems();
});

/** Waits until the session has this text. @param {string} sessionId @param {string} text */
async function waitForReply(sessionId, text) {
  await waitFor(`the reply ${text}`, async () => {
    const { events } = await daemon.api("GET", `/api/sessions/${sessionId}/log`);
    return JSON.stringify(events).includes(JSON.stringify(text).slice(1, -1));
  });
}

test("a form is checked, filled in and answered", async () => {
  const sessionId = await openAsk("elicit form");
  await page.goto(`${daemon.url}/console/inbox`);
  const card = cardOf(sessionId);
  await card.getByRole("button", { name: "Send answer" }).click();
  await card.getByText("A value is required").waitFor();
  await card.getByRole("combobox").selectOption("next");
  await card.getByRole("button", { name: "Send answer" }).click();
  await waitForReply(sessionId, 'elicit: accept {"branch":"next"}');
  browser.assertNoProblems();
});

test("a page opens only by a click, and its host is shown", async () => {
  const sessionId = await openAsk("elicit url");
  await page.goto(`${daemon.url}/console/inbox`);
  const link = cardOf(sessionId).getByRole("link", { name: "Open 127.0.0.1 in a new tab" });
  await link.waitFor();
  assert.equal(page.context().pages().length, 1);
  assert.equal(await link.getAttribute("rel"), "noopener noreferrer");
  await cardOf(sessionId).getByRole("button", { name: "Decline" }).click();
  await waitForReply(sessionId, "elicit: decline null");
  assert.equal(page.context().pages().length, 1);
  browser.assertNoProblems();
});
