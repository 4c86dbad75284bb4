// @vitest-environment jsdom

/** Tests of how updates are collected into frames. */

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { FrameQueue } from "./frame-queue";

beforeEach(() => {
  vi.useFakeTimers();
  vi.spyOn(document, "visibilityState", "get").mockReturnValue("visible");
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

test("many requests run in every second frame", () => {
  const run = vi.fn();
  const queue = new FrameQueue(run);
  for (let ms = 0; ms < 160; ms += 1) {
    queue.request();
    vi.advanceTimersByTime(1);
  }
  expect(run.mock.calls.length).toBeGreaterThanOrEqual(4);
  expect(run.mock.calls.length).toBeLessThanOrEqual(6);
});

test("slow frames are followed by a pause as long as they took", () => {
  const run = vi.fn(() => void vi.advanceTimersByTime(80));
  const queue = new FrameQueue(run);
  const start = performance.now();
  while (performance.now() - start < 1600) {
    queue.request();
    vi.advanceTimersByTime(1);
  }
  expect(run.mock.calls.length).toBeGreaterThanOrEqual(8);
  expect(run.mock.calls.length).toBeLessThanOrEqual(11);
});
