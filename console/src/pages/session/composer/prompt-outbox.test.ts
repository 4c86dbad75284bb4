/** Tests of prompts that wait for the connection. */

import { expect, test } from "vitest";
import { PromptOutbox, type OutboxParts, type OutboxPrompt } from "./prompt-outbox";

class OfflineError extends Error {}

function createParts() {
  const stored = new Map<string, string>();
  const state = { isOnline: true, sent: [] as string[], shown: [] as readonly OutboxPrompt[], now: 1_000, refusal: "" };
  const parts: OutboxParts = {
    storage: {
      getItem: (name) => stored.get(name) ?? null,
      setItem: (name, value) => void stored.set(name, value),
      removeItem: (name) => void stored.delete(name),
    },
    send: async (prompt) => {
      if (!state.isOnline) throw new OfflineError();
      if (state.refusal !== "") throw new Error(state.refusal);
      state.sent.push(prompt.key);
    },
    canRetry: (error) => error instanceof OfflineError,
    describe: (error) => (error as Error).message,
    now: () => state.now,
    onChange: (prompts) => void (state.shown = prompts),
  };
  return { parts, state, stored };
}

const prompt = (key: string): OutboxPrompt => ({ key, message: key, imagePaths: [], steer: false, at: 1_000 });

test("a prompt that is written without a connection is sent once when it is back, in order, also after a reload", async () => {
  const { parts, state, stored } = createParts();
  state.isOnline = false;
  const outbox = new PromptOutbox("s-1", parts);
  await outbox.add(prompt("a"));
  await outbox.add(prompt("b"));
  expect(state.shown.map((it) => it.key)).toEqual(["a", "b"]);
  state.isOnline = true;
  const reloaded = new PromptOutbox("s-1", parts);
  await reloaded.flush();
  expect(state.sent).toEqual(["a", "b"]);
  expect(state.shown).toEqual([]);
  expect(stored.size).toBe(0);
});

test("a lost response is followed by the same key", async () => {
  const { parts, state } = createParts();
  const keys: string[] = [];
  const { send } = parts;
  parts.send = async (it) => {
    keys.push(it.key);
    if (keys.length === 1) throw new OfflineError();
    await send(it);
  };
  const outbox = new PromptOutbox("s-1", parts);
  await outbox.add(prompt("a"));
  await outbox.flush();
  expect(keys).toEqual(["a", "a"]);
  expect(state.shown).toEqual([]);
});

test("a refused prompt stays with the reason and does not block others", async () => {
  const { parts, state } = createParts();
  state.refusal = "no session";
  const outbox = new PromptOutbox("s-1", parts);
  await outbox.add(prompt("a"));
  state.refusal = "";
  await outbox.add(prompt("b"));
  expect(state.sent).toEqual(["b"]);
  expect(state.shown).toMatchObject([{ key: "a", problem: "no session" }]);
  outbox.remove("a");
  expect(state.shown).toEqual([]);
});

test("two flushes at once send a prompt once", async () => {
  const { parts, state } = createParts();
  const outbox = new PromptOutbox("s-1", parts);
  await Promise.all([outbox.add(prompt("a")), outbox.flush(), outbox.flush()]);
  expect(state.sent).toEqual(["a"]);
});

test("a prompt that is older than its key is not sent by itself", async () => {
  const { parts, state } = createParts();
  state.now = 1_000 + 13 * 3_600_000;
  await new PromptOutbox("s-1", parts).add(prompt("a"));
  expect(state.sent).toEqual([]);
  expect(state.shown[0]?.problem).toMatch("long ago");
});
