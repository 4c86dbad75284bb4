//! The official SDKs of TypeScript and of Rust as clients of the web front, over WebSocket and over
//! HTTP: a whole conversation, and one that is cut in the middle of a turn.

use jackfield_e2e::{Client, Daemon, Home, cli::installed, http::Web, proxy::Proxy, wait_for};
use serde_json::{Value, json};
use std::{
    net::SocketAddr,
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

const BOUND: Duration = Duration::from_secs(20);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sdk {
    TypeScript,
    Rust,
}

/// A process that does with an SDK what it is told.
struct Driver {
    child: Child,
    client: Client,
    next_id: u64,
}

impl Driver {
    fn start(sdk: Sdk, home: &Home, web: &Web) -> Driver {
        let mut command = match sdk {
            Sdk::TypeScript => {
                let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("node/client.mjs");
                let mut command = Command::new("node");
                command.arg(script).arg(installed("sdk"));
                command
            }
            Sdk::Rust => Command::new(installed("bin/sdk-rust")),
        };
        command.env("JACKFIELD_TOKEN", &web.token).env("E2E_MARK", home.mark());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the SDK's driver starts");
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut client = Client::new(Box::new(stdout), Box::new(stdin));
        client.until("the SDK to load", |it| it["ready"] == true);
        Driver { child, client, next_id: 0 }
    }

    fn tell(&mut self, command: &Value) {
        self.client.send_line(&command.to_string());
    }

    /// Connects and says hello; what the hub answered.
    fn connect(&mut self, over: &str, at: SocketAddr) -> Value {
        self.client.heard.clear();
        self.tell(&json!({ "do": "connect", "over": over, "url": format!("http://{at}/acp") }));
        self.result("initialize", &json!({ "protocolVersion": 1, "clientCapabilities": {} }))
    }

    fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.next_id += 1;
        let id = self.next_id;
        self.tell(&json!({ "do": "request", "id": id, "method": method, "params": params }));
        id
    }

    fn answer(&mut self, id: u64) -> Value {
        self.client.until(&format!("the answer to request {id}"), |it| it["id"] == id)
    }

    fn result(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send(method, params);
        let answer = self.answer(id);
        assert!(answer.get("result").is_some(), "`{method}` failed: {answer}");
        answer["result"].clone()
    }

    fn prompt(&mut self, session: &str, text: &str) -> u64 {
        let prompt = json!([{ "type": "text", "text": text }]);
        self.send("session/prompt", &json!({ "sessionId": session, "prompt": prompt }))
    }

    fn stop_reason(&mut self, prompt: u64) -> String {
        self.answer(prompt)["result"]["stopReason"].as_str().unwrap().to_owned()
    }

    /// The agent's words since the last connect, one piece an update.
    fn pieces(&self) -> Vec<&str> {
        let updates = self.client.heard.iter().filter_map(|it| it.pointer("/update/update"));
        let spoken = updates.filter(|it| it["sessionUpdate"] == "agent_message_chunk");
        spoken.filter_map(|it| it.pointer("/content/text")?.as_str()).collect()
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // It ends with its stdin; who does not is ended.
        let _ended = self.child.kill();
        let _status = self.child.wait();
    }
}

/// A daemon with a web front, and an agent that every session gets.
pub(crate) fn serve_web(home: &Home) -> (Daemon, Web) {
    let config = home.path().join("config");
    std::fs::create_dir_all(&config).unwrap();
    let command = json!(home.fake_agent(&[]));
    let text = format!("default_agent = \"fake\"\n[agents.fake]\ncommand = {command}\n");
    std::fs::write(config.join("config.toml"), text).unwrap();
    let daemon = home.serve(&["--listen", "http://127.0.0.1:0"]);
    (daemon, Web::of(home))
}

fn new_session(driver: &mut Driver, home: &Home) -> String {
    let opened = driver.result("session/new", &json!({ "cwd": home.path(), "mcpServers": [] }));
    opened["sessionId"].as_str().unwrap().to_owned()
}

fn load(driver: &mut Driver, home: &Home, session: &str) {
    let params = json!({ "sessionId": session, "cwd": home.path(), "mcpServers": [] });
    driver.result("session/load", &params);
}

#[test]
fn the_typescript_sdk_goes_through_a_conversation_over_a_websocket() {
    converse(Sdk::TypeScript, "ws");
}

#[test]
fn the_typescript_sdk_goes_through_a_conversation_over_http() {
    converse(Sdk::TypeScript, "http");
}

#[ignore = "nightly: the driver takes two minutes to build"]
#[test]
fn the_rust_sdk_goes_through_a_conversation_over_a_websocket() {
    converse(Sdk::Rust, "ws");
}

