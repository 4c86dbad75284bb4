/**
 * The console without a connection, and new versions of it.
 *
 * Registers the service worker, stores the list of sessions while the connection is live, and shows the stored list
 * when a page is opened without one.
 */

import { createEffect, createRoot, createSignal, on } from "solid-js";
import { workerUrl } from "../trusted";
import { allSessions, connection, isListComplete, listVersion, showStoredList } from "./daemon";
import { deleteLastList, loadLastList, saveLastList } from "./last-list";

/** The list is stored at most this often. */
const SAVE_MS = 5_000;
const RELOADED_KEY = "reloaded-for-new-version";
const RELOAD_PAUSE_MS = 10_000;

const [isUpdated, setUpdated] = createSignal(false);
/** Whether the daemon serves a newer version than this page. */
export { isUpdated };

/** Called once, when the application starts. */
export function startOfflineSupport(): void {
  // Storage can be disabled in a browser; the console works without it.
  const ignore = (): void => {};
  addEventListener("vite:preloadError", reloadForNewVersion);
  if (import.meta.env.PROD && "serviceWorker" in navigator) addEventListener("load", () => registerWorker().catch(ignore));
  createRoot(() => {
    createEffect(() => {
      const { status } = connection();
      if (status === "signed-out") deleteLastList().catch(ignore);
      if (status === "lost" && !isListComplete()) loadLastList().then((it) => it && showStoredList(it), ignore);
    });
    storeChanges(() => saveLastList(allSessions()).catch(ignore));
  });
}

function storeChanges(save: () => void): void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  createEffect(
    on([listVersion, isListComplete], () => {
      if (!isListComplete()) return;
      timer ??= setTimeout(() => {
        timer = undefined;
        // Of several open pages, those that are visible store the list.
        if (document.visibilityState === "visible" && connection().status === "live") save();
      }, SAVE_MS);
    }),
  );
}

async function registerWorker(): Promise<void> {
  const { serviceWorker } = navigator;
  // The first worker of a browser has the version of the page that registers it.
  let hasWorker = serviceWorker.controller !== null;
  serviceWorker.addEventListener("controllerchange", () => {
    if (hasWorker) setUpdated(true);
    hasWorker = true;
  });
  const registration = await serviceWorker.register(workerUrl("/console/sw.js"), { scope: "/console/" });
  createRoot(() => {
    // A daemon that was restarted can have a new version.
    const isLive = () => connection().status === "live";
    createEffect(on(isLive, (live) => live && void registration.update().catch(() => {}), { defer: true }));
  });
}

/** A page of an old version cannot load its other parts from a new daemon: it is loaded again, but not in a loop. */
function reloadForNewVersion(event: Event): void {
  const last = Number(sessionStorage.getItem(RELOADED_KEY) ?? 0);
  if (!navigator.onLine || Date.now() - last < RELOAD_PAUSE_MS) return;
  event.preventDefault();
  sessionStorage.setItem(RELOADED_KEY, String(Date.now()));
  location.reload();
}
