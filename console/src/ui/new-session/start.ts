/** Starts a session and reports how far it is. The daemon answers before the agent has started. */

import { newRequestKey } from "../../api/request-key";
import type { NewRun } from "jackfield-client";
import { api } from "../../api/client";

export interface NewSession {
  agentId: string;
  cwd: string;
  model?: string;
  mode?: string;
  /** The sandbox profile; without one, that of the project or of the configuration. */
  sandbox?: string;
  mcpServers?: unknown[];
  /** The first prompt; without one the session waits for it. */
  message?: string;
}

/** Returns the id of the session when it is open. `onProgress` describes each step in words. */
export async function startSession(session: NewSession, onProgress: (step: string) => void, signal: AbortSignal): Promise<string> {
  onProgress("Starting the agent…");
  if (session.message === undefined) {
    const { sessionId } = await api.sessions.create(session, { signal });
    return sessionId;
  }
  const body: NewRun = { ...session, message: session.message };
  const { runId, sessionId } = await api.runs.create(body, { idempotencyKey: keyOf(body), signal });
  const onAbort = (): void => void api.runs.cancel(runId).catch(() => {});
  signal.addEventListener("abort", onAbort);
  try {
    await waitUntilOpen(runId, onProgress, signal);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
  lastStart = undefined;
  return sessionId;
}

/** The start that has not succeeded yet. */
let lastStart: { body: string; key: string } | undefined;

/** The same key for the same request, so that a repetition after a lost connection opens no second session. */
function keyOf(request: NewRun): string {
  const body = JSON.stringify(request);
  if (lastStart?.body !== body) lastStart = { body, key: newRequestKey() };
  return lastStart.key;
}

/** Reads the events of the run until the agent has opened the session; throws the reason if it cannot. */
async function waitUntilOpen(runId: string, onProgress: (step: string) => void, signal: AbortSignal): Promise<void> {
  for await (const it of api.runs.events(runId, { signal })) {
    if (it.event === "error") throw new Error(it.data.message);
    if (it.event === "end") return;
    if (it.event !== "agent") continue;
    if (it.data.type !== "status" || it.data.label !== "initializing") return;
    onProgress(it.data.detail ?? "The agent initializes…");
  }
}
