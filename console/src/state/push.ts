/** Push notifications of this browser: whether it can have them, and turning them on and off. */

import type { PushSubscriptionKeys } from "jackfield-client";
import { api } from "../api/client";

/** `unsupported` also on pages without TLS that are not on this computer. */
export type PushState = "unsupported" | "denied" | "off" | "on";

/** A service worker that is not registered in this time was refused by the browser. */
const WORKER_MS = 10_000;

/** Waits for the service worker, which is registered after the page is loaded. */
async function findPushManager(): Promise<PushManager | undefined> {
  if (!("serviceWorker" in navigator) || !("PushManager" in globalThis) || !("Notification" in globalThis)) return undefined;
  const timeout = new Promise<undefined>((resolve) => setTimeout(() => resolve(undefined), WORKER_MS));
  return (await Promise.race([navigator.serviceWorker.ready, timeout]))?.pushManager;
}

export async function readPushState(): Promise<PushState> {
  const manager = await findPushManager();
  if (!manager) return "unsupported";
  if (Notification.permission === "denied") return "denied";
  return (await manager.getSubscription()) === null ? "off" : "on";
}

/** Asks the user for the permission, subscribes at the push service of the browser, and tells the daemon. */
export async function turnPushOn(): Promise<PushState> {
  const manager = await findPushManager();
  if (!manager) return "unsupported";
  if ((await Notification.requestPermission()) !== "granted") return readPushState();
  const key = await api.push.key();
  const known = await manager.getSubscription();
  // A subscription for the key of another daemon cannot be used.
  if (known && !isSameKey(known, key)) await known.unsubscribe();
  const subscription = await manager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
  const { endpoint, keys } = subscription.toJSON();
  await api.push.subscribe({ endpoint, keys } as PushSubscriptionKeys);
  return "on";
}

export async function turnPushOff(): Promise<PushState> {
  const subscription = await (await findPushManager())?.getSubscription();
  await subscription?.unsubscribe();
  await api.push.unsubscribe();
  return readPushState();
}

function isSameKey(subscription: PushSubscription, key: string): boolean {
  const bytes = new Uint8Array(subscription.options.applicationServerKey ?? new ArrayBuffer(0));
  const text = btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  return text === key;
}
