/** When cards of requests last moved on the page because another one appeared or disappeared. */

let changedAt = -Infinity;

/** In milliseconds of `performance.now()`. */
export const layoutChangedAt = (): number => changedAt;

export const noteLayoutChange = (): void => {
  changedAt = performance.now();
};
