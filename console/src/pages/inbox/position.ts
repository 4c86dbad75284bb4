/** Movement in a list by keyboard. */

/** The position after a step; from outside (-1) the first step enters the list. It does not wrap. */
export function nextPosition(current: number, step: 1 | -1, length: number): number {
  if (current < 0) return step === 1 ? 0 : length - 1;
  return Math.min(Math.max(current + step, 0), length - 1);
}
