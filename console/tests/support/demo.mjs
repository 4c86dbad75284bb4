/** Sessions as a user would have them, made by our own agent with a scripted model. For screenshots. */

import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { workspace } from "./daemon.mjs";
import { waitFor } from "./wait.mjs";

const PARSER = `/// Parses \`key = value\` lines.
pub fn parse(text: &str) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    for line in text.lines() {
        let (key, value) = line.split_once('=').unwrap();
        rows.push((key.trim().to_owned(), value.trim().to_owned()));
    }
    rows
}
`;

const OLD_LOOP = `    for line in text.lines() {
        let (key, value) = line.split_once('=').unwrap();
`;
const NEW_LOOP = `    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (key, value) = line.split_once('=').ok_or(ParseError { line: number + 1 })?;
`;

const ANSWER = `The parser panicked on every line without \`=\`, so a comment or an empty line ended the program.

1. Lines without \`=\` are returned as errors with their number.
2. Empty lines and comments are skipped.

| input | before | after |
|---|---|---|
| \`a = 1\` | parsed | parsed |
| \`# note\` | panic | skipped |
| \`oops\` | panic | error in line 3 |

All 14 tests pass. The error type is public; say if you would rather keep it private.`;

/** Prompts that are done when the pictures are made, with the agent, the project and the reply. */
const DONE = /** @type {const} */ ([
  ["reviewer", "billing-api", "Review the last commit for missing error handling.", "Two calls of the payment service ignore timeouts: `charge` and `refund`."],
  ["assistant", "website", "Why is the start page slow on phones?", "The hero picture has 2.4 MB. A WebP of the same size has 180 kB."],
  ["assistant", "uploader", "Explain how retries work in the uploader.", "Each chunk is retried five times, with a delay that doubles."],
]);

/** A repository with one source file. @param {string} name */
function createProject(name) {
  const folder = join(workspace, name);
  if (existsSync(folder)) return folder;
  mkdirSync(join(folder, "src"), { recursive: true });
  writeFileSync(join(folder, "src/parser.rs"), PARSER);
  const git = (/** @type {string[]} */ ...args) => execFileSync("git", ["-C", folder, ...args], { stdio: "ignore" });
  git("init", "-q", "-b", "main");
  git("add", ".");
  git("-c", "user.name=demo", "-c", "user.email=demo@example.org", "commit", "-qm", "Add the parser");
  return folder;
}

/**
 * Opens the sessions; returns the ids of one that has finished, one that waits for an answer, and one that works.
 * @param {import("./daemon.mjs").Daemon} daemon @param {import("./model.mjs").ScriptedModel} model
 */
export async function openDemoSessions(daemon, model) {
  /** @param {import("./model.mjs").ModelReply[]} replies @param {string} project @param {DemoRun} run */
  const start = async (replies, project, run) => {
    model.script(run.message, replies);
    const { sessionId } = await daemon.api("POST", "/api/runs", { agentId: "assistant", ...run, cwd: createProject(project) });
    return /** @type {string} */ (sessionId);
  };
  /** Waits for the end of the turn. @param {string} sessionId @param {string} message */
  const finish = async (sessionId, message) => {
    await waitFor(`the replies to ${message}`, () => model.isFinished(message));
    await daemon.waitForState(sessionId, "idle");
  };
  for (const [agentId, project, message, text] of DONE) await finish(await start([{ text }], project, { agentId, message }), message);
  const parser = "The settings parser panics on comments. Fix it.";
  const finished = await start(PARSER_REPLIES, "settings", { message: parser, approve: "all" });
  await finish(finished, parser);

  const build = { name: "shell", arguments: { command: "rm -rf dist && npm run build -- --minify" } };
  const wait = { text: "I will build it once and compare the sizes.", calls: [build] };
  const waiting = await start([wait], "website", { message: "Make the bundle smaller and show the difference." });
  await waitFor("a request", async () => (await daemon.api("GET", "/api/asks")).asks.length > 0);

  const work = { think: "Rounding is done in three places.", text: "I start with the invoices that have several tax rates", isHeld: true };
  const working = await start([work], "billing-api", { message: "Write tests for the rounding of invoices." });
  await daemon.waitForState(working, "working");
  return { finished, waiting, working };
}

/** @typedef {{ message: string, agentId?: string, approve?: string }} DemoRun */

/** @type {import("./model.mjs").ModelReply[]} */
const PARSER_REPLIES = [
  { think: "I should read the parser before I change anything.", calls: [{ name: "read", arguments: { path: "src/parser.rs" } }] },
  {
    calls: [
      {
        name: "todo",
        arguments: {
          todos: [
            { content: "Read the parser", status: "completed" },
            { content: "Return errors with line numbers", status: "in_progress" },
            { content: "Run the tests", status: "pending" },
          ],
        },
      },
    ],
  },
  {
    text: "The cause is the `unwrap` in the loop.",
    calls: [{ name: "edit", arguments: { path: "src/parser.rs", old_string: OLD_LOOP, new_string: NEW_LOOP } }],
  },
  { calls: [{ name: "shell", arguments: { command: "printf '\\033[32mok\\033[0m 14 tests passed\\n'" } }] },
  { text: ANSWER },
];
