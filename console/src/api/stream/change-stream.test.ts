import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ChangeStream } from "./change-stream";
import type { StreamMessage } from "./messages";

/** A daemon that records the requested addresses and sends what the test writes. */
class FakeDaemon {
  readonly urls: string[] = [];
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  status = 200;

  fetch = async (url: string, init: RequestInit): Promise<Response> => {
    this.urls.push(url);
    if (this.status !== 200) return new Response("{}", { status: this.status });
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.#controller = controller;
        init.signal?.addEventListener("abort", () => controller.error(init.signal?.reason));
      },
    });
    return new Response(body);
  };

  send(event: string, data: unknown, id?: string): void {
    const lines = `${id === undefined ? "" : `id: ${id}\n`}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
    this.#controller?.enqueue(new TextEncoder().encode(lines));
  }

  cut(): void {
    this.#controller?.error(new Error("cut"));
  }
}

let daemon: FakeDaemon;
beforeEach(() => {
  vi.useFakeTimers();
  daemon = new FakeDaemon();
  vi.stubGlobal("fetch", daemon.fetch);
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const settle = (ms = 50): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);

function openPage(stream: ChangeStream) {
  const received: StreamMessage[] = [];
  const page = { send: (it: StreamMessage) => received.push(it) };
  stream.addPage(page);
  const events = () => received.flatMap((it) => (it.type === "log" ? it.events.map((event) => event.seq) : []));
  return { page, received, events };
}

test("a lost connection continues after the last change and the last event of each session", async () => {
  const stream = new ChangeStream();
  const { page, events, received } = openPage(stream);
  stream.handlePageMessage(page, { type: "follow", sessionId: "s-1", after: 7 });
  await settle();
  expect(daemon.urls.at(-1)).toBe("/api/events?follow=s-1%3A7");
  daemon.send("reset", {}, "b-1");
  daemon.send("session", { sessionId: "s-1" }, "b-2");
  daemon.send("ready", {}, "b-3");
  daemon.send("log", { sessionId: "s-1", event: { seq: 8, at: 1, is: "said" } });
  await settle();
  expect(events()).toEqual([8]);
  daemon.cut();
  await settle(0);
  expect(received.at(-1)).toMatchObject({ type: "connection", state: { status: "lost", why: "cut" } });
  await settle(1000);
  expect(daemon.urls.at(-1)).toBe("/api/events?after=b-3&follow=s-1%3A8");
});

test("a second page gets the rows that are known, and the position of a session that it knows less of", async () => {
  const stream = new ChangeStream();
  const first = openPage(stream);
  stream.handlePageMessage(first.page, { type: "follow", sessionId: "s-1", after: 7 });
  await settle();
  daemon.send("session", { sessionId: "s-1" }, "b-2");
  daemon.send("ready", {}, "b-3");
  daemon.send("log", { sessionId: "s-1", event: { seq: 8, at: 1, is: "said" } });
  await settle();
  const requests = daemon.urls.length;
  const second = openPage(stream);
  expect(second.received.at(-1)).toMatchObject({ type: "snapshot", sessions: [{ sessionId: "s-1" }], complete: true });
  stream.handlePageMessage(second.page, { type: "follow", sessionId: "s-1", after: 5 });
  expect(second.received.at(-1)).toEqual({ type: "position", sessionId: "s-1", last: 8 });
  daemon.send("log", { sessionId: "s-1", event: { seq: 9, at: 1, is: "said" } });
  await settle(0);
  stream.handlePageMessage(first.page, { type: "follow", sessionId: "s-1", after: 8 });
  expect(first.received.slice(-2)).toMatchObject([{ type: "log", events: [{ seq: 9 }] }, { type: "position", last: 9 }]);
  daemon.send("log", { sessionId: "s-1", event: { seq: 10, at: 1, is: "said" } });
  await settle();
  expect([first.events(), second.events()]).toEqual([[8, 9, 10], [9, 10]]);
  expect(daemon.urls.length).toBe(requests);
});

test("a silent connection is replaced, and a missing login is not retried", async () => {
  const stream = new ChangeStream();
  const { received } = openPage(stream);
  await settle();
  await settle(41_000);
  expect(received.some((it) => it.type === "connection" && it.state.status === "lost")).toBe(true);
  daemon.status = 401;
  await settle(41_000);
  expect(received.at(-1)).toEqual({ type: "connection", state: { status: "signed-out" } });
  const requests = daemon.urls.length;
  await settle(60_000);
  expect(daemon.urls.length).toBe(requests);
});
