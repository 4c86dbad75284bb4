/** The worker that owns the change stream of all pages of this browser. */

import { ChangeStream, type StreamPage } from "./change-stream";
import type { PageMessage } from "./messages";

const stream = new ChangeStream();

(globalThis as unknown as { onconnect: (event: MessageEvent) => void }).onconnect = (event) => {
  const port = event.ports[0] as MessagePort;
  const page: StreamPage = { send: (message) => port.postMessage(message) };
  port.onmessage = (it: MessageEvent<PageMessage>) => stream.handlePageMessage(page, it.data);
  stream.addPage(page);
};
