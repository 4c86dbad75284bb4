/** Sessions as a user would have them, made by our own agent with a scripted model. For screenshots. */

import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
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

const ANSWER = `The parser panics on every line without \`=\`, so a comment or an empty line ends the program.

**What I changed**

1. Lines without \`=\` are returned as errors with their number.
2. Empty lines and comments are skipped.

\`\`\`rust
for (number, line) in text.lines().enumerate() {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        continue;
    }
    let (key, value) = line.split_once('=').ok_or(ParseError { line: number + 1 })?;
    rows.push((key.trim().to_owned(), value.trim().to_owned()));
}
\`\`\`

| input | before | after |
|---|---|---|
| \`a = 1\` | parsed | parsed |
| \`# note\` | panic | skipped |
| \`oops\` | panic | error in line 3 |

All 14 tests pass. The error type is public; say if you would rather keep it private.`;

/** A repository with one source file. @param {string} name */
function createProject(name) {
  const folder = join(workspace, name);
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
  const settings = createProject("settings");
  model.add(
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
      calls: [
        {
          name: "edit",
          arguments: {
            path: "src/parser.rs",
            old_string: "        let (key, value) = line.split_once('=').unwrap();\n",
            new_string: "        let Some((key, value)) = line.split_once('=') else { continue };\n",
          },
        },
      ],
    },
    { calls: [{ name: "shell", arguments: { command: "printf '\\033[32mok\\033[0m 14 tests passed\\n'" } }] },
    { text: ANSWER },
  );
  const finished = await start(daemon, settings, "The settings parser panics on comments. Find out why and fix it.", "all");
  await daemon.waitForState(finished, "idle");
  const waiting = await daemon.openSession("ask-about rm -rf build && npm run build -- --minify");
  await waitFor("a request", async () => (await daemon.api("GET", "/api/asks")).asks.length > 0);
  const working = await daemon.openSession("slow 100000 200");
  return { finished, waiting, working };
}

/** @param {import("./daemon.mjs").Daemon} daemon @param {string} cwd @param {string} message @param {string} approve */
async function start(daemon, cwd, message, approve) {
  const run = await daemon.api("POST", "/api/runs", { agentId: "assistant", cwd, message, approve });
  return /** @type {string} */ (run.sessionId);
}
