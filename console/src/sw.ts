/**
 * The service worker, served as `/console/sw.js`: the offline shell and push notifications.
 *
 * It keeps the files of one build of the console. Pages come from the daemon, and from here only when it cannot be
 * reached; other files have a hash in their name and never change. Responses of the API are never kept.
 *
 * This file imports nothing, so that it is built as a classic script, which every browser accepts.
 */

/** The files of the first load and of all pages, relative to `/console/`. The build fills the list in. */
declare const CONSOLE_FILES: string[];
/** Names the build: a hash of its files. */
declare const CONSOLE_BUILD: string;

interface LifetimeEvent extends Event {
  waitUntil(work: Promise<unknown>): void;
}
interface InstallEvent extends LifetimeEvent {
  /** Requests that the browser serves without starting this worker. Not all browsers have it. */
  addRoutes?(routes: { condition: { urlPattern: { pathname: string } }; source: "network" | { cacheName: string } }[]): Promise<void>;
}
interface RequestEvent extends LifetimeEvent {
  readonly request: Request;
  /** The response to a page that the browser requests while this worker starts. */
  readonly preloadResponse: Promise<Response | undefined>;
  respondWith(response: Promise<Response>): void;
}
interface PushMessageEvent extends LifetimeEvent {
  readonly data: { json(): unknown } | null;
}
interface NotificationClickEvent extends LifetimeEvent {
  readonly notification: Notification;
}
interface WindowClient {
  readonly url: string;
  focus(): Promise<WindowClient>;
  navigate(url: string): Promise<WindowClient | null>;
}
interface WorkerScope {
  readonly registration: ServiceWorkerRegistration;
  readonly clients: {
    claim(): Promise<void>;
    matchAll(options: { type: "window"; includeUncontrolled: boolean }): Promise<WindowClient[]>;
    openWindow(url: string): Promise<WindowClient | null>;
  };
  skipWaiting(): Promise<void>;
  addEventListener(type: "install", listener: (event: InstallEvent) => void): void;
  addEventListener(type: "activate", listener: (event: LifetimeEvent) => void): void;
  addEventListener(type: "fetch", listener: (event: RequestEvent) => void): void;
  addEventListener(type: "push", listener: (event: PushMessageEvent) => void): void;
  addEventListener(type: "notificationclick", listener: (event: NotificationClickEvent) => void): void;
}

const worker = globalThis as unknown as WorkerScope;
const BASE = "/console/";
const CACHE_PREFIX = "console-";
const CACHE = CACHE_PREFIX + CONSOLE_BUILD;
/** A daemon that does not answer in this time is treated as unreachable. */
const PAGE_TIMEOUT_MS = 4_000;

worker.addEventListener("install", (event) => {
  const keepFiles = async (): Promise<void> => {
    const cache = await caches.open(CACHE);
    await cache.addAll([BASE, ...CONSOLE_FILES.map((it) => BASE + it)]);
    // Names of files have hashes: a new build and open pages of the old one do not disturb each other.
    await worker.skipWaiting();
  };
  event.waitUntil(keepFiles());
  const route = (pathname: string, source: "network" | { cacheName: string }) => ({ condition: { urlPattern: { pathname } }, source });
  const routes = event.addRoutes?.([route(`${BASE}assets/*`, { cacheName: CACHE }), route("/api/*", "network")]);
  // Without them, the listener below serves these requests.
  if (routes) event.waitUntil(routes.catch(() => {}));
});

worker.addEventListener("activate", (event) => {
  const dropOldBuilds = async (): Promise<void> => {
    const names = await caches.keys();
    await Promise.all(names.filter((it) => it.startsWith(CACHE_PREFIX) && it !== CACHE).map((it) => caches.delete(it)));
    await worker.registration.navigationPreload?.enable();
    await worker.clients.claim();
  };
  event.waitUntil(dropOldBuilds());
});

worker.addEventListener("fetch", (event) => {
  const { request } = event;
  const { origin, pathname } = new URL(request.url);
  if (request.method !== "GET" || origin !== location.origin || !pathname.startsWith(BASE)) return;
  if (request.mode === "navigate") event.respondWith(loadPage(event));
  else if (pathname.startsWith(`${BASE}assets/`)) event.respondWith(loadFile(request));
});

/** The page of the daemon, or the kept one if the daemon cannot be reached. */
async function loadPage({ request, preloadResponse }: RequestEvent): Promise<Response> {
  const timeout = AbortSignal.timeout(PAGE_TIMEOUT_MS);
  const late = new Promise<never>((_, reject) => timeout.addEventListener("abort", () => reject(timeout.reason)));
  try {
    return (await Promise.race([preloadResponse, late])) ?? (await fetch(request, { signal: timeout }));
  } catch (error) {
    const kept = await caches.match(BASE);
    if (kept) return kept;
    throw error;
  }
}

/** A file whose name has a hash: the kept one, or that of the daemon, which is kept from then on. */
async function loadFile(request: Request): Promise<Response> {
  const kept = await caches.match(request);
  if (kept) return kept;
  const response = await fetch(request);
  if (response.ok) await (await caches.open(CACHE)).put(request, response.clone());
  return response;
}

/** A notification of the daemon. It has a title and a request only if `push_content` is set in its configuration. */
interface PushPayload {
  event?: string;
  sessionId?: string;
  title?: string;
  what?: string;
}

const EVENT_TEXTS: Record<string, string> = {
  needs_you: "A session needs you",
  done: "A session is done",
  failed: "A session has failed",
};

worker.addEventListener("push", (event) => {
  const { event: name = "needs_you", sessionId = "", title, what } = readPayload(event.data);
  const text = EVENT_TEXTS[name] ?? "A session needs you";
  const options = {
    body: title === undefined ? "" : [title, what].filter(Boolean).join(": "),
    icon: `${BASE}icon-192.png`,
    badge: `${BASE}icon-192.png`,
    // A later notification of the session replaces this one.
    tag: sessionId || text,
    data: name === "needs_you" || sessionId === "" ? "inbox" : `sessions/${encodeURIComponent(sessionId)}`,
  };
  event.waitUntil(worker.registration.showNotification(text, options));
});

function readPayload(data: PushMessageEvent["data"]): PushPayload {
  try {
    return (data?.json() ?? {}) as PushPayload;
  } catch {
    return {};
  }
}

worker.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(showPage(BASE + String(event.notification.data ?? "")));
});

/** Shows a page of the console in an open window, or in a new one. */
async function showPage(path: string): Promise<void> {
  const url = new URL(path, location.origin).href;
  const open = await worker.clients.matchAll({ type: "window", includeUncontrolled: true });
  const shown = open.find((it) => it.url === url) ?? open.find((it) => it.url.startsWith(location.origin + BASE));
  if (!shown) return void (await worker.clients.openWindow(url));
  // A browser can refuse to show a window over others; the page is opened in it nevertheless.
  await shown.focus().catch(() => undefined);
  if (shown.url !== url) await shown.navigate(url);
}
