/** The composer and the dialog for new sessions: drafts, history, files, commands, settings, and prompts without a connection. */

import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, test } from "node:test";
import { fileURLToPath } from "node:url";
import { workspace } from "./support/daemon.mjs";
import { startDaemonAndBrowser } from "./support/start.mjs";
import { waitFor } from "./support/wait.mjs";

// An agent that does not accept images.
const textAgent = fileURLToPath(new URL("support/hostile-agent.mjs", import.meta.url));
const config = `[agents.text]\ncommand = ${JSON.stringify([process.execPath, textAgent])}\n`;
const { daemon, browser } = await startDaemonAndBrowser({ config });
/** @type {import("playwright-core").Page} */
let page;
beforeEach(async () => {
  page = await browser.signIn(daemon);
});

const box = () => page.getByRole("textbox", { name: "Prompt" });

/** Opens a session whose first turn has ended, and its page. @param {string} message */
async function openIdleSession(message = "hello") {
  const sessionId = await daemon.openSession(message);
  await daemon.waitForState(sessionId, "idle");
  await page.goto(`${daemon.url}/console/sessions/${sessionId}`);
  await box().waitFor();
  return sessionId;
}

/** Waits until the transcript contains this text. @param {string} text */
const waitForText = (text) => page.locator("[data-transcript-item]", { hasText: text }).first().waitFor();

/** How often a prompt with this text has started. @param {string} sessionId @param {string} text */
async function countTurns(sessionId, text) {
  const { events } = await daemon.api("GET", `/api/sessions/${sessionId}/log?limit=1000`);
  return events.filter((/** @type {any} */ it) => it.is === "prompted" && JSON.stringify(it).includes(text)).length;
}

test("a prompt whose response is lost is sent again and runs once", async () => {
  const sessionId = await openIdleSession();
  let losses = 1;
  await page.route("**/prompt", async (route) => {
    if (losses-- <= 0) return route.continue();
    await route.fetch();
    await route.abort();
  });
  await box().fill("only once");
  await box().press("Enter");
  await waitForText("you said: only once");
  await page.getByRole("list", { name: "Prompts that are not sent" }).waitFor({ state: "detached" });
  assert.equal(await countTurns(sessionId, "only once"), 1);
  browser.assertNoProblems();
});

test("a draft survives a reload, and the arrow key brings back earlier prompts", async () => {
  await openIdleSession("first prompt");
  await box().fill("second prompt");
  await box().press("Enter");
  await waitForText("you said: second prompt");
  await box().fill("a draft\nof two lines");
  await page.reload();
  await waitFor("the draft", async () => (await box().inputValue()) === "a draft\nof two lines");
  await box().fill("");
  for (const expected of ["second prompt", "first prompt"]) {
    await box().press("ArrowUp");
    await waitFor(`the prompt ${expected}`, async () => (await box().inputValue()) === expected);
  }
  await box().press("ArrowDown");
  assert.equal(await box().inputValue(), "second prompt");
  browser.assertNoProblems();
});

