import type { Agent } from "jackfield-client";
import { expect, test } from "vitest";
import { filterAgents, groupAgents } from "./groups";

const agent = (id: string, members: Partial<Agent>): Agent => ({ id, name: id, bin: id, authState: "unknown", diagnostics: [], ...members }) as Agent;

const agents = [
  agent("codex", { available: true, path: "/usr/bin/codex", authState: "ok", aliases: ["openai-cli"] }),
  agent("claude", { available: true, path: "/usr/bin/claude", authState: "missing" }),
  agent("gemini", { available: false, path: "/usr/bin/gemini" }),
  agent("aider", { available: false }),
  agent("hosted", { available: true }),
];

test("agents are ready, blocked or missing", () => {
  const { ready, blocked, missing } = groupAgents(agents);
  expect([ready, blocked, missing].map((it) => it.map(({ id }) => id))).toEqual([["codex", "hosted"], ["claude", "gemini"], ["aider"]]);
});

test("agents are found by their aliases in any case", () => {
  expect(filterAgents(agents, " OpenAI ").map((it) => it.id)).toEqual(["codex"]);
  expect(filterAgents(agents, "")).toHaveLength(5);
});
