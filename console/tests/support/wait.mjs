/** Waits for a condition with a bound. */

/** Tells a page that hangs from one that is slow: a machine of two cores has been ten times as slow for a minute. */
export const WAIT_MS = 60_000;

/**
 * Returns the first result that is not falsy.
 * @template T
 * @param {string} what
 * @param {() => T | Promise<T>} check
 * @returns {Promise<NonNullable<Awaited<T>>>}
 */
export async function waitFor(what, check, boundMs = WAIT_MS) {
  const end = Date.now() + boundMs;
  for (;;) {
    const result = await check();
    if (result) return /** @type {NonNullable<Awaited<T>>} */ (result);
    if (Date.now() > end) throw new Error(`waited ${boundMs} ms in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
