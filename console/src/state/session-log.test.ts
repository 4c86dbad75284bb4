/** Tests of the window of events: random interleavings of reads, live events, cuts and jumps. */

import type { LogPage } from "jackfield-client";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { LogQuery } from "../api/log";
import type { LogEvent } from "../api/stream/messages";
import { foldWindow } from "../transcript/fold";
import type { LogFollower } from "./daemon";
import { SessionLog, type LogSource } from "./session-log";

/** A generator of random numbers that repeats with its seed. */
function randomNumbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

class Gone extends Error {}

/** A daemon whose reads are answered when the test says so. */
class TestDaemon implements LogSource {
  readonly log: LogEvent[] = [];
  readonly reads: { answer: () => void; fail: (error: Error) => void }[] = [];
  follower: LogFollower | undefined;
  sent = 0;

  write(count: number): void {
    for (let index = 0; index < count; index += 1) {
      const seq = this.log.length + 1;
      const isPrompt = seq % 10 === 1;
      const update = { sessionUpdate: "agent_message_chunk", content: { type: "text", text: `${seq} ` } };
      const frame = isPrompt ? { params: { prompt: [] } } : { params: { update } };
      this.log.push({ seq, at: seq, is: isPrompt ? "prompted" : "said", turn: Math.ceil(seq / 10), frame });
    }
  }

  read(query: LogQuery): Promise<LogPage> {
    return new Promise((resolve, reject) => {
      this.reads.push({ answer: () => resolve(this.page(query)), fail: reject });
    });
  }

  page({ before, after, limit = 200 }: LogQuery): LogPage {
    const end = before === undefined ? this.log.length : Math.max(0, before - 1);
    const [from, to] = after === undefined ? [Math.max(0, end - limit), end] : [after, Math.min(after + limit, this.log.length)];
    return { events: this.log.slice(from, to), last: this.log.length, hasBefore: from > 0, hasAfter: to < this.log.length };
  }

  follow(after: number, follower: LogFollower): () => void {
    this.follower = follower;
    this.sent = after;
    return () => (this.follower = undefined);
  }

  /** Sends the next events; with a gap, another page has received some of them. */
  send(count: number, gap = 0): void {
    if (!this.follower) return;
    this.sent = Math.min(this.sent + gap, this.log.length);
    const events = this.log.slice(this.sent, this.sent + count);
    this.sent += events.length;
    if (events.length > 0) this.follower.onEvents(events);
    else this.follower.onPosition(this.sent);
  }

  canRetry = (error: unknown): boolean => !(error instanceof Gone);
  isGone = (error: unknown): boolean => error instanceof Gone;

  async answerAll(): Promise<void> {
    while (this.reads.length > 0) {
      for (const it of this.reads.splice(0)) it.answer();
      await vi.advanceTimersByTimeAsync(0);
    }
  }
}

const seqs = (log: SessionLog): number[] => log.events.map((it) => it.seq);
const range = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, index) => from + index);