test("a pasted image and a chosen file reach the agent", async () => {
  await openIdleSession();
  await box().fill("params");
  const picture = await page.screenshot();
  const files = [
    { name: "screen.png", mimeType: "image/png", buffer: picture },
    { name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("notes") },
  ];
  await page.locator(".composer input[type=file]").setInputFiles(files);
  await page.locator(".attachment", { hasText: "notes.txt" }).getByText("5 B").waitFor();
  await page.locator(".attachment img").waitFor();
  await page.getByRole("button", { name: "Send" }).click();
  const answer = page.locator("[data-transcript-item]", { hasText: "params {" }).first();
  await answer.waitFor();
  const path = /@([^\s"@]+notes\.txt)/.exec(await answer.innerText())?.[1];
  assert.equal(readFileSync(path ?? "", "utf8"), "notes");
  await page.locator(".attachment").first().waitFor({ state: "detached" });
  browser.assertNoProblems();
});

test("files of a draft survive a reload, and a file that is removed does not", async () => {
  await openIdleSession();
  const file = (/** @type {string} */ name) => ({ name, mimeType: "text/plain", buffer: Buffer.from("notes") });
  await page.locator(".composer input[type=file]").setInputFiles([file("kept.txt"), file("removed.txt")]);
  await waitFor("both uploads", async () => (await page.locator(".attachment", { hasText: "5 B" }).count()) === 2);
  await page.getByRole("button", { name: "Remove removed.txt" }).click();
  await page.reload();
  await page.locator(".attachment", { hasText: "kept.txt" }).waitFor();
  assert.equal(await page.locator(".attachment").count(), 1);
  await box().fill("params");
  await page.getByRole("button", { name: "Send" }).click();
  await waitForText("kept.txt");
  await page.reload();
  await box().waitFor();
  assert.equal(await page.locator(".attachment").count(), 0);
  browser.assertNoProblems();
});

test("a warning of the daemon about a prompt is shown", async () => {
  const { sessionId } = await daemon.api("POST", "/api/runs", { agentId: "text", cwd: workspace, message: "names" });
  await daemon.waitForState(sessionId, "idle");
  await page.goto(`${daemon.url}/console/sessions/${sessionId}`);
  const picture = { name: "screen.png", mimeType: "image/png", buffer: await page.screenshot() };
  await page.locator(".composer input[type=file]").setInputFiles(picture);
  await page.locator(".attachment").getByText("kB").waitFor();
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByText("Sent, but the agent does not accept images: it gets the path of").waitFor();
  browser.assertNoProblems();
});

test("commands of the agent are completed, and its mode is changed", async () => {
  const sessionId = await openIdleSession("commands");
  await box().fill("/");
  const first = page.getByRole("option").first();
  await first.waitFor();
  const name = (await first.innerText()).split(/\s/)[0];
  await box().press("Tab");
  assert.equal(await box().inputValue(), `${name} `);
  await page.getByRole("combobox", { name: "Mode", exact: true }).selectOption("plan");
  await waitFor("the mode", async () => (await daemon.api("GET", `/api/sessions/${sessionId}/settings`)).modes.current === "plan");
  browser.assertNoProblems();
});

test("Escape twice cancels the turn and keeps what is written", async () => {
  const sessionId = await daemon.openSession("hang");
  await daemon.waitForState(sessionId, "working");
  await page.goto(`${daemon.url}/console/sessions/${sessionId}`);
  await box().fill("not sent yet");
  await box().press("Escape");
  await page.getByText("Press Escape again").waitFor();
  await box().press("Escape");
  await daemon.waitForState(sessionId, "idle");
  assert.equal(await box().inputValue(), "not sent yet");
  browser.assertNoProblems();
});

test("a session is started with the keyboard, and a directory outside of the roots is refused", async () => {
  await page.keyboard.press("n");
  const dialog = page.getByRole("dialog", { name: "New session" });
  await dialog.getByRole("combobox", { name: "Agent" }).selectOption("fake");
  await dialog.getByRole("combobox", { name: "Directory" }).fill("/etc");
  await dialog.getByLabel("First prompt").fill("started here");
  await dialog.getByRole("button", { name: "Start" }).press("Enter");
  await dialog.getByText("roots").waitFor();
  await dialog.getByRole("combobox", { name: "Directory" }).fill(workspace);
  await dialog.getByRole("button", { name: "Start" }).press("Enter");
  await page.waitForURL("**/console/sessions/s-*");
  await waitForText("you said: started here");
  browser.assertNoProblems();
});

test("a session is opened without a prompt in a directory that was browsed", async () => {
  mkdirSync(join(workspace, "browsed", "inner"), { recursive: true });
  await page.getByRole("button", { name: "New session" }).click();
  const dialog = page.getByRole("dialog", { name: "New session" });
  await dialog.getByRole("combobox", { name: "Agent" }).selectOption("fake");
  const directory = dialog.getByRole("combobox", { name: "Directory" });
  await directory.fill(workspace);
  await dialog.getByRole("button", { name: "Browse" }).click();
  for (const name of ["browsed", "inner"]) await dialog.getByRole("button", { name }).click();
  assert.equal(await directory.inputValue(), join(workspace, "browsed", "inner"));
  await dialog.getByRole("button", { name: "Start" }).click();
  await page.waitForURL("**/console/sessions/s-*");
  await box().fill("cwd");
  await box().press("Enter");
  await waitForText(`cwd ${join(workspace, "browsed", "inner")}`);
  browser.assertNoProblems();
});

test("a session is opened in a sandbox, and a host is allowed always", async () => {
  // The name does not exist: an allowed connection fails at the name server.
  const script = "import urllib.request\ntry: urllib.request.urlopen('http://unknown.invalid/', timeout=20)\nexcept Exception as error: print('connected:', error)\n";
  writeFileSync(join(workspace, "fetch.py"), script);
  await page.getByRole("button", { name: "New session" }).click();
  const dialog = page.getByRole("dialog", { name: "New session" });
  await dialog.getByRole("combobox", { name: "Agent" }).selectOption("fake");
  await dialog.getByRole("combobox", { name: "Directory" }).fill(workspace);
  await dialog.getByText("Model, mode, sandbox").click();
  await dialog.getByRole("combobox", { name: "Sandbox" }).selectOption({ label: "workspace: only the project can be changed" });
  await dialog.getByLabel("First prompt").fill("terminal /usr/bin/python3 fetch.py");
  await dialog.getByRole("button", { name: "Start" }).click();
  await page.waitForURL("**/console/sessions/s-*");
  await page.locator(".session-facts", { hasText: "sandbox workspace" }).waitFor();
  await page.getByText("Connect to unknown.invalid:80").first().waitFor();
  await page.getByRole("button", { name: "Allow this host always" }).click();
  await waitForText("connected: HTTP Error 502");
  assert.match(await daemon.cli("sandbox", "hosts"), /unknown\.invalid:80 +allow +workspace/);
  browser.assertNoProblems();
});

test("a prompt that is written while the daemon is away waits and runs once", async () => {
  const sessionId = await openIdleSession();
  await daemon.end("SIGKILL");
  await box().fill("written while away");
  await box().press("Enter");
  await page.getByText("Waits for the connection").waitFor();
  await daemon.restart();
  await waitForText("you said: written while away");
  assert.equal(await countTurns(sessionId, "written while away"), 1);
  browser.problems.length = 0;
});
