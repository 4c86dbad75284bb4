/** Connects this page to the change stream: in the shared worker, or in the page where a browser has no such worker. */

import { workerUrl } from "../../trusted";
import { ChangeStream, type StreamPage } from "./change-stream";
import type { PageMessage, StreamMessage } from "./messages";
import sharedWorkerUrl from "./shared-worker?sharedworker&url";

/** Sends a message of this page to the stream. */
export type SendToStream = (message: PageMessage) => void;

/** Calls `receive` for every message of the stream, the first ones soon after this call. */
export function connectStream(receive: (message: StreamMessage) => void): SendToStream {
  const send = "SharedWorker" in globalThis ? connectWorker(receive) : connectLocally(receive);
  // A page in the back/forward cache comes back with a closed stream, and is loaded again.
  addEventListener("pagehide", () => send({ type: "close" }));
  addEventListener("pageshow", (event) => event.persisted && location.reload());
  addEventListener("online", () => send({ type: "connect" }));
  document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && send({ type: "connect" }));
  return send;
}

function connectWorker(receive: (message: StreamMessage) => void): SendToStream {
  const { port } = new SharedWorker(workerUrl(sharedWorkerUrl), { type: "module", name: "jackfield" });
  port.onmessage = (event: MessageEvent<StreamMessage>) => receive(event.data);
  return (message) => port.postMessage(message);
}

function connectLocally(receive: (message: StreamMessage) => void): SendToStream {
  const stream = new ChangeStream();
  const page: StreamPage = { send: (message) => queueMicrotask(() => receive(message)) };
  stream.addPage(page);
  return (message) => stream.handlePageMessage(page, message);
}
