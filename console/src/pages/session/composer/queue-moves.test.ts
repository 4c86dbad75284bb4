/** Tests of moves in the queue. */

import type { WaitingPrompt } from "jackfield-client";
import { expect, test } from "vitest";
import { moveBy, moveTo } from "./queue-moves";

const waiting = (prompt: number, more: Partial<WaitingPrompt> = {}): WaitingPrompt => ({
  prompt,
  by: "api",
  at: "",
  text: "",
  held: false,
  steers: false,
  ...more,
});
const queue = [waiting(7, { steers: true }), waiting(1), waiting(2), waiting(3), waiting(9, { held: true })];

test("a move names the prompt that follows", () => {
  expect(moveTo(queue, 3, 1)).toEqual({ prompt: 3, before: 1 });
  expect(moveTo(queue, 1, 2)).toEqual({ prompt: 1, before: 3 });
  expect(moveTo(queue, 1, 3)).toEqual({ prompt: 1, before: null });
});

test("steps stop at the ends, and steering and held prompts stay where they are", () => {
  expect(moveBy(queue, 2, -1)).toEqual({ prompt: 2, before: 1 });
  expect(moveBy(queue, 2, 1)).toEqual({ prompt: 2, before: null });
  expect(moveBy(queue, 1, -1)).toBeUndefined();
  expect(moveBy(queue, 3, 1)).toBeUndefined();
  expect(moveBy(queue, 9, -1)).toBeUndefined();
  expect(moveTo(queue, 1, 7)).toBeUndefined();
  expect(moveTo(queue, 1, 1)).toBeUndefined();
});
