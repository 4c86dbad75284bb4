/** Notifications: what the daemon pushes is shown without content, and a click leads to the session or the inbox. */

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { PushService } from "./support/push-service.mjs";
import { startDaemonAndBrowser } from "./support/start.mjs";
import { waitFor } from "./support/wait.mjs";

/** @typedef {import("playwright-core").Page} Page */

const { daemon, browser } = await startDaemonAndBrowser();
const service = await PushService.start();
after(() => service.close());
const page = await browser.signIn(daemon);
await page.context().grantPermissions(["notifications"], { origin: daemon.url });
await page.waitForFunction(() => navigator.serviceWorker.controller !== null);
await page.evaluate(async (subscription) => {
  const headers = { "content-type": "application/json", "x-jackfield-console": "1" };
  const { ok } = await fetch("/api/push/subscriptions", { method: "POST", headers, body: JSON.stringify(subscription) });
  if (!ok) throw new Error("the daemon refused the subscription");
}, service.subscription);
const deliver = await connectWorker();

/** Returns a function that hands a message to the service worker, as the browser does when one arrives. */
async function connectWorker() {
  const devtools = await page.context().newCDPSession(page);
  const registered = new Promise((resolve) =>
    devtools.on("ServiceWorker.workerRegistrationUpdated", ({ registrations }) => resolve(registrations[0]?.registrationId)),
  );
  await devtools.send("ServiceWorker.enable");
  const registrationId = /** @type {string} */ (await registered);
  return (/** @type {string} */ data) => devtools.send("ServiceWorker.deliverPushMessage", { origin: daemon.url, registrationId, data });
}

/** The message of the daemon about this event of a session. @param {string} event @param {string} sessionId */
const pushed = (event, sessionId) =>
  waitFor(`the message ${event}`, () => service.messages.find((it) => JSON.parse(it).event === event && it.includes(sessionId)));

/** The notifications that the browser shows. */
const shown = () =>
  page.evaluate(async () => {
    const all = await (await navigator.serviceWorker.ready).getNotifications();
    return all.map(({ title, body }) => ({ title, body }));
  });

/** Waits for these notifications. @param {{ title: string, body: string }[]} expected */
async function waitUntilShown(expected) {
  await waitFor("the notifications", async () => (await shown()).length === expected.length);
  assert.deepEqual(await shown(), expected);
}

/**
 * Sends the event of a click to the service worker. Chromium has no command for it, and does not let an event that a
 * script has made keep the worker running: so its promise is awaited here.
 */
async function clickNotification() {
  const [worker] = page.context().serviceWorkers();
  await worker?.evaluate(async () => {
    const scope = /** @type {any} */ (globalThis);
    const [notification] = await scope.registration.getNotifications();
    const event = new scope.NotificationEvent("notificationclick", { notification });
    let work;
    Object.defineProperty(event, "waitUntil", { value: (/** @type {Promise<void>} */ it) => (work = it) });
    scope.dispatchEvent(event);
    await work;
  });
}

test("a session that is done is shown without its content, and a click opens it", async () => {
  const sessionId = await daemon.openSession("a secret plan");
  const message = await pushed("done", sessionId);
  assert.ok(!message.includes("secret"), message);
  await deliver(message);
  await waitUntilShown([{ title: "A session is done", body: "" }]);
  await clickNotification();
  await page.waitForURL(`**/console/sessions/${sessionId}`);
  await page.locator("[data-transcript-item]", { hasText: "a secret plan" }).first().waitFor();
  await waitUntilShown([]);
  browser.assertNoProblems();
});

test("a request leads to the inbox, and replaces the notification before it", async () => {
  const sessionId = await daemon.openSession("ask-about a secret file");
  const message = await pushed("needs_you", sessionId);
  assert.ok(!message.includes("secret"), message);
  await deliver(message);
  await deliver(message);
  await waitUntilShown([{ title: "A session needs you", body: "" }]);
  await clickNotification();
  await page.waitForURL("**/console/inbox");
  await page.locator(`[data-ask^="${sessionId}/"]`).waitFor();
  browser.assertNoProblems();
});

test("content is shown if the daemon sends it, and a message that cannot be read is a request", async () => {
  await deliver(JSON.stringify({ event: "failed", sessionId: "s-1", title: "Fix the parser", what: "exit status 1" }));
  await waitUntilShown([{ title: "A session has failed", body: "Fix the parser: exit status 1" }]);
  await clickNotification();
  await page.waitForURL("**/console/sessions/s-1");
  await deliver("not JSON");
  await waitUntilShown([{ title: "A session needs you", body: "" }]);
});
