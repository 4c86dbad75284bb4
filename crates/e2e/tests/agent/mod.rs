//! Our own agent as editors meet it: `jackfield agent` on pipes, and a model server on loopback.

mod bridge;
mod cancel;
mod coding;
mod daemon;
mod docs;
mod editor;
mod ends;
mod errors;
mod kill;
mod limits;
mod mcp;
mod mcp_run;
mod openai_agent;
mod options;
mod other_clients;
mod real;
mod sandboxed;
mod script;
mod seen;
mod sessions;

use jackfield_e2e::{Client, Home, RealModel, wait_for};
use jackfield_test_support::{fake_model::FakeModel, scripted_model::ScriptedModel};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::{
    fs::File,
    io::{empty, sink},
    process::{Child, ExitStatus, Stdio},
    time::Duration,
};

/// Where the agent's stderr goes, below the home.
const SAID: &str = "agent.stderr";
/// How soon an agent ends that is told to. The tests of the whole suite run side by side.
const END_MAX: Duration = Duration::from_secs(5);

/// A server that can be asked over Chat Completions.
trait Serves {
    /// For `OPENAI_BASE_URL`.
    fn base_url(&self) -> String;
}

impl Serves for FakeModel {
    fn base_url(&self) -> String {
        format!("{}/v1", self.url())
    }
}

impl Serves for ScriptedModel {
    fn base_url(&self) -> String {
        self.url()
    }
}

impl Serves for RealModel {
    fn base_url(&self) -> String {
        self.base_url()
    }
}

/// A model, an agent that asks it, and an editor that talks to the agent and has said hello. In the end
/// the editor leaves, and the agent must end by itself.
struct Desk<M> {
    client: Client,
    child: Child,
    model: M,
    variables: Vec<(String, String)>,
    home: Home,
}

impl<M: Serves> Desk<M> {
    /// With these variables of the environment besides those that say where the model is.
    fn new(model: M, variables: &[(&str, &str)]) -> Desk<M> {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let mut desk = Desk::silent(Home::new(), model, variables.iter().map(own).collect());
        desk.client.hello();
        desk
    }

    /// A client that has said nothing yet.
    fn silent(home: Home, model: M, variables: Vec<(String, String)>) -> Desk<M> {
        let (child, client) = start(&home, &model.base_url(), &variables);
        Desk { client, child, model, variables, home }
    }

    /// The next process, in the same home, after this one was told to end and did.
    fn restart(&mut self) {
        self.leave();
        self.begin();
    }

    /// The next process, when this one has ended.
    fn begin(&mut self) {
        (self.child, self.client) = start(&self.home, &self.model.base_url(), &self.variables);
        self.client.hello();
    }
}

impl<M> Desk<M> {
    /// A new session in the home.
    fn open(&mut self) -> String {
        self.client.open(self.home.path())
    }

    /// One whole turn: what the agent said in it, and why it stopped.
    fn turn(&mut self, session: &str, text: &str) -> (String, String) {
        let before = self.text_of(session).len();
        let stop = self.client.prompt(session, text);
        (self.text_of(session)[before..].to_owned(), stop)
    }

    /// A turn that the agent ends with an error: what it said, and the message with its details.
    fn failed_turn(&mut self, session: &str, text: &str) -> (String, String) {
        let before = self.text_of(session).len();
        let id = self.client.send_prompt(session, text);
        let answer = self.client.answer(id);
        let error = answer.get("error").unwrap_or_else(|| panic!("it did not fail: {answer}"));
        let parts = [&error["message"], &error["data"]["details"]];
        let parts: Vec<&str> = parts.into_iter().filter_map(Value::as_str).collect();
        (self.text_of(session)[before..].to_owned(), parts.join("\n"))
    }

    /// What the agent has said in a session so far.
    fn text_of(&self, session: &str) -> String {
        let updates = self.updates(session);
        let said = updates.iter().filter(|it| it["sessionUpdate"] == "agent_message_chunk");
        said.filter_map(|it| it["content"]["text"].as_str()).collect()
    }

    fn cancel(&mut self, session: &str) {
        self.client.notify("session/cancel", &json!({ "sessionId": session }));
    }

