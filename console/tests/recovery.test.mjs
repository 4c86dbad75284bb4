/** A page continues after the daemon was killed, the network was cut or a session was deleted, and shows nothing twice. */

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { Proxy } from "./support/proxy.mjs";
import { startDaemonAndBrowser } from "./support/start.mjs";
import { waitFor } from "./support/wait.mjs";

/** @typedef {import("playwright-core").Page} Page */

/** How long the network is cut; the nightly run sets five minutes. */
const CUT_SECONDS = Number(process.env["CONSOLE_CUT_SECONDS"] ?? "8");
const CHUNKS_DURING_CUT = 160;

const { daemon, browser } = await startDaemonAndBrowser();
/** @type {Page} */
let page;
beforeEach(async () => {
  page = await browser.signIn(daemon);
});

/** What the agent has said in a session, from the log. @param {string} sessionId */
async function loggedText(sessionId) {
  const { events } = await daemon.api("GET", `/api/sessions/${sessionId}/log?after=0&limit=1000`);
  const chunks = events.map((/** @type {any} */ it) => it.frame?.params?.update);
  return chunks.flatMap((/** @type {any} */ it) => (it?.sessionUpdate === "agent_message_chunk" ? [it.content.text] : [])).join("");
}

/** What the page shows of it. @param {Page} page */
async function shownText(page) {
  const parts = await page.locator('[data-transcript-item][data-kind="message"]').allInnerTexts();
  return parts.join(" ");
}

/** @param {string} text */
const words = (text) => text.split(/\s+/).filter(Boolean).join(" ");

/** Waits until the page shows exactly what the log has. @param {Page} page @param {string} sessionId */
async function waitUntilShown(page, sessionId) {
  let [shown, logged] = ["", ""];
  await waitFor("the page to show the log", async () => {
    [shown, logged] = [words(await shownText(page)), words(await loggedText(sessionId))];
    return logged !== "" && shown.includes(logged);
  }).catch(() => {
    const at = [...logged].findIndex((it, index) => it !== shown[index]);
    assert.fail(`differs at ${at}: shown …${shown.slice(at - 60, at + 60)}…, logged …${logged.slice(at - 60, at + 60)}…`);
  });
  const count = (/** @type {string} */ word) => shown.split(word).length - 1;
  assert.equal(count("slow 1 "), logged.split("slow 1 ").length - 1, "a text is shown twice");
}

test("a page continues when the daemon was killed in mid-stream", async () => {
  const sessionId = await daemon.openSession("slow 400 5");
  await page.goto(`${daemon.url}/console/sessions/${sessionId}`);
  await waitFor("the stream to begin", async () => (await shownText(page)).includes("slow 20 "));
  await daemon.end("SIGKILL");
  await page.getByText("The connection to the daemon is lost").waitFor();
  await daemon.restart();
  await page.getByText("The connection to the daemon is lost").waitFor({ state: "hidden" });
  await daemon.waitForState(sessionId, "asleep").catch(() => undefined);
  await daemon.prompt(sessionId, "slow 40 5");
  await daemon.waitForState(sessionId, "idle");
  await waitUntilShown(page, sessionId);
  browser.assertNoProblems();
});

test(`a page continues after the network was cut for ${CUT_SECONDS} seconds`, async () => {
  const proxy = await Proxy.start(daemon.port);
  // The transcript stays short enough to be drawn at once: most of it comes during the cut, and five seconds of it after.
  const everyMs = Math.ceil((CUT_SECONDS * 1000) / CHUNKS_DURING_CUT);
  const sessionId = await daemon.openSession(`slow ${CHUNKS_DURING_CUT + Math.ceil(5_000 / everyMs)} ${everyMs}`);
  const login = (await daemon.loginUrl()).replace(daemon.url, proxy.url);
  await page.goto(login);
  await page.waitForURL(/\/console\/?$/);
  await page.goto(`${proxy.url}/console/sessions/${sessionId}`);
  await waitFor("the stream to begin", async () => (await shownText(page)).includes("slow 1 "));
  proxy.cut();
  await page.getByText("The connection to the daemon is lost").waitFor();
  await page.waitForTimeout(CUT_SECONDS * 1000);
  proxy.restore();
  await page.getByText("The connection to the daemon is lost").waitFor({ state: "hidden" });
  await daemon.waitForState(sessionId, "idle");
  await waitUntilShown(page, sessionId);
  browser.assertNoProblems();
  await page.close();
  await proxy.close();
});

test("a page says that its session was deleted elsewhere, and the list forgets it", async () => {
  const sessionId = await daemon.openSession("hello");
  await daemon.waitForState(sessionId, "idle");
  const list = await page.context().newPage();
  await list.goto(`${daemon.url}/console/`);
  await list.locator(`[data-session-id="${sessionId}"]`).waitFor();
  await page.goto(`${daemon.url}/console/sessions/${sessionId}`);
  await page.locator("[data-transcript-item]").first().waitFor();
  await daemon.cli("sessions", "rm", "--yes", sessionId);
  await page.getByText("was deleted").waitFor();
  await list.locator(`[data-session-id="${sessionId}"]`).waitFor({ state: "detached" });
  browser.assertNoProblems();
});

test("ten tabs share one connection", async () => {
  const proxy = await Proxy.start(daemon.port);
  const sessionId = await daemon.openSession("hello");
  await page.goto((await daemon.loginUrl()).replace(daemon.url, proxy.url));
  await page.waitForURL(/\/console\/?$/);
  const tabs = await Promise.all(Array.from({ length: 10 }, () => page.context().newPage()));
  await Promise.all(tabs.map((it) => it.goto(`${proxy.url}/console/sessions/${sessionId}`)));
  await Promise.all(tabs.map((it) => it.locator("[data-transcript-item]").first().waitFor()));
  await daemon.prompt(sessionId, "burst 3");
  for (const tab of tabs) await waitFor("every tab to show the turn", async () => (await shownText(tab)).includes("123"));
  await waitFor("one stream", () => proxy.openStreams().length === 1);
  assert.deepEqual(proxy.openStreams().map((it) => (it.match(/follow=/g) ?? []).length), [1]);
  browser.assertNoProblems();
  await page.context().close();
  await proxy.close();
});

test("an expired login is shown in one line, and signing in again continues", async () => {
  const sessionId = await daemon.openSession("slow 200 20");
  await page.goto(`${daemon.url}/console/sessions/${sessionId}`);
  await waitFor("the stream to begin", async () => (await shownText(page)).includes("slow 1 "));
  const { devices } = await daemon.api("GET", "/api/devices");
  for (const it of devices) await daemon.api("DELETE", `/api/devices/${it.id}`);
  await page.getByText("signed out").waitFor();
  const other = await page.context().newPage();
  await other.goto(await daemon.loginUrl());
  await other.waitForURL(/\/console\/?$/);
  await page.getByText("signed out").waitFor({ state: "hidden" });
  await daemon.waitForState(sessionId, "idle");
  await waitUntilShown(page, sessionId);
  browser.assertNoProblems();
});
