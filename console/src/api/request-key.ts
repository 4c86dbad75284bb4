/** Idempotency keys. `crypto.randomUUID` is missing on pages that are served without TLS to other machines. */

/** A random key of 128 bits. */
export function newRequestKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (it) => it.toString(16).padStart(2, "0")).join("");
}
