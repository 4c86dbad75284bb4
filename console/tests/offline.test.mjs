/** The installed console: offline shell, last known list, and that nothing of the API is kept. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { startDaemonAndBrowser } from "./support/start.mjs";
import { waitFor } from "./support/wait.mjs";

/** @typedef {import("playwright-core").Page} Page */

const { daemon, browser } = await startDaemonAndBrowser();

/** The stored list of sessions. @param {Page} page */
const storedSessions = (page) =>
  page.evaluate(
    () =>
      new Promise((resolve, reject) => {
        const opened = indexedDB.open("jackfield", 1);
        opened.onupgradeneeded = () => opened.result.createObjectStore("lists");
        opened.onerror = () => reject(opened.error);
        opened.onsuccess = () => {
          const read = opened.result.transaction("lists").objectStore("lists").get("sessions");
          read.onsuccess = () => {
            opened.result.close();
            resolve((read.result?.sessions ?? []).map((/** @type {any} */ it) => it.sessionId));
          };
        };
      }),
  );

test("without the daemon, a reloaded page shows the last known list with its age", async () => {
  const sessionId = await daemon.openSession("hello");
  await daemon.waitForState(sessionId, "idle");
  const page = await browser.signIn(daemon, { phone: true });
  await page.locator("[data-session-row]").first().waitFor();
  await page.waitForFunction(() => navigator.serviceWorker.controller !== null);
  await waitFor("the list to be stored", async () => /** @type {string[]} */ (await storedSessions(page)).includes(sessionId));
  const kept = await page.evaluate(async () => {
    const names = await caches.keys();
    const requests = await Promise.all(names.map(async (it) => (await caches.open(it)).keys()));
    return requests.flat().map((it) => new URL(it.url).pathname);
  });
  assert.ok(kept.length > 5 && kept.every((it) => it.startsWith("/console/")), kept.join(" "));

  await daemon.end("SIGKILL");
  await page.reload();
  await page.locator("[data-session-row]").first().waitFor();
  await page.getByRole("status").getByText("The list is the last known one").waitFor();

  await daemon.restart();
  await page.getByText("The list is the last known one").waitFor({ state: "detached" });
  await page.locator("[data-session-row]").first().waitFor();
  browser.assertNoProblems();

  // A device that is revoked keeps no list.
  const { devices } = await daemon.api("GET", "/api/devices");
  const headers = { authorization: `Bearer ${daemon.token}` };
  for (const { id } of devices) await fetch(`${daemon.url}/api/devices/${id}`, { method: "DELETE", headers });
  await page.getByRole("status").getByText("This browser is signed out").waitFor();
  await waitFor("the list to be deleted", async () => /** @type {string[]} */ (await storedSessions(page)).length === 0);
});

test("the console can be installed", async () => {
  const page = await browser.signIn(daemon);
  const manifest = await page.evaluate(async () => {
    const link = /** @type {HTMLLinkElement} */ (document.querySelector('link[rel="manifest"]'));
    const read = await fetch(link.href);
    const { icons, start_url, display } = await read.json();
    const sizes = await Promise.all(icons.map(async (/** @type {any} */ it) => (await fetch(new URL(it.src, link.href))).status));
    return { type: read.headers.get("content-type"), start_url, display, sizes };
  });
  assert.equal(manifest.type, "application/manifest+json");
  assert.deepEqual([manifest.start_url, manifest.display], ["/console/", "standalone"]);
  assert.deepEqual(new Set(manifest.sizes), new Set([200]));
  browser.assertNoProblems();
});
