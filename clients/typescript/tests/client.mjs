// The whole client against a real daemon; crates/e2e/tests/typescript starts both, and two proxies.
import assert from "node:assert/strict";
import test from "node:test";
import { Disconnected, Jackfield, JackfieldError } from "jackfield-client";

const { JACKFIELD_URL: url = "", JACKFIELD_TOKEN: token, CUT_URL = "", SILENT_URL = "" } = process.env;
const jackfield = new Jackfield({ url, token });
const agentId = "fake";

/** @template T @param {AsyncIterable<T>} events @returns {Promise<T[]>} */
async function all(events) {
  const heard = [];
  for await (const event of events) heard.push(event);
  return heard;
}

/** @param {import("jackfield-client").RunEvent[]} events */
function text(events) {
  const delta = (/** @type {import("jackfield-client").RunEvent} */ it) =>
    it.event === "agent" && it.data.type === "text_delta" ? it.data.delta : "";
  return events.map(delta).join("");
}

/** @template T @param {() => Promise<T | undefined>} look @returns {Promise<T>} */
async function until(look) {
  for (const end = Date.now() + 20_000; Date.now() < end; ) {
    const found = await look();
    if (found !== undefined) return found;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  throw new Error(`waited in vain for ${look}`);
}

/** @param {string} code */
const refused = (code) => (/** @type {unknown} */ error) => {
  assert(error instanceof JackfieldError, String(error));
  assert.equal(error.code, code);
  assert(20 < error.message.length, "it says what to do");
  return true;
};

test("agents are listed", async () => {
  const agents = await jackfield.agents();
  const found = agents.find((it) => it.id === agentId);
  assert.equal(found?.available, true);
});

test("a run that is asked for twice with one key is made once", async () => {
  const key = { idempotencyKey: 'a "quoted\\" key' };
  const body = { agentId, message: "hello" };
  const first = await jackfield.runs.create(body, key);
  assert.deepEqual(await jackfield.runs.create(body, key), first);
  const [start] = await all(jackfield.run(body, key));
  assert(start?.event === "start" && start.data.runId === first.runId);
  const other = jackfield.sessions.prompt(first.sessionId, { message: "more" }, key);
  await assert.rejects(other, refused("IDEMPOTENCY_KEY_REUSED"));
});

test("a run is told from start to end, and is known afterwards", async () => {
  const events = await all(jackfield.run({ agentId, message: "hello" }));
  const [start, end] = [events[0], events.at(-1)];
  assert(start?.event === "start" && end?.event === "end");
  assert.deepEqual(events.map((it) => Number(it.id)), [...events.keys()].map((it) => it + 1));
  assert.equal(text(events), "you said: hello");
  assert.equal(end.data.status, "succeeded");
  const run = await jackfield.runs.get(start.data.runId);
  assert.deepEqual([run.status, run.stopReason], ["succeeded", "end_turn"]);
  const listed = await jackfield.runs.list({ sessionId: run.sessionId, status: "succeeded" });
  assert.deepEqual(listed, [run]);
  assert.deepEqual(await all(jackfield.runs.events(run.runId, { after: "2" })), events.slice(2));
});

test("a run that is cancelled ends as canceled", async () => {
  const events = [];
  for await (const event of jackfield.run({ agentId, message: "slow 1 1 then hang" })) {
    events.push(event);
    if (text([event]) !== "") await jackfield.runs.cancel((await jackfield.runs.list())[0]?.runId ?? "");
  }
  const end = events.at(-1);
  assert(end?.event === "end");
  assert.equal(end.data.status, "canceled");
});

test("an ask is answered from its event, and only once", async () => {
  const events = [];
  let asked;
  for await (const event of jackfield.run({ agentId, message: "ask" })) {
    events.push(event);
    if (event.event !== "agent" || event.data.type !== "permission_request") continue;
    asked = (await jackfield.asks.list())[0];
    assert.equal(asked?.ask, event.data.ask);
    await jackfield.asks.answer(asked, { option: "allow" });
  }
  assert(asked, "it asked");
  assert.equal(text(events), "ask 1: allow-once");
  await assert.rejects(jackfield.asks.answer(asked, { option: "deny" }), refused("CONFLICT"));
  assert.deepEqual(await jackfield.asks.list(), []);
});

test("a session is prompted, forked, told in every view, closed and deleted", async () => {
  const { runId, sessionId } = await jackfield.runs.create({ agentId, message: "one" });
  await all(jackfield.runs.events(runId));
  const second = await jackfield.sessions.prompt(sessionId, { message: "two" });
  assert.equal(text(await all(jackfield.runs.events(second.runId))), "you said: two");

  const page = await jackfield.sessions.list({ limit: 1 });
  assert.equal(page.sessions[0]?.sessionId, sessionId);
  const shown = await jackfield.sessions.get(sessionId, { usage: true });
  assert.deepEqual([shown.agent, shown.turns], [agentId, 2]);
  assert(shown.usage);

  const fork = await jackfield.sessions.fork(sessionId, { at: 3 });
  assert.notEqual(fork.sessionId, sessionId);
  assert(3 <= (await jackfield.sessions.get(fork.sessionId)).events);

  for await (const { event, data } of jackfield.sessions.events(sessionId)) {
    if (event === "agent" && data.type === "text_delta" && data.delta === "you said: two") break;
  }
  for await (const { event, data } of jackfield.sessions.events(sessionId, { view: "envelopes" })) {
    if (event === "envelope" && data.ev.t === "text" && data.ev.text === "you said: two") break;
  }
  const told = jackfield.sessions.events(sessionId, { view: "acp", after: "2" });
  for await (const { id, event, data } of told) {
    assert(event === "message" && 2 < Number(id));
    if (JSON.stringify(data).includes("you said: two")) break;
  }

  await jackfield.sessions.close(sessionId);
  assert.equal((await jackfield.sessions.get(sessionId)).state, "closed");
  await jackfield.sessions.delete(fork.sessionId);
  await assert.rejects(jackfield.sessions.get(fork.sessionId), refused("NOT_FOUND"));
});

test("who is refused hears the code and the sentence of the API", async () => {
  const stranger = new Jackfield({ url, token: "wrong" });
  await assert.rejects(stranger.agents(), refused("UNAUTHORIZED"));
  await assert.rejects(all(stranger.run({ agentId, message: "hello" })), refused("UNAUTHORIZED"));
  await assert.rejects(all(stranger.sessions.events("s-1")), refused("UNAUTHORIZED"));
  await assert.rejects(new Jackfield({ url }).asks.list(), refused("UNAUTHORIZED"));
  await assert.rejects(all(jackfield.runs.events("r-1")), refused("NOT_FOUND"));
  await assert.rejects(jackfield.runs.create({ agentId: "nobody", message: "hello" }), JackfieldError);
});

test("who stops reading leaves the run to itself", async () => {
  let runId = "";
  for await (const event of jackfield.run({ agentId, message: "slow 20 20" })) {
    if (event.event === "start") runId = event.data.runId;
    if (text([event]) !== "") break;
  }
  const aborted = all(jackfield.runs.events(runId, { signal: AbortSignal.timeout(50) }));
  await assert.rejects(aborted, { name: "TimeoutError" });
  await assert.rejects(jackfield.asks.list({ signal: AbortSignal.abort() }), { name: "AbortError" });
  const status = async () => (await jackfield.runs.get(runId)).status;
  await until(async () => ((await status()) === "succeeded" ? true : undefined));
});

test("a connection that is cut, and cut again, costs nothing", async () => {
  const cut = new Jackfield({ url: CUT_URL, token });
  const events = await all(cut.run({ agentId, message: "slow 40 10 then burst 400" }));
  const start = events[0];
  assert(start?.event === "start");
  assert.deepEqual(events, await all(jackfield.runs.events(start.data.runId)));
  assert.equal(events.filter((it) => text([it]) !== "").length, 440);
});

test("a connection that falls silent is given up for another", async () => {
  const silent = new Jackfield({ url: SILENT_URL, token, silenceMs: 300 });
  const events = await all(silent.run({ agentId, message: "burst 40" }));
  assert.equal(events.filter((it) => text([it]) !== "").length, 40);
});

test("who cannot be reached is tried again, and then it is said", async () => {
  const gone = new Jackfield({ url: "http://127.0.0.1:1", token, retries: 2 });
  const error = await all(gone.runs.events("r-1")).catch((it) => it);
  assert(error instanceof Disconnected);
  assert.match(error.message, /3 times/);
  assert(error.cause instanceof TypeError);
});
