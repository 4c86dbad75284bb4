/** The response to the request that `src/early.ts` has started before the application was loaded. */

declare global {
  var earlyResponse: { path: string; response: Promise<Response> } | undefined;
}

/** The body of the response to this path, once; nothing if there is none or if the request failed. */
export async function takeEarlyResponse<T>(path: string): Promise<T | undefined> {
  const early = globalThis.earlyResponse;
  if (early?.path !== path) return undefined;
  globalThis.earlyResponse = undefined;
  const response = await early.response.catch(() => undefined);
  return response?.ok ? ((await response.json()) as T) : undefined;
}
