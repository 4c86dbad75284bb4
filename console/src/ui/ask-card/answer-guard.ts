/**
 * Prevents an answer by accident: a key that was typed for something else, or a click on a button that has just moved
 * under the pointer, does not answer a request.
 *
 * All times are in milliseconds of `performance.now()`, like `timeStamp` of events. A key that was typed while the page
 * was busy has the time at which it was typed.
 */

/** A request must be visible, in its place and (for keys) focused for this time before it can be answered. */
export const GUARD_MS = 300;

export class AnswerGuard {
  #visibleSince: number | undefined;
  #focusedSince: number | undefined;
  #inPlaceSince = 0;

  setVisible(isVisible: boolean, now: number): void {
    if (!isVisible) this.#visibleSince = undefined;
    else this.#visibleSince ??= now;
  }

  setFocused(isFocused: boolean, now: number): void {
    if (!isFocused) this.#focusedSince = undefined;
    else this.#focusedSince ??= now;
  }

  /** The request has moved, or has other content. */
  setMoved(now: number): void {
    this.#inPlaceSince = now;
  }

  /** Whether a key that was typed at this time is an answer. */
  acceptsKey(at: number): boolean {
    return this.acceptsClick(at) && isOld(this.#focusedSince, at);
  }

  /** Whether a click at this time is an answer. */
  acceptsClick(at: number): boolean {
    return isOld(this.#visibleSince, at) && isOld(this.#inPlaceSince, at);
  }
}

const isOld = (since: number | undefined, at: number): boolean => since !== undefined && since + GUARD_MS <= at;
