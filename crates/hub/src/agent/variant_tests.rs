//! A launch variant that cannot be started is followed by the next one, and does not count as a failure.

use crate::{
    AgentId, Config, ConnId, Exit, Hub, Input, Launch, Output, Time, VariantChoice, limits,
};
use jackfield_protocol::Frame;
use serde_json::{Value, json};
use std::{collections::BTreeMap, path::PathBuf};

const CLIENT: ConnId = ConnId(1);

/// A hub with one agent of the catalog, which has the variants `one` and `two`.
struct Scene {
    hub: Hub,
    now: Time,
    spawned: Vec<(AgentId, VariantChoice)>,
    received: Vec<Value>,
}

impl Scene {
    fn new() -> Scene {
        let launch = Launch {
            name: "fake".into(),
            argv: Vec::new(),
            cwd: PathBuf::new(),
            env: None,
            variant: VariantChoice::Any,
            sandbox: crate::SandboxRequest::default(),
        };
        let agents = BTreeMap::from([("fake".into(), launch)]);
        let config = Config { agents, ..Config::default() };
        let hub = Hub::new(config, Time(0), []);
        let mut scene = Scene { hub, now: Time(1), spawned: Vec::new(), received: Vec::new() };
        scene.feed(Input::ClientOpened { conn: CLIENT, peer: None });
        scene.ask("_jackfield/connect", &json!({ "agent": "fake" }));
        scene.ask("initialize", &json!({ "protocolVersion": 1 }));
        scene
    }

    fn feed(&mut self, input: Input) {
        self.hub.handle(self.now, input);
        while let Some(output) = self.hub.poll_output() {
            match output {
                Output::Spawn { agent, launch } => self.spawned.push((agent, launch.variant)),
                Output::ToClient { text, .. } => {
                    self.received.push(serde_json::from_slice(&text).unwrap());
                }
                _ => {}
            }
        }
    }

    fn ask(&mut self, method: &str, params: &Value) {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let frame = Frame::parse_str(&message.to_string()).unwrap();
        self.feed(Input::ClientSpoke { conn: CLIENT, frame });
    }

    /// The driver reports the variant of the last process.
    fn choose(&mut self, variant: &str, next: Option<&str>) -> AgentId {
        let agent = self.spawned.last().unwrap().0;
        let next = next.map(Into::into);
        self.feed(Input::AgentVariantChosen { agent, variant: variant.into(), next });
        self.feed(Input::AgentStarted { agent, pid: 7 });
        agent
    }

    fn end(&mut self, agent: AgentId, stderr: &str) {
        let (status, stderr) = ("exit status 2".to_owned(), stderr.to_owned());
        let exit = Exit { status, stderr, started: true, shortage: false };
        self.feed(Input::AgentGone { agent, exit });
    }
}

#[test]
fn next_variant_is_started_and_the_answer_has_the_reason() {
    let mut scene = Scene::new();
    let first = scene.choose("one", Some("two"));
    scene.end(first, "usage: fake\nerror: unknown option --acp\n");
    assert_eq!(scene.spawned.last().unwrap().1, VariantChoice::From("two".into()));
    let second = scene.choose("two", None);
    let frame = Frame::parse_str(r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}"#);
    scene.feed(Input::AgentSpoke { agent: second, frame: frame.unwrap() });
    let fallback = &scene.received.last().unwrap()["result"]["_meta"]["jackfield"]["fallback"];
    assert_eq!(fallback[0]["variant"], "one");
    assert!(fallback[0]["why"].as_str().unwrap().contains("unknown option --acp"), "{fallback}");
}

#[test]
fn error_of_the_last_variant_has_the_reasons_of_all() {
    let mut scene = Scene::new();
    let first = scene.choose("one", Some("two"));
    scene.end(first, "no option --acp\n");
    let second = scene.choose("two", None);
    scene.end(second, "no login\n");
    let error = scene.received.last().unwrap()["error"].to_string();
    assert!(error.contains("no option --acp") && error.contains("`one`"), "{error}");
}

#[test]
fn variant_that_does_not_answer_is_given_up_early_if_another_follows() {
    let mut scene = Scene::new();
    scene.choose("one", Some("two"));
    scene.now = Time(2 + limits::VARIANT_START_MS_MAX);
    scene.feed(Input::Tick);
    assert_eq!(scene.spawned.last().unwrap().1, VariantChoice::From("two".into()));
    scene.choose("two", None);
    scene.now = Time(4 + 2 * limits::VARIANT_START_MS_MAX);
    scene.feed(Input::Tick);
    assert_eq!(scene.spawned.len(), 2, "the last variant has the whole time");
}

#[test]
fn failed_variant_does_not_suspend_the_agent() {
    let mut scene = Scene::new();
    for _ in 0..10 {
        let first = scene.choose("one", Some("two"));
        scene.end(first, "");
        let second = scene.choose("two", None);
        let frame = Frame::parse_str(r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}"#);
        scene.feed(Input::AgentSpoke { agent: second, frame: frame.unwrap() });
        scene.feed(Input::ClientGone { conn: CLIENT });
        scene.feed(Input::ClientOpened { conn: CLIENT, peer: None });
        let spawned = scene.spawned.len();
        scene.ask("_jackfield/connect", &json!({ "agent": "fake" }));
        scene.ask("initialize", &json!({ "protocolVersion": 1 }));
        assert_eq!(scene.spawned.len(), spawned + 1, "{:?}", scene.received.last());
    }
}
