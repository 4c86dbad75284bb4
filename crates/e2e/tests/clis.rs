//! Real agents against our model server, without Jackfield between: what the server says is enough
//! for each of them to talk and to use a tool.

use jackfield_e2e::{Cli, Client, Home, client::PATIENCE, procs, wait_for};
use jackfield_test_support::fake_model::FakeModel;
use serde_json::{Value, json};
use std::{
    fs,
    fs::File,
    path::PathBuf,
    process::{Child, Stdio},
};

/// One agent, its model, and a directory to work in.
struct Stage {
    model: FakeModel,
    cli: Cli,
    project: PathBuf,
    home: Home,
}

impl Stage {
    fn new(name: &str) -> Stage {
        let (home, model) = (Home::new(), FakeModel::start());
        let project = home.path().join("project");
        fs::create_dir_all(&project).unwrap();
        let cli = Cli::new(name, &home.path().join("own"), &model.url());
        Stage { model, cli, project, home }
    }

    /// Runs the program to its end; what it printed, and of that the lines that are JSON.
    fn run(&self, args: &[&str]) -> (String, Vec<Value>) {
        let [out, err] = ["out", "err"].map(|it| self.home.path().join(it));
        let mut child = self
            .cli
            .command(args)
            .current_dir(&self.project)
            .stdin(Stdio::null())
            .stdout(File::create(&out).unwrap())
            .stderr(File::create(&err).unwrap())
            .spawn()
            .unwrap();
        let status = wait_for(&format!("{args:?} to end"), PATIENCE, || child.try_wait().unwrap());
        let [out, err] = [out, err].map(|it| fs::read_to_string(it).unwrap());
        assert!(status.success(), "{args:?} ended with {status}: {out}\n{err}");
        let lines = out.lines().filter_map(|it| serde_json::from_str(it).ok()).collect();
        (out, lines)
    }

    /// Starts the program as an ACP agent.
    fn start(&self, args: &[&str]) -> (Child, Client) {
        let mut child = self
            .cli
            .command(args)
            .current_dir(&self.project)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (reader, writer) = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
        (child, Client::new(Box::new(reader), Box::new(writer)))
    }

    /// One conversation over ACP: a greeting, a tool, the end.
    fn converse(&self, args: &[&str]) {
        let (mut child, mut client) = self.start(args);
        client.hello();
        let session = client.open(&self.project);
        assert_eq!(client.prompt(&session, "Say hello"), "end_turn");
        assert!(client.text().contains(HELLO), "{}", client.text());
        let turn = client.send_prompt(&session, "TOUCH something");
        let answer = allow_until_answer(&mut client, turn);
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
        assert!(client.text().contains("The tool answered: "), "{}", client.text());
        assert!(self.project.join("touched-by-tool.txt").exists(), "the tool ran");
        drop(client);
        wait_for("its end after stdin's", PATIENCE, || child.try_wait().unwrap());
        self.sweep();
    }

    /// The server was asked in this dialect, only with the dummy key, and nobody is left.
    fn check(&self, dialect: &str) {
        let log = self.model.log();
        assert!(log.iter().any(|it| it["dialect"] == dialect), "{log:?}");
        assert!(log.iter().all(|it| it["testKey"] != json!(false)), "only the dummy key: {log:?}");
        self.sweep();
    }

    /// Some leave processes that end only a while after them.
    fn sweep(&self) {
        for pid in self.home.alive(&[]) {
            procs::kill_9(pid);
        }
        wait_for("all to be gone", PATIENCE, || self.home.alive(&[]).is_empty().then_some(()));
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        for pid in self.home.alive(&[]) {
            procs::kill_9(pid);
        }
    }
}

const HELLO: &str = "Hello from the fake model.";
const TOOL: &str = "hello-from-tool";