async function opened(daemon: TestDaemon, position: Parameters<SessionLog["open"]>[0] = "end"): Promise<SessionLog> {
  const log = new SessionLog(daemon, () => {});
  void log.open(position);
  await daemon.answerAll();
  return log;
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe("a log", () => {
  test("opens at its end and grows in both directions", async () => {
    const daemon = new TestDaemon();
    daemon.write(2000);
    const log = await opened(daemon);
    expect(seqs(log)).toEqual(range(1751, 2000));
    void log.loadOlder();
    await daemon.answerAll();
    expect(seqs(log)).toEqual(range(1251, 2000));
    daemon.write(3);
    daemon.send(3);
    expect(seqs(log)).toEqual(range(1251, 2003));
    expect(log.state).toMatchObject({ status: "ready", hasBefore: true, isAtEnd: true, last: 2003 });
  });

  test("opens around an event, and follows the session when its end is reached", async () => {
    const daemon = new TestDaemon();
    daemon.write(1000);
    const log = await opened(daemon, { seq: 300 });
    expect(seqs(log)).toEqual(range(151, 450));
    daemon.write(1);
    daemon.send(1);
    expect(log.state).toMatchObject({ isAtEnd: false, last: 1001 });
    for (let page = 0; page < 2; page += 1) {
      void log.loadNewer();
      await daemon.answerAll();
    }
    daemon.write(5);
    daemon.send(5);
    expect(seqs(log)).toEqual(range(151, 1006));
  });

  test("fills a gap before an event that came early", async () => {
    const daemon = new TestDaemon();
    daemon.write(10);
    const log = await opened(daemon);
    daemon.write(10);
    daemon.send(2, 6);
    expect(seqs(log)).toEqual(range(1, 10));
    await daemon.answerAll();
    expect(seqs(log)).toEqual(range(1, 20));
  });

  test("goes on after events that cannot be read", async () => {
    const daemon = new TestDaemon();
    daemon.write(20);
    const read = daemon.page.bind(daemon);
    daemon.page = (query) => {
      const page = read(query);
      return { ...page, events: page.events.filter((it) => it.seq !== 15 && it.seq !== 20) };
    };
    const log = await opened(daemon);
    daemon.write(5);
    daemon.send(5);
    await daemon.answerAll();
    expect(seqs(log)).toEqual([...range(1, 14), ...range(16, 19), ...range(21, 25)]);
    expect(log.state.error).toBeUndefined();
  });

  test("drops old events while it follows, and none while the reader is elsewhere", async () => {
    const daemon = new TestDaemon();
    daemon.write(100);
    const log = await opened(daemon);
    for (let step = 0; step < 80; step += 1) {
      daemon.write(100);
      daemon.send(100);
    }
    expect(log.events.length).toBeLessThanOrEqual(5000);
    expect(seqs(log)).toEqual(range((log.events[0] as LogEvent).seq, 8100));
    log.keepsEnd = false;
    const first = log.events[0];
    for (let step = 0; step < 80; step += 1) {
      daemon.write(100);
      daemon.send(100);
    }
    expect(log.events[0]).toBe(first);
    expect(log.state).toMatchObject({ isAtEnd: false, last: 16_100 });
  });

  test("is gone when the session does not exist, and retries after other errors", async () => {
    const daemon = new TestDaemon();
    daemon.write(1);
    const log = new SessionLog(daemon, () => {});
    void log.open("end");
    daemon.reads.splice(0).forEach((it) => it.fail(new Error("no network")));
    await vi.advanceTimersByTimeAsync(0);
    expect(log.state.status).toBe("loading");
    await vi.advanceTimersByTimeAsync(10_000);
    await daemon.answerAll();
    expect(seqs(log)).toEqual([1]);
    void log.open("end");
    daemon.reads.splice(0).forEach((it) => it.fail(new Gone()));
    await vi.advanceTimersByTimeAsync(0);
    expect(log.state.status).toBe("gone");
  });
});

test.each(range(1, 20))("nothing is doubled, lost or reordered (seed %i)", async (seed) => {
  const random = randomNumbers(seed);
  const daemon = new TestDaemon();
  daemon.write(random(3000));
  const log = new SessionLog(daemon, () => {});
  void log.open("end");
  const steps = [
    () => daemon.write(random(40)),
    () => daemon.send(random(30)),
    () => daemon.send(random(30), random(20)),
    () => daemon.reads.splice(random(daemon.reads.length), 1)[0]?.answer(),
    () => daemon.reads.splice(random(daemon.reads.length), 1)[0]?.answer(),
    () => random(3) === 0 && daemon.reads.splice(0, 1)[0]?.fail(new Error("cut")),
    () => void log.loadOlder(),
    () => void log.loadNewer(),
    () => random(4) === 0 && void log.open("end"),
    () => random(4) === 0 && void log.open("beginning"),
    () => random(4) === 0 && void log.open({ seq: 1 + random(daemon.log.length) }),
    () => (log.keepsEnd = random(2) === 0),
    () => vi.advanceTimersByTimeAsync(random(2000)),
  ];
  for (let step = 0; step < 300; step += 1) {
    await steps[random(steps.length)]?.();
    await vi.advanceTimersByTimeAsync(0);
    const first = log.events[0]?.seq ?? 0;
    expect(log.events.every((it, index) => it.seq === first + index)).toBe(true);
  }
  void log.open("end");
  daemon.send(100_000);
  await daemon.answerAll();
  await vi.advanceTimersByTimeAsync(10_000);
  await daemon.answerAll();
  expect(log.events.at(-1)?.seq ?? 0).toBe(daemon.log.length);
  const withoutKeys = (it: { key: string }): object => ({ ...it, key: "" });
  expect(log.items.map(withoutKeys)).toEqual(foldWindow(log.events, []).items.map(withoutKeys));
});
