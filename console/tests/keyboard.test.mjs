/** A whole session with the keyboard only: no mouse, and no focus that a script has set. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { workspace } from "./support/daemon.mjs";
import { startDaemonAndBrowser } from "./support/start.mjs";
import { waitFor } from "./support/wait.mjs";

const { daemon, browser } = await startDaemonAndBrowser();
const page = await browser.signIn(daemon);

/** More elements than a page has between two that follow each other in a task. */
const TABS_MAX = 60;

/** @param {string[]} keys */
const press = async (...keys) => {
  for (const it of keys) await page.keyboard.press(it);
};

/** The text by which a screen reader names the focused element. */
const focusedName = () =>
  page.evaluate(() => {
    const element = document.activeElement;
    if (!(element instanceof HTMLElement)) return "";
    const labels = "labels" in element ? [.../** @type {HTMLInputElement} */ (element).labels ?? []] : [];
    const name = element.getAttribute("aria-label") || labels.map((it) => it.innerText).join(" ") || element.innerText || "";
    return name.replace(/\s+/g, " ").trim();
  });

/** Presses Tab until an element whose name matches has the focus. @param {RegExp} name @param {"Tab" | "Shift+Tab"} [key] */
async function tabTo(name, key = "Tab") {
  const seen = [];
  for (let count = 0; count < TABS_MAX; count += 1) {
    const focused = await focusedName();
    if (name.test(focused)) return focused;
    seen.push(focused.slice(0, 30));
    await press(key);
  }
  return assert.fail(`${name} is not reached with ${key}: ${seen.join(" | ")}`);
}

/** @param {RegExp} name */
const waitForFocus = (name) =>
  waitFor(`the focus on ${name}`, async () => name.test(await focusedName())).catch(async (error) => {
    throw new Error(`${error.message}: it is on “${(await focusedName()).slice(0, 60)}”`);
  });

/** Waits until the transcript contains this text. @param {string} text */
const waitForText = (text) => page.locator("[data-transcript-item]", { hasText: text }).first().waitFor();

/** A repository with a file that differs from the last commit. */
function createRepository() {
  const folder = join(workspace, "repository");
  mkdirSync(folder, { recursive: true });
  const git = (/** @type {string[]} */ ...args) => execFileSync("git", ["-C", folder, ...args], { stdio: "ignore" });
  git("init", "-q", "-b", "main");
  writeFileSync(join(folder, "notes.txt"), "one\n");
  git("add", ".");
  git("-c", "user.name=test", "-c", "user.email=test@example.org", "commit", "-qm", "Add notes");
  writeFileSync(join(folder, "notes.txt"), "two words\n");
  return folder;
}

test("the list is filtered, and a session is opened and left", async () => {
  const [wanted] = [await daemon.openSession("the wanted one"), await daemon.openSession("another one")];
  await page.locator(`[data-session-id="${wanted}"]`).waitFor();
  await press("/");
  await page.keyboard.type("wanted");
  await page.getByText("1 of 2 sessions").waitFor();
  await press("Enter");
  await waitForFocus(/the wanted one/);
  await press("Enter");
  await page.waitForURL(`**/console/sessions/${wanted}`);
  await waitForText("you said: the wanted one");
  await waitForFocus(/^Prompt$/);
  // Letters are keys of the page outside of the box.
  await press("Shift+Tab", "g", "s");
  await page.waitForURL(/\/console\/$/);
  await page.getByText("2 sessions").waitFor();
  browser.assertNoProblems();
});

test("a session is started, asked, answered, looked at, searched, queued, canceled and deleted", async () => {
  const folder = createRepository();
  await press("n");
  await waitForFocus(/^Agent/);
  await page.keyboard.type("fake");
  await tabTo(/^Directory/);
  await press("Control+a");
  await page.keyboard.type(folder);
  await tabTo(/^First prompt/);
  await page.keyboard.type("ask");
  await tabTo(/^Start$/);
  await press("Enter");
  await page.waitForURL("**/console/sessions/s-*");
  const sessionId = /** @type {string} */ (new URL(page.url()).pathname.split("/").at(-1));
  assert.equal((await daemon.api("GET", `/api/sessions/${sessionId}`)).cwd, folder);

  await answerRequest();
  await lookAtTabs();
  await findInSession();
  await queueAndCancel(sessionId);
  await deleteSession(sessionId);
  browser.assertNoProblems();
});