/// Allows whatever the agent asks, until a request is answered.
fn allow_until_answer(client: &mut Client, id: u64) -> Value {
    loop {
        let message =
            client.until("an answer or an ask", |it| it.get("id").is_some_and(|it| !it.is_null()));
        if message["method"] == "session/request_permission" {
            let options = message["params"]["options"].as_array().unwrap();
            let once = options.iter().find(|it| it["kind"] == "allow_once").unwrap();
            let outcome = json!({ "outcome": "selected", "optionId": once["optionId"] });
            client.respond(&message, &json!({ "outcome": outcome }));
        } else if message.get("method").is_none() && message["id"] == json!(id) {
            return message;
        }
    }
}

#[test]
fn claude_talks_and_uses_a_tool() {
    let stage = Stage::new("claude");
    let args = ["-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages"];
    let with = |prompt| [&args[..], &[prompt]].concat();
    let result = |lines: &[Value]| lines.iter().find(|it| it["type"] == "result").cloned().unwrap();
    let (_, lines) = stage.run(&with("Say hello"));
    assert_eq!(result(&lines)["result"], HELLO);
    let (_, lines) = stage.run(&with("TOOL please"));
    assert_eq!(result(&lines)["result"], format!("The tool answered: {TOOL} - done."));
    let (out, lines) = stage.run(&with("THINK about it"));
    assert_eq!(result(&lines)["result"], HELLO);
    assert!(out.contains("thinking_delta"), "{out}");
    stage.check("messages");
}

#[test]
fn codex_talks_and_uses_tools_of_both_kinds() {
    let stage = Stage::new("codex");
    // A model it knows is offered one tool that takes code, any other one plain functions.
    for model in ["gpt-6.1-sol", "fake-model"] {
        let run = |prompt| {
            let sandbox = ["-s", "danger-full-access", "-m", model, prompt];
            let args = [&["exec", "--json", "--skip-git-repo-check"], &sandbox[..]].concat();
            stage.run(&args)
        };
        let item = |lines: &[Value], kind: &str| {
            let mut items = lines.iter().filter(|it| it["type"] == "item.completed");
            items.rfind(|it| it["item"]["type"] == kind).unwrap()["item"].clone()
        };
        let (_, lines) = run("Say hello");
        assert_eq!(item(&lines, "agent_message")["text"], HELLO);
        let (_, lines) = run("TOOL please");
        assert_eq!(item(&lines, "command_execution")["aggregated_output"], format!("{TOOL}\n"));
        let said = item(&lines, "agent_message")["text"].as_str().unwrap().to_owned();
        assert!(said.contains(TOOL), "{said}");
        let (_, lines) = run("THINK about it");
        assert_eq!(item(&lines, "reasoning")["text"], "I should think about this first.");
        let file = stage.project.join(format!("{model}.txt"));
        run(&format!("WRITE {}", file.display()));
        assert_eq!(fs::read_to_string(&file).unwrap(), format!("{TOOL}\n"));
    }
    stage.check("responses");
}

#[test]
#[ignore = "nightly: recorded output of the same version is tested with every change"]
fn gemini_talks_and_uses_a_tool() {
    let stage = Stage::new("gemini");
    let said = |lines: &[Value]| {
        let spoken = lines.iter().filter(|it| it["role"] == "assistant");
        spoken.filter_map(|it| it["content"].as_str()).collect::<String>()
    };
    let args = ["-o", "stream-json", "-y", "-m", "gemini-2.5-flash", "-p"];
    let (_, lines) = stage.run(&[&args[..], &["Say hello"]].concat());
    assert_eq!(said(&lines), HELLO);
    let (_, lines) = stage.run(&[&args[..], &["TOOL please"]].concat());
    let result = lines.iter().find(|it| it["type"] == "tool_result").unwrap();
    assert_eq!(result["output"], TOOL);
    assert!(said(&lines).contains(TOOL), "{}", said(&lines));
    stage.check("gemini");
}

