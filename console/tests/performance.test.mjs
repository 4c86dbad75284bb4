/**
 * Figures of the console for docs/performance.md, measured by the browser itself.
 *
 * Nightly: the numbers need a quiet machine. Prints a table; `CONSOLE_FIGURES` names a file for it.
 */

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { Browser } from "./support/browser.mjs";
import { Daemon } from "./support/daemon.mjs";

const EVENTS = 100_000;
const SESSIONS = 10_000;
const FORKS_AT_ONCE = 50;
const STREAM_SECONDS = 60;
const WARM_UP_SECONDS = 5;
const FIRST_VISITS = 5;
const LATER_VISITS = 9;

/** @typedef {import("playwright-core").Page} Page */

/** @type {Daemon} */
let daemon;
/** @type {Browser} */
let browser;
before(async () => {
  [daemon, browser] = await Promise.all([Daemon.start(), Browser.start()]);
});
after(async () => {
  printTable();
  await browser.close();
  await daemon.end();
});

/** @type {string[]} */
const figures = [];

/** Adds a row to the table: the median and the worst of some values. @param {string} name @param {number[]} values @param {number} limit @param {string} unit */
function record(name, values, limit, unit = "ms") {
  const sorted = values.toSorted((a, b) => a - b);
  const median = sorted[sorted.length >> 1] ?? NaN;
  const [worst, digits] = [sorted.at(-1) ?? NaN, unit === "ms" ? 0 : 1];
  const text = (/** @type {number} */ it) => `${it.toFixed(digits)} ${unit}`;
  const verdict = Number.isNaN(limit) ? "|" : `${limit} ${unit} | ${median <= limit ? "met" : "missed"}`;
  figures.push(`| ${name} | ${text(median)} | ${sorted.length > 1 ? text(worst) : ""} | ${verdict} |`);
  return { median, worst };
}

function printTable() {
  record("for comparison: 100,000 words sorted and counted in the same browser", referenceTimes, NaN);
  const table = ["| figure | median | worst | limit | |", "|---|---|---|---|---|", ...figures].join("\n");
  console.log(table);
  const file = process.env["CONSOLE_FIGURES"];
  if (file) writeFileSync(file, `${table}\n`);
}

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

/** A browser profile that is signed in and has loaded nothing of the console. */
async function openNewProfile() {
  const context = await browser.newContext();
  const code = new URL(await daemon.loginUrl()).hash.replace("#code=", "");
  await context.request.post(`${daemon.url}/api/login`, { data: { code }, headers: { origin: daemon.url } });
  const page = await context.newPage();
  browser.watch(page);
  return page;
}

/** Times of a fixed piece of JavaScript in the same run: how fast the machine was, to compare runs on different machines. @type {number[]} */
const referenceTimes = [];

/** @param {Page} page */
async function measureReference(page) {
  const time = await page.evaluate(() => {
    const start = performance.now();
    const words = Array.from({ length: 100_000 }, (_, index) => `word ${(index * 7919) % 100_003}`);
    const text = words.toSorted().join(" ");
    const counts = new Map();
    for (const word of text.split(" ")) counts.set(word, (counts.get(word) ?? 0) + 1);
    return counts.size > 0 ? performance.now() - start : NaN;
  });
  referenceTimes.push(time);
}

/** The time from the navigation to a mark of the page. @param {Page} page @param {string} path @param {string} mark */
async function visit(page, path, mark) {
  await page.goto("about:blank");
  await measureReference(page);
  await page.goto(daemon.url + path);
  await page.waitForFunction((name) => performance.getEntriesByName(name).length > 0, mark);
  return page.evaluate((name) => performance.getEntriesByName(name)[0]?.startTime ?? NaN, mark);
}

/**
 * Measures first visits, each in a new profile, and later ones, with the service worker; returns the page of the latter.
 * @param {string} name @param {string} path @param {string} mark @param {number} limit
 */
async function measureVisits(name, path, mark, limit) {
  const first = [];
  for (let round = 0; round < FIRST_VISITS; round += 1) {
    const page = await openNewProfile();
    first.push(await visit(page, path, mark));
    await page.context().close();
  }
  record(`${name}, first visit`, first, limit);
  const page = await openNewProfile();
  await visit(page, path, mark);
  await page.evaluate(() => navigator.serviceWorker.ready);
  const later = [];
  for (let round = 0; round < LATER_VISITS; round += 1) {
    later.push(await visit(page, path, mark));
    await page.evaluate(() => new Promise((resolve) => requestIdleCallback(resolve)));
  }
  const { median } = record(`${name}, later visits`, later, limit);
  return { page, median };
}

