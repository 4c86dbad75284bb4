/** Waits for a condition with a bound. */

/**
 * Returns the first result that is not falsy.
 * @template T
 * @param {string} what
 * @param {() => T | Promise<T>} check
 * @returns {Promise<NonNullable<Awaited<T>>>}
 */
export async function waitFor(what, check, boundMs = 20_000) {
  const end = Date.now() + boundMs;
  for (;;) {
    const result = await check();
    if (result) return /** @type {NonNullable<Awaited<T>>} */ (result);
    if (Date.now() > end) throw new Error(`waited ${boundMs} ms in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
