/**
 * Figures of the console for docs/performance.md, measured by the browser itself.
 *
 * Nightly: the numbers need a quiet machine. `CONSOLE_FIGURES` names a file for the table.
 */

import assert from "node:assert/strict";
import { appendFileSync } from "node:fs";
import { test } from "node:test";
import { startDaemonAndBrowser } from "./support/start.mjs";

const EVENTS = 100_000;
const SESSIONS = 10_000;
const STREAM_SECONDS = 60;

const { daemon, browser } = await startDaemonAndBrowser();
const longSession = await openLongSession();

/** @param {string} name @param {string} value @param {string} limit */
const record = (name, value, limit) => {
  console.log(`${name}: ${value} (limit ${limit})`);
  const file = process.env["CONSOLE_FIGURES"];
  if (file) appendFileSync(file, `| ${name} | ${value} | ${limit} |\n`);
};

/** A session of many turns with texts, thoughts, tool calls and plans. */
async function openLongSession() {
  const group = "burst 20 24\nthink\ntool\nplan";
  const turn = Array(100).fill(group).join("\n");
  const sessionId = await daemon.openSession(turn);
  for (;;) {
    await daemon.waitForState(sessionId, "idle");
    const { events } = await daemon.api("GET", `/api/sessions/${sessionId}`);
    if (events >= EVENTS) return sessionId;
    await daemon.prompt(sessionId, turn);
  }
}

/** The heap of a page after a garbage collection, in MB. @param {import("playwright-core").Page} page */
async function heapMegabytes(page) {
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("HeapProfiler.collectGarbage");
  const { usedSize } = await devtools.send("Runtime.getHeapUsage");
  return usedSize / 1e6;
}

test("a session of 100,000 events opens at its end, and its beginning can be reached", async () => {
  const page = await browser.signIn(daemon);
  const times = [];
  for (let round = 0; round < 5; round += 1) {
    await page.goto("about:blank");
    await page.goto(`${daemon.url}/console/sessions/${longSession}`);
    await page.locator("[data-transcript-item]").last().waitFor();
    // The transcript marks the first paint of its last items.
    const painted = await page.evaluate(() => performance.getEntriesByName("transcript-painted")[0]?.startTime ?? NaN);
    times.push(painted);
  }
  times.sort((a, b) => a - b);
  const heap = await heapMegabytes(page);
  record(`transcript of ${EVENTS} events: first paint of its end, median of 5`, `${times[2]?.toFixed(0)} ms`, "500 ms");
  record("the same: heap after loading", `${heap.toFixed(1)} MB`, "150 MB");
  assert.ok((times[2] ?? Infinity) <= 500, `painted after ${times}`);
  await page.keyboard.press("Control+Home");
  await page.locator('[data-transcript-item][data-first-seq="1"], [data-transcript-start]').first().waitFor();
  const end = await heapMegabytes(page);
  record("the same: heap at the beginning", `${end.toFixed(1)} MB`, "150 MB");
  assert.ok(Math.max(heap, end) <= 150);
  browser.assertNoProblems();
});

test("1,000 tokens per second cause no long task", async () => {
  const sessionId = await daemon.openSession("hello");
  await daemon.waitForState(sessionId, "idle");
  const page = await browser.signIn(daemon);
  await page.goto(`${daemon.url}/console/sessions/${sessionId}`);
  await page.locator("[data-transcript-item]").last().waitFor();
  await page.evaluate(() => {
    const tasks = /** @type {number[]} */ ([]);
    Object.assign(globalThis, { longTasks: tasks });
    new PerformanceObserver((list) => tasks.push(...list.getEntries().map((it) => it.duration))).observe({ type: "longtask" });
  });
  // Ten chunks of one token every ten milliseconds.
  await daemon.prompt(sessionId, `slow ${STREAM_SECONDS * 1000} 1`);
  await page.waitForTimeout(5_000);
  await page.evaluate(() => /** @type {any} */ (globalThis).longTasks.splice(0));
  await page.waitForTimeout((STREAM_SECONDS - 5) * 1000);
  const tasks = await page.evaluate(() => /** @type {number[]} */ (/** @type {any} */ (globalThis).longTasks));
  const longest = Math.max(0, ...tasks);
  record(`stream of 1,000 tokens/s for ${STREAM_SECONDS} s: longest task after warm-up`, `${longest.toFixed(0)} ms`, "100 ms");
  record("the same: heap", `${(await heapMegabytes(page)).toFixed(1)} MB`, "150 MB");
  assert.ok(longest <= 100, `long tasks: ${tasks}`);
  browser.assertNoProblems();
});

test("a list of 10,000 sessions paints and filters fast", async () => {
  for (let count = 0; count < SESSIONS; count += 50) {
    const forks = Array.from({ length: 50 }, () => daemon.api("POST", `/api/sessions/${longSession}/fork`, { at: 1 }));
    await Promise.all(forks);
  }
  const page = await browser.signIn(daemon);
  const times = [];
  for (let round = 0; round < 5; round += 1) {
    await page.goto("about:blank");
    await page.goto(`${daemon.url}/console/`);
    await page.locator("[data-session-row]").first().waitFor();
    times.push(await page.evaluate(() => performance.getEntriesByName("sessions-painted")[0]?.startTime ?? NaN));
  }
  times.sort((a, b) => a - b);
  record(`list of ${SESSIONS} sessions: first paint, median of 5`, `${times[2]?.toFixed(0)} ms`, "300 ms");
  await page.locator(`[data-session-count="${SESSIONS + 2}"]`).waitFor({ timeout: 30_000 });
  await page.keyboard.press("/");
  await page.keyboard.type("fake");
  const filter = await page.evaluate(() => {
    const entries = performance.getEntriesByName("sessions-filtered", "measure");
    return Math.max(...entries.map((it) => it.duration));
  });
  record("the same: slowest filter", `${filter.toFixed(1)} ms`, "50 ms");
  assert.ok((times[2] ?? Infinity) <= 300, `painted after ${times}`);
  assert.ok(filter <= 50);
  browser.assertNoProblems();
});