/** The heap of a page after a garbage collection, in MB. @param {Page} page */
async function heapMegabytes(page) {
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("HeapProfiler.collectGarbage");
  const { usedSize } = await devtools.send("Runtime.getHeapUsage");
  return usedSize / 1e6;
}

test("a session of 100,000 events opens at its end, and its beginning can be reached", async () => {
  const path = `/console/sessions/${await openLongSession()}`;
  const { page, median } = await measureVisits(`end of a session of ${EVENTS} events painted`, path, "transcript-painted", 500);
  const heap = await heapMegabytes(page);
  record("the same: heap", [heap], 150, "MB");
  await page.locator("[data-transcript-item]").last().waitFor();
  await page.keyboard.press("Control+Home");
  await page.locator("[data-transcript-start]").waitFor({ state: "attached" });
  await page.locator('[data-index="0"] [data-transcript-item]').waitFor();
  const end = await heapMegabytes(page);
  record("the same: heap at the beginning of the session", [end], 150, "MB");
  assert.ok(median <= 500 && Math.max(heap, end) <= 150);
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
  await daemon.prompt(sessionId, `slow ${STREAM_SECONDS * 1000} 1`);
  await page.waitForTimeout(WARM_UP_SECONDS * 1000);
  await page.evaluate(() => /** @type {any} */ (globalThis).longTasks.splice(0));
  const measureWork = await startWorkMeasurement(page);
  const early = await measureWork(10);
  await measureWork(STREAM_SECONDS - WARM_UP_SECONDS - 20);
  const late = await measureWork(10);
  const tasks = await page.evaluate(() => /** @type {number[]} */ (/** @type {any} */ (globalThis).longTasks));
  const longest = Math.max(0, ...tasks);
  record(`1,000 tokens/s for ${STREAM_SECONDS} s: longest task after ${WARM_UP_SECONDS} s`, [longest], 100);
  record("the same: processor time in the last 10 s, as a multiple of that in the first", [late / early], 1.5, "times");
  record("the same: heap", [await heapMegabytes(page)], 150, "MB");
  assert.ok(longest <= 100, `long tasks: ${tasks}`);
  browser.assertNoProblems();
});

/** Returns a function that waits for some seconds and returns for how many of them the page has worked. @param {Page} page */
async function startWorkMeasurement(page) {
  const devtools = await page.context().newCDPSession(page);
  // The time of the processor, which other programs on the machine do not change.
  await devtools.send("Performance.enable", { timeDomain: "threadTicks" });
  const readTotal = async () => {
    const { metrics } = await devtools.send("Performance.getMetrics");
    return metrics.find((it) => it.name === "TaskDuration")?.value ?? NaN;
  };
  return async (/** @type {number} */ seconds) => {
    const start = await readTotal();
    await page.waitForTimeout(seconds * 1000);
    return (await readTotal()) - start;
  };
}

test("a list of 10,000 sessions paints and filters fast", async () => {
  const sessionId = await daemon.openSession("hello");
  await daemon.waitForState(sessionId, "idle");
  for (let count = 0; count < SESSIONS; count += FORKS_AT_ONCE) {
    const forks = Array.from({ length: FORKS_AT_ONCE }, () => daemon.api("POST", `/api/sessions/${sessionId}/fork`, { at: 1 }));
    await Promise.all(forks);
  }
  const { page, median } = await measureVisits(`list of ${SESSIONS} sessions painted`, "/console/", "sessions-painted", 300);
  await page.waitForFunction((count) => Number(document.querySelector("[data-session-count]")?.getAttribute("data-session-count")) > count, SESSIONS, { timeout: 30_000 });
  await page.evaluate(() => {
    const painted = /** @type {number[]} */ ([]);
    Object.assign(globalThis, { painted });
    // From the key until the result is painted, in steps of 8 ms.
    const add = (/** @type {PerformanceObserverEntryList} */ list) => painted.push(...list.getEntries().filter((it) => it.name === "keydown").map((it) => it.duration));
    new PerformanceObserver(add).observe(/** @type {any} */ ({ type: "event", durationThreshold: 16 }));
  });
  await page.keyboard.press("/");
  await page.keyboard.type("fake work", { delay: 100 });
  await page.keyboard.press("Escape");
  const filters = await page.evaluate(() => performance.getEntriesByName("sessions-filtered", "measure").map((it) => it.duration));
  const painted = await page.evaluate(() => /** @type {number[]} */ (/** @type {any} */ (globalThis).painted));
  const { worst } = record("the same: filtered after a key", filters, 50);
  record("the same: filtered and painted after a key", painted.length > 0 ? painted : [16], 50);
  record("the same: heap", [await heapMegabytes(page)], 150, "MB");
  assert.ok(median <= 300 && worst <= 50);
  browser.assertNoProblems();
});