#[test]
fn goose_talks_and_uses_a_tool() {
    let mut stage = Stage::new("goose");
    stage.cli.env.insert("GOOSE_MODE".into(), "auto".into());
    let args = ["run", "--output-format", "stream-json", "--with-builtin", "developer", "-t"];
    let (out, lines) = stage.run(&[&args[..], &["Say hello"]].concat());
    let said: String = lines.iter().filter_map(|it| text_of_goose(it)).collect();
    assert!(said.contains(HELLO), "{out}");
    let (out, lines) = stage.run(&[&args[..], &["TOOL please"]].concat());
    let said: String = lines.iter().filter_map(|it| text_of_goose(it)).collect();
    assert!(said.contains(&format!("The tool answered: {TOOL}")), "{out}");
    stage.check("chat");
}

fn text_of_goose(line: &Value) -> Option<&str> {
    let is_said = line["message"]["role"] == "assistant";
    is_said.then(|| line.pointer("/message/content/0/text")?.as_str())?
}

#[test]
#[ignore = "nightly: recorded output of the same version is tested with every change"]
fn claude_agent_acp_talks_and_uses_a_tool() {
    let stage = Stage::new("claude-agent-acp");
    stage.converse(&[]);
    stage.check("messages");
}

#[test]
#[ignore = "nightly: recorded output of the same version is tested with every change"]
fn codex_acp_talks_and_uses_a_tool() {
    let stage = Stage::new("codex-acp");
    stage.converse(&[]);
    stage.check("responses");
}

#[test]
#[ignore = "nightly: recorded output of the same version is tested with every change"]
fn gemini_acp_talks_and_uses_a_tool() {
    let stage = Stage::new("gemini");
    stage.converse(&["--acp", "-m", "gemini-2.5-flash"]);
    stage.check("gemini");
}

#[test]
fn goose_acp_talks_and_uses_a_tool() {
    let stage = Stage::new("goose");
    stage.converse(&["acp", "--with-builtin", "developer"]);
    stage.check("chat");
}

/// Agents of `scripts/install-agents.sh --all`, over ACP. Some of them look for the outside world
/// whatever they are told, so run these where there is none: `unshare -rn`, with loopback up.
mod nightly {
    use super::Stage;

    fn converse(name: &str, args: &[&str]) {
        let stage = Stage::new(name);
        stage.converse(args);
        stage.check("chat");
    }

    #[test]
    #[ignore = "nightly: the agent is large, and installed for the nightly tier only"]
    fn cline_talks_and_uses_a_tool() {
        converse("cline", &["--acp"]);
    }

    #[test]
    #[ignore = "nightly: the agent is large, and installed for the nightly tier only"]
    fn copilot_talks_and_uses_a_tool() {
        converse("copilot", &["--acp", "--disable-client-telemetry", "--no-auto-update"]);
    }

    #[test]
    #[ignore = "nightly: the agent is large, and installed for the nightly tier only"]
    fn hermes_talks_and_uses_a_tool() {
        converse("hermes", &["acp", "--accept-hooks"]);
    }

    #[test]
    #[ignore = "nightly: the agent is large, and installed for the nightly tier only"]
    fn kimi_talks_and_uses_a_tool() {
        converse("kimi", &["acp"]);
    }

    #[test]
    #[ignore = "nightly: the agent is large, and installed for the nightly tier only"]
    fn opencode_talks_and_uses_a_tool() {
        converse("opencode", &["acp"]);
    }

    #[test]
    #[ignore = "nightly: the agent is large, and installed for the nightly tier only"]
    fn pi_talks_and_uses_a_tool() {
        converse("pi-acp", &[]);
    }

    #[test]
    #[ignore = "nightly: the agent is large, and installed for the nightly tier only"]
    fn qwen_talks_and_uses_a_tool() {
        converse("qwen", &["--acp", "--auth-type", "openai"]);
    }

    #[test]
    #[ignore = "nightly: the agent is large, and installed for the nightly tier only"]
    fn vibe_talks_and_uses_a_tool() {
        converse("vibe-acp", &[]);
    }
}
