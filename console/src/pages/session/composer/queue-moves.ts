/** The order of the queue: where a prompt may go, and the request for it. */

import type { WaitingPrompt } from "jackfield-client";

export interface QueueMove {
  prompt: number;
  /** The prompt that will follow it; `null` is the end of the queue. */
  before: number | null;
}

/** Held prompts do not run by themselves, and steering ones always run first: neither has a place to choose. */
export const isMovable = (it: WaitingPrompt): boolean => !it.held && !it.steers;

/** Moves a prompt to the place of another one; without a result if that changes nothing or is not possible. */
export function moveTo(queue: readonly WaitingPrompt[], prompt: number, place: number): QueueMove | undefined {
  const movable = queue.filter(isMovable);
  const from = movable.findIndex((it) => it.prompt === prompt);
  const to = movable.findIndex((it) => it.prompt === place);
  if (from < 0 || to < 0 || from === to) return undefined;
  const follower = movable[from < to ? to + 1 : to];
  return { prompt, before: follower?.prompt ?? null };
}

/** Moves a prompt by one place. */
export function moveBy(queue: readonly WaitingPrompt[], prompt: number, step: 1 | -1): QueueMove | undefined {
  const movable = queue.filter(isMovable);
  const neighbor = movable[movable.findIndex((it) => it.prompt === prompt) + step];
  return neighbor && moveTo(queue, prompt, neighbor.prompt);
}