    /// What every method that opens a session takes besides its id.
    fn place(&self, session: &str) -> Value {
        json!({ "sessionId": session, "cwd": self.home.path(), "mcpServers": [] })
    }

    /// All updates heard in a session so far, in order, with what they say.
    fn updates(&self, session: &str) -> Vec<Value> {
        let of = |it: &&Value| {
            it["method"] == "session/update"
                && it.pointer("/params/sessionId") == Some(&session.into())
        };
        self.client.heard.iter().filter(of).map(|it| it["params"]["update"].clone()).collect()
    }

    /// What the agent's processes said on stderr so far.
    fn said(&self) -> String {
        std::fs::read_to_string(self.home.path().join(SAID)).unwrap()
    }

    /// The editor closes the agent's input and waits for its end.
    fn leave(&mut self) -> ExitStatus {
        self.client = Client::new(Box::new(empty()), Box::new(sink()));
        self.ended()
    }

    fn terminate(&mut self) -> ExitStatus {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("a pid");
        kill_process(pid, Signal::TERM).expect("it is ours");
        self.ended()
    }

    fn ended(&mut self) -> ExitStatus {
        wait_for("the agent's end", END_MAX, || self.child.try_wait().expect("our own child"))
    }
}

impl<M> Drop for Desk<M> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // A test that failed says why, and not that this took long.
            let _gone = self.child.kill().and_then(|()| self.child.wait());
        } else if self.child.try_wait().is_ok_and(|it| it.is_none()) {
            self.leave();
        }
    }
}

fn start(home: &Home, url: &str, variables: &[(String, String)]) -> (Child, Client) {
    let mut command = home.command(&["agent"]);
    command.env("OPENAI_BASE_URL", url).env("OPENAI_API_KEY", "test-key");
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    let said = File::options().create(true).append(true).open(home.path().join(SAID));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(said.unwrap());
    let mut child = command.spawn().expect("the agent starts");
    let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    (child, Client::new(Box::new(stdout), Box::new(stdin)))
}

/// Fails unless every server would accept these messages: one of the system at most and it is the first,
/// never two of the user in a row, every call followed by its result.
fn must_be_sound(messages: &Value) {
    let messages = messages.as_array().expect("a list of messages");
    let mut last = "";
    let mut waiting: Vec<&str> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap();
        let told = || format!("message {at} of {messages:#?}");
        if role == "tool" {
            let id = message["tool_call_id"].as_str().unwrap();
            let call = waiting.iter().position(|it| *it == id);
            waiting.remove(call.unwrap_or_else(|| panic!("no call has this result: {}", told())));
        } else {
            assert!(waiting.is_empty(), "calls without a result before {}", told());
            assert!(role != "system" || at == 0, "{}", told());
            assert!(role != "user" || last != "user", "twice the user: {}", told());
            let calls = message["tool_calls"].as_array().into_iter().flatten();
            waiting = calls.map(|it| it["id"].as_str().unwrap()).collect();
        }
        last = role;
    }
    assert!(waiting.is_empty() && matches!(last, "user" | "tool"), "{messages:#?}");
}

#[test]
fn an_agent_introduces_itself_and_says_what_it_can() {
    let home = Home::new();
    let mut desk = Desk::silent(home, FakeModel::start(), Vec::new());
    let hello = desk.client.hello();
    assert_eq!(hello["protocolVersion"], 1);
    assert_eq!(hello["agentInfo"]["name"], "jackfield");
    let can = &hello["agentCapabilities"];
    assert_eq!(can["loadSession"], true);
    assert_eq!(can["promptCapabilities"]["image"], true);
    assert_eq!(can["promptCapabilities"]["embeddedContext"], true);
    assert_eq!(can["mcpCapabilities"]["http"], true);
    assert_eq!(can["mcpCapabilities"]["sse"], true);
    let sessions = can["sessionCapabilities"].as_object().unwrap();
    for what in ["list", "resume", "fork", "close", "delete", "additionalDirectories"] {
        assert!(sessions.contains_key(what), "{what} is missing in {can}");
    }
}
