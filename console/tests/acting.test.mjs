/** What users do in the console: prompts, requests, queue; also beside a terminal that is attached to the same session. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { beforeEach, test } from "node:test";
import { workspace } from "./support/daemon.mjs";
import { startDaemonAndBrowser } from "./support/start.mjs";
import { waitFor } from "./support/wait.mjs";

const { daemon, browser } = await startDaemonAndBrowser();
/** @type {import("playwright-core").Page} */
let page;
beforeEach(async () => {
  page = await browser.signIn(daemon);
});

/** Opens the page of a session. @param {string} sessionId */
async function openSessionPage(sessionId) {
  await page.goto(`${daemon.url}/console/sessions/${sessionId}`);
  await page.getByRole("textbox", { name: "Prompt" }).waitFor();
}

/** Waits until the transcript contains this text. @param {string} text */
const waitForText = (text) => page.locator("[data-transcript-item]", { hasText: text }).first().waitFor();

test("a request is answered in the browser while a terminal is attached", async () => {
  const sessionId = await daemon.openSession("hello");
  await daemon.waitForState(sessionId, "idle");
  const binary = /** @type {string} */ (process.env["JACKFIELD_BINARY"]);
  const terminal = spawn(binary, ["attach", sessionId], { cwd: workspace, stdio: ["pipe", "pipe", "pipe"] });
  let printed = "";
  terminal.stdout.on("data", (data) => (printed += data));
  terminal.stderr.on("data", (data) => (printed += data));
  await openSessionPage(sessionId);
  await page.getByRole("textbox", { name: "Prompt" }).fill("ask");
  await page.getByRole("button", { name: "Send" }).click();
  const card = page.locator(`[data-ask^="${sessionId}/"]`).first();
  await card.waitFor();
  await waitFor("the terminal to show the request", () => /allow/i.test(printed));
  await card.locator('[data-option-id="allow-once"]').click();
  await waitForText("ask 1: allow-once");
  await waitFor("the terminal to show the outcome", () => printed.includes("ask 1: allow-once"));
  terminal.stdin.end();
  terminal.kill("SIGTERM");
  await new Promise((resolve) => terminal.once("exit", resolve));
  browser.assertNoProblems();
});

test("a request that is answered elsewhere disappears and says who answered", async () => {
  const sessionId = await daemon.openSession("ask");
  await page.goto(`${daemon.url}/console/inbox`);
  const card = page.locator(`[data-ask^="${sessionId}/"]`).first();
  await card.waitFor();
  const { asks } = await daemon.api("GET", "/api/asks");
  const open = asks.find((/** @type {any} */ it) => it.sessionId === sessionId);
  await daemon.api("POST", `/api/asks/${sessionId}/${open.ask}`, { option: "allow-once" });
  await card.waitFor({ state: "detached" });
  await page.getByText(/answered/i).first().waitFor();
  browser.assertNoProblems();
});

test("a prompt during a turn is queued, moved, withdrawn, and the turn is cancelled", async () => {
  const sessionId = await daemon.openSession("hang");
  await daemon.waitForState(sessionId, "working");
  await openSessionPage(sessionId);
  for (const text of ["first", "second"]) {
    await page.getByRole("textbox", { name: "Prompt" }).fill(text);
    await page.getByRole("textbox", { name: "Prompt" }).press("Enter");
  }
  const queue = async () => (await daemon.api("GET", `/api/sessions/${sessionId}/queue`)).prompts.map((/** @type {any} */ it) => it.text);
  await waitFor("two queued prompts", async () => (await queue()).length === 2);
  await page.getByRole("button", { name: /move .*second.* up|up.*second/i }).click();
  await waitFor("the moved prompt", async () => (await queue())[0] === "second");
  await page.getByRole("button", { name: /withdraw.*first/i }).click();
  await waitFor("one queued prompt", async () => (await queue()).join() === "second");
  // Cancel also withdraws the prompts that wait, as `jackfield cancel` does, and says so before.
  await page.getByRole("button", { name: "Cancel turn" }).click();
  const question = page.getByRole("dialog", { name: "Cancel the turn?" });
  await question.getByText("This also withdraws 1 prompt that waits.").waitFor();
  await question.getByRole("button", { name: "Keep the turn" }).click();
  assert.equal((await queue()).join(), "second");
  await page.getByRole("button", { name: "Cancel turn" }).click();
  await question.getByRole("button", { name: "Cancel turn and queue" }).click();
  await daemon.waitForState(sessionId, "idle");
  assert.deepEqual(await queue(), []);
  browser.assertNoProblems();
});