#[ignore = "nightly: the driver takes two minutes to build"]
#[test]
fn the_rust_sdk_goes_through_a_conversation_over_http() {
    converse(Sdk::Rust, "http");
}

/// A prompt, a permission, a cancel; then the same session again from another connection.
fn converse(sdk: Sdk, over: &str) {
    let home = Home::new();
    let (daemon, web) = serve_web(&home);
    let mut driver = Driver::start(sdk, &home, &web);
    let hello = driver.connect(over, web.address);
    assert_eq!(hello["agentCapabilities"]["loadSession"], true);
    let session = new_session(&mut driver, &home);

    let prompt = driver.prompt(&session, "hello");
    assert_eq!(driver.stop_reason(prompt), "end_turn");
    assert_eq!(driver.pieces(), ["you said: hello"]);

    let prompt = driver.prompt(&session, "ask");
    let asked = driver.client.until("the permission request", |it| it.get("ask").is_some());
    assert_eq!(asked["params"]["sessionId"], session.as_str());
    let allowed = json!({ "outcome": { "outcome": "selected", "optionId": "allow-once" } });
    driver.tell(&json!({ "do": "answer", "ask": asked["ask"], "result": allowed }));
    assert_eq!(driver.stop_reason(prompt), "end_turn");
    assert_eq!(driver.pieces().last(), Some(&"ask 1: allow-once"));

    let prompt = driver.prompt(&session, "think then hang");
    driver.client.until("the turn to begin", |it| {
        it.pointer("/update/update/sessionUpdate") == Some(&json!("agent_thought_chunk"))
    });
    let cancel =
        json!({ "do": "notify", "method": "session/cancel", "params": { "sessionId": session } });
    driver.tell(&cancel);
    assert_eq!(driver.stop_reason(prompt), "cancelled");

    let live: Vec<String> = driver.pieces().iter().map(ToString::to_string).collect();
    driver.tell(&json!({ "do": "close" }));
    driver.client.until("the end", |it| it["closed"] == true);
    driver.connect(over, web.address);
    load(&mut driver, &home, &session);
    assert_eq!(driver.pieces(), live, "the replay is what was heard live");
    let prompt = driver.prompt(&session, "complaints");
    assert_eq!(driver.stop_reason(prompt), "end_turn");
    assert!(driver.pieces().last().unwrap().starts_with("complaints 0"), "{:?}", driver.pieces());
    let listed = driver.result("session/list", &json!({}));
    assert_eq!(listed["sessions"][0]["sessionId"], session.as_str());
    drop(driver);
    daemon.stop();
}

#[test]
fn the_typescript_sdk_is_cut_off_in_mid_turn_and_loads_everything_over_a_websocket() {
    cut_and_load(Sdk::TypeScript, "ws");
}

#[test]
fn the_typescript_sdk_is_cut_off_in_mid_turn_and_loads_everything_over_http() {
    cut_and_load(Sdk::TypeScript, "http");
}

#[ignore = "nightly: the driver takes two minutes to build"]
#[test]
fn the_rust_sdk_is_cut_off_in_mid_turn_and_loads_everything_over_a_websocket() {
    cut_and_load(Sdk::Rust, "ws");
}

#[ignore = "nightly: the driver takes two minutes to build"]
#[test]
fn the_rust_sdk_is_cut_off_in_mid_turn_and_loads_everything_over_http() {
    cut_and_load(Sdk::Rust, "http");
}

/// As the SDKs' documentation says: a new stream, `initialize`, `session/load`.
fn cut_and_load(sdk: Sdk, over: &str) {
    let home = Home::new();
    let (daemon, web) = serve_web(&home);
    let proxy = Proxy::to(web.address);
    let mut driver = Driver::start(sdk, &home, &web);
    driver.connect(over, proxy.at);
    let session = new_session(&mut driver, &home);
    let prompt = driver.prompt(&session, "slow 30 20");
    driver.client.until("a few words", |it| {
        it.pointer("/update/update/content/text") == Some(&json!("slow 5 "))
    });
    proxy.cut();
    assert!(driver.answer(prompt).get("error").is_some(), "it is told");
    driver.connect(over, proxy.at);
    load(&mut driver, &home, &session);
    let all: Vec<String> = (1..=30).map(|it| format!("slow {it} ")).collect();
    wait_for("the last word", BOUND, || {
        driver.client.next(Duration::ZERO);
        (driver.pieces().last() == Some(&"slow 30 ")).then_some(())
    });
    assert_eq!(driver.pieces(), all, "nothing lost, nothing twice");
    let prompt = driver.prompt(&session, "and on");
    assert_eq!(driver.stop_reason(prompt), "end_turn");
    assert_eq!(driver.pieces().last(), Some(&"you said: and on"));
    drop(driver);
    daemon.stop();
}