/** From the composer to the request, and its answer with one key. */
async function answerRequest() {
  const card = page.locator("[data-ask]").first();
  await card.waitFor();
  await waitForFocus(/^Prompt$/);
  await tabTo(/^Answer$/, "Shift+Tab");
  await press("Enter");
  await waitFor("the focus in the request", () => card.evaluate((it) => it === document.activeElement));
  // A key counts when the request has had the focus for a moment.
  await waitFor("the answer", async () => {
    await press("y");
    return (await daemon.api("GET", "/api/asks")).asks.length === 0;
  });
  await waitForText("ask 1: allow-once");
}

/** The changes with a difference, and the timeline with a way to an event. */
async function lookAtTabs() {
  await tabTo(/^Changes$/);
  await press("Enter");
  await page.waitForURL("**/changes");
  await tabTo(/^Git$/);
  await press("Enter");
  await tabTo(/notes\.txt/);
  await press("Enter");
  await page.locator(".diff-added-row", { hasText: "two" }).waitFor();
  await tabTo(/^Only this file$/);
  await press("Enter");
  await page.waitForURL("**/changes?file=notes.txt");
  await page.locator(".diff-removed-row", { hasText: "one" }).waitFor();

  await tabTo(/^Timeline$/, "Shift+Tab");
  await press("Enter");
  await page.waitForURL("**/timeline");
  await page.locator(".span-bar").first().waitFor();
  await tabTo(/^Waiting for the model/);
  await press("ArrowDown", "Enter");
  await page.waitForURL("**/sessions/s-*?event=*");
  await page.locator("[data-transcript-item]").first().waitFor();
}

async function findInSession() {
  await press("Control+f");
  await waitForFocus(/^Find in the session$/);
  await page.keyboard.type("allow-once");
  await page.locator(".find-bar output", { hasText: /^1 of \d/ }).waitFor();
  await page.locator(".find-bar mark", { hasText: "allow-once" }).waitFor();
  await press("Escape");
  await page.locator(".find-bar").waitFor({ state: "detached" });
}

/** Two prompts wait, change places, and are withdrawn with the turn after a question. @param {string} sessionId */
async function queueAndCancel(sessionId) {
  const queue = async () => (await daemon.api("GET", `/api/sessions/${sessionId}/queue`)).prompts.map((/** @type {any} */ it) => it.text).join();
  await tabTo(/^Prompt$/);
  for (const text of ["hang", "first", "second"]) {
    await page.keyboard.type(text);
    await press("Enter");
    if (text === "hang") await daemon.waitForState(sessionId, "working");
  }
  await waitFor("two queued prompts", async () => (await queue()) === "first,second");
  await tabTo(/^Move “second” up$/, "Shift+Tab");
  await press("Enter");
  await waitFor("the moved prompt", async () => (await queue()) === "second,first");
  // The focus stays in the row, on what can be done next.
  await waitForFocus(/^Move “second” down$/);

  await tabTo(/^Cancel turn$/);
  await press("Enter");
  await page.getByRole("dialog", { name: "Cancel the turn?" }).getByText("withdraws 2 prompts").waitFor();
  await press("Escape");
  await waitForFocus(/^Cancel turn$/);
  assert.equal(await queue(), "second,first");
  await press("Enter");
  await tabTo(/^Cancel turn and queue$/);
  await press("Enter");
  await daemon.waitForState(sessionId, "idle");
  assert.equal(await queue(), "");
  await waitForFocus(/^Prompt$/);
}

/** From the list, with a question. @param {string} sessionId */
async function deleteSession(sessionId) {
  await press("Shift+Tab", "g", "s");
  await page.waitForURL(/\/console\/$/);
  await page.locator(`[data-session-id="${sessionId}"]`).waitFor();
  await press("j");
  await waitForFocus(/^ask$/);
  await tabTo(/^Actions of the session$/);
  await press("Enter");
  await page.getByText("Delete…").waitFor();
  for (let count = 0; count < 10 && !/^Delete…$/.test(await focusedName()); count += 1) await press("ArrowDown");
  await press("Enter");
  await page.getByRole("dialog", { name: /^Delete ask/ }).waitFor();
  await tabTo(/^Delete the session$/);
  await press("Enter");
  await page.locator(`[data-session-id="${sessionId}"]`).waitFor({ state: "detached" });
  const { sessions } = await daemon.api("GET", "/api/sessions");
  assert.ok(sessions.every((/** @type {any} */ it) => it.sessionId !== sessionId));
}
