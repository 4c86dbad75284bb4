/** Requests to routes of the daemon that the client package has no method for. */

import { JackfieldError } from "jackfield-client";

interface RequestOptions {
  query?: Record<string, string | number | undefined>;
  /** Sent as JSON. */
  body?: unknown;
  signal?: AbortSignal;
}

/** Sends a request and returns the JSON of the response; an error response becomes a `JackfieldError`. */
export async function requestJson<T>(method: string, path: string, { query = {}, body, signal }: RequestOptions = {}): Promise<T> {
  const url = new URL(path, location.origin);
  for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, String(value));
  // Over plain HTTP from another machine, only this header shows the daemon that a request comes from its own page.
  const headers: Record<string, string> = { "x-jackfield-console": "1" };
  if (method !== "GET") headers["content-type"] = "application/json";
  const init: RequestInit = { method, headers, signal: signal ?? null };
  if (body !== undefined) init.body = JSON.stringify(body);
  const response = await fetch(url, init);
  if (!response.ok) throw await readError(response);
  return (response.status === 204 ? undefined : await response.json()) as T;
}

async function readError(response: Response): Promise<JackfieldError> {
  const body = (await response.json().catch(() => undefined)) as { error?: ConstructorParameters<typeof JackfieldError>[1] } | undefined;
  const unreadable = { code: "UPSTREAM_UNAVAILABLE", message: `the daemon answered ${response.status}` } as const;
  return new JackfieldError(response.status, body?.error ?? unreadable);
}
