/** Tests of the time before a request can be answered. */

import { expect, test } from "vitest";
import { AnswerGuard, GUARD_MS } from "./answer-guard";

test("a key answers only after the request was visible and focused for the interval", () => {
  const guard = new AnswerGuard();
  expect(guard.acceptsKey(10_000)).toBe(false);
  guard.setVisible(true, 10_000);
  expect(guard.acceptsKey(20_000)).toBe(false);
  guard.setFocused(true, 20_000);
  expect(guard.acceptsKey(20_000 + GUARD_MS - 1)).toBe(false);
  expect(guard.acceptsKey(20_000 + GUARD_MS)).toBe(true);
});

test("a key that was typed earlier and arrives late does not answer", () => {
  const guard = new AnswerGuard();
  guard.setVisible(true, 10_000);
  guard.setFocused(true, 10_000);
  // The page was busy: the event arrives now and has the time of the key.
  expect(guard.acceptsKey(9_990)).toBe(false);
  expect(guard.acceptsKey(10_100)).toBe(false);
});

test("the interval starts again when the request was hidden, unfocused or moved", () => {
  const guard = new AnswerGuard();
  guard.setVisible(true, 1_000);
  guard.setFocused(true, 1_000);
  guard.setFocused(true, 5_000);
  expect(guard.acceptsKey(5_001)).toBe(true);
  guard.setMoved(6_000);
  expect(guard.acceptsKey(6_100)).toBe(false);
  guard.setFocused(false, 7_000);
  guard.setFocused(true, 7_000);
  expect(guard.acceptsKey(7_100)).toBe(false);
  guard.setVisible(false, 8_000);
  guard.setVisible(true, 8_000);
  expect(guard.acceptsKey(8_100)).toBe(false);
  expect(guard.acceptsKey(8_300)).toBe(true);
});

test("a click needs no focus", () => {
  const guard = new AnswerGuard();
  guard.setVisible(true, 1_000);
  expect(guard.acceptsClick(1_299)).toBe(false);
  expect(guard.acceptsClick(1_300)).toBe(true);
});
