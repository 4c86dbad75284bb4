/** An ACP agent whose sessions look like those of users, for pictures of the terminal interface. */

import { createInterface } from "node:readline";

const DIFF = {
  type: "diff",
  path: "src/parser.rs",
  oldText: "    for line in text.lines() {\n        let (key, value) = line.split_once('=').unwrap();\n        rows.push((key.trim(), value.trim()));\n    }\n",
  newText: "    for line in text.lines() {\n        let Some((key, value)) = line.split_once('=') else { continue };\n        rows.push((key.trim(), value.trim()));\n    }\n",
};

const ANSWER = `The parser panicked on every line without \`=\`.

**What I changed**

1. Lines without \`=\` are skipped.
2. A test covers comments and empty lines.

\`\`\`rust
#[test]
fn comments_are_skipped() {
    assert_eq!(parse("# note\\na = 1"), [("a", "1")]);
}
\`\`\`

| input | before | after |
|---|---|---|
| \`a = 1\` | parsed | parsed |
| \`# note\` | panic | skipped |
`;

const OPTIONS = [
  { optionId: "once", name: "Allow once", kind: "allow_once" },
  { optionId: "always", name: "Always allow in this project", kind: "allow_always" },
  { optionId: "no", name: "Reject", kind: "reject_once" },
];

let lastSession = 0;
let lastRequest = 0;

/** @param {object} message */
const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);

/** @param {string} sessionId @param {object} update */
const update = (sessionId, update) => send({ method: "session/update", params: { sessionId, update } });

/** @param {string} sessionId @param {string} title @param {string} kind @param {object[]} content */
function callTool(sessionId, title, kind, content) {
  const toolCallId = `call-${(lastRequest += 1)}`;
  update(sessionId, { sessionUpdate: "tool_call", toolCallId, title, kind, status: "completed", content });
}

/** @param {string} text */
const textContent = (text) => ({ type: "content", content: { type: "text", text } });

/** @param {string} sessionId */
function fixParser(sessionId) {
  update(sessionId, { sessionUpdate: "session_info_update", title: "Fix the settings parser" });
  update(sessionId, { sessionUpdate: "agent_thought_chunk", content: { type: "text", text: "I should read the parser before I change anything." } });
  callTool(sessionId, "Read src/parser.rs", "read", [textContent("pub fn parse(text: &str)")]);
  callTool(sessionId, "Edit src/parser.rs", "edit", [DIFF]);
  callTool(sessionId, "cargo test", "execute", [textContent("test result: ok. 14 passed")]);
  update(sessionId, { sessionUpdate: "agent_message_chunk", content: { type: "text", text: ANSWER } });
}

/** @param {string} sessionId */
function askForPermission(sessionId) {
  update(sessionId, { sessionUpdate: "session_info_update", title: "Build the release" });
  const rawInput = { command: "rm -rf build && npm run build -- --minify" };
  const toolCall = { toolCallId: "build", title: "rm -rf build && npm run build -- --minify", kind: "execute", rawInput };
  update(sessionId, { sessionUpdate: "tool_call", status: "pending", ...toolCall });
  send({ id: `ask-${(lastRequest += 1)}`, method: "session/request_permission", params: { sessionId, toolCall, options: OPTIONS } });
}

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (method === "initialize") send({ id, result: { protocolVersion: 1, agentCapabilities: { loadSession: false } } });
  else if (method === "session/new") send({ id, result: { sessionId: `demo-${(lastSession += 1)}` } });
  else if (method === "session/prompt") {
    const text = params.prompt[0].text;
    if (text.includes("release")) askForPermission(params.sessionId);
    else if (!text.includes("slow")) {
      fixParser(params.sessionId);
      send({ id, result: { stopReason: "end_turn" } });
    }
  } else if (id !== undefined && method !== undefined) send({ id, result: {} });
}
