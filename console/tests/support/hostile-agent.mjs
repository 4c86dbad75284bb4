/**
 * An ACP agent on stdio that says hostile texts in every place where an agent can say something.
 *
 * The prompt names what it does: a group of `hostile.mjs` such as `script`, `names`, `ask` or `huge`.
 */

import { createInterface } from "node:readline";
import { HOSTILE_TEXTS, hugeLine } from "../hostile.mjs";

/** @param {unknown} frame */
const send = (frame) => process.stdout.write(`${JSON.stringify(frame)}\n`);
let lastId = 0;

/** @param {string} sessionId @param {unknown} update */
const notify = (sessionId, update) => send({ jsonrpc: "2.0", method: "session/update", params: { sessionId, update } });

/** Frames are UTF-8: a surrogate without its pair cannot be sent. @param {string} text */
const wellFormed = (text) => text.replace(/\p{Surrogate}/gu, "\ufffd");

/** @param {string} group */
const textsOf = (group) => HOSTILE_TEXTS.filter((it) => it.name.startsWith(`${group}/`)).map((it) => wellFormed(it.text));

/** A tool call with the text in all its members. @param {string} text @param {number} index */
const toolCall = (text, index) => ({
  sessionUpdate: "tool_call",
  toolCallId: `call-${index}`,
  title: text,
  kind: "execute",
  status: "completed",
  rawInput: { command: text, [text]: text },
  locations: [{ path: text, line: 1 }],
  content: [
    { type: "content", content: { type: "text", text } },
    { type: "diff", path: `/project/${text}`, oldText: text, newText: `${text}\nchanged` },
  ],
});

/** @param {string} sessionId @param {string[]} texts */
function sayTexts(sessionId, texts) {
  for (const [index, text] of texts.entries()) {
    notify(sessionId, { sessionUpdate: "agent_thought_chunk", content: { type: "text", text } });
    notify(sessionId, { sessionUpdate: "agent_message_chunk", content: { type: "text", text } });
    notify(sessionId, toolCall(text, index));
  }
  const entries = texts.map((content) => ({ content, priority: "high", status: "pending" }));
  notify(sessionId, { sessionUpdate: "plan", entries });
}

/** Names of commands and the title of the session. @param {string} sessionId */
function sayNames(sessionId) {
  const texts = ["script", "style", "character", "terminal"].flatMap(textsOf);
  const availableCommands = texts.map((text) => ({ name: text, description: text, input: { hint: text } }));
  notify(sessionId, { sessionUpdate: "available_commands_update", availableCommands });
  for (const title of texts) notify(sessionId, { sessionUpdate: "session_info_update", title });
}

/** @param {string} sessionId */
function askPermission(sessionId) {
  const text = textsOf("script").concat(textsOf("character"), textsOf("style")).join("\n");
  const options = ["allow_once", "allow_always", "reject_once"].map((kind) => ({ optionId: kind, name: text, kind }));
  const { sessionUpdate: _, ...call } = toolCall(text, 0);
  send({ jsonrpc: "2.0", id: `ask-${lastId++}`, method: "session/request_permission", params: { sessionId, toolCall: { ...call, status: "pending" }, options } });
}

/** @param {string} sessionId */
function sayHugeLines(sessionId) {
  const text = hugeLine();
  notify(sessionId, { sessionUpdate: "agent_message_chunk", content: { type: "text", text } });
  notify(sessionId, { ...toolCall("a huge line", 0), content: [{ type: "content", content: { type: "text", text } }] });
}

/** The prompt that is running. @type {{ id: unknown } | undefined} */
let running;
const endTurn = () => {
  if (running) send({ jsonrpc: "2.0", id: running.id, result: { stopReason: "end_turn" } });
  running = undefined;
};

/** @param {any} frame */
function onFrame({ id, method, params }) {
  const reply = (/** @type {unknown} */ result) => send({ jsonrpc: "2.0", id, result });
  if (method === "initialize") return reply({ protocolVersion: 1, agentCapabilities: {}, authMethods: [] });
  if (method === "session/new") return reply({ sessionId: `hostile-${lastId++}` });
  if (method === "session/cancel" || method === undefined) return endTurn();
  if (method !== "session/prompt") return id !== undefined && reply({});
  running = { id };
  const { sessionId, prompt } = params;
  const words = prompt.map((/** @type {any} */ it) => it.text ?? "").join(" ").trim();
  if (words === "ask") return askPermission(sessionId);
  if (words === "names") sayNames(sessionId);
  else if (words === "huge") sayHugeLines(sessionId);
  else sayTexts(sessionId, textsOf(words));
  return endTurn();
}

createInterface({ input: process.stdin }).on("line", (line) => line !== "" && onFrame(JSON.parse(line)));
