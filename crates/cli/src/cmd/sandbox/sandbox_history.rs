//! The sandbox of a session by its log: the last plan, and what was refused.

use jackfield_events::{
    ConnectionRefused, EventBody, ReceivedEvent, RequestServed, SandboxApplied, ServedOutcome, Time,
};
use jackfield_protocol::acp::Method;
use jackfield_sandbox::{explanation::find_refusals, plan::SandboxPlan};
use serde_json::Value;
use std::{
    collections::VecDeque,
    path::{Path, PathBuf},
};

/// How many of the last refusals are kept.
const REFUSALS_MAX: usize = 50;

/// The last sandbox of a session, and its last refusals.
#[derive(Debug)]
pub(super) struct SandboxHistory {
    pub(super) sandbox: Option<LoggedSandbox>,
    pub(super) refusals: VecDeque<LoggedRefusal>,
    home: PathBuf,
    cwd: PathBuf,
}

/// The sandbox of the agent's last process.
#[derive(Debug)]
pub(super) struct LoggedSandbox {
    pub(super) at: Time,
    pub(super) profile: String,
    pub(super) hosts: Vec<String>,
    pub(super) plan: SandboxPlan,
}

/// Something that the sandbox refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LoggedRefusal {
    pub(super) at: Time,
    pub(super) what: RefusedAction,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum RefusedAction {
    Connection(ConnectionRefused),
    /// A file request that the daemon serves.
    Request {
        method: String,
        path: PathBuf,
        why: String,
    },
    /// A line in the output of a tool.
    Output {
        line: String,
        path: PathBuf,
    },
}

impl SandboxHistory {
    /// `cwd` is the working directory of the session.
    pub(super) fn new(home: &Path, cwd: &str) -> SandboxHistory {
        let (home, cwd) = (home.to_owned(), PathBuf::from(cwd));
        SandboxHistory { sandbox: None, refusals: VecDeque::new(), home, cwd }
    }

    pub(super) fn add_event(&mut self, event: &ReceivedEvent) {
        match &event.body {
            EventBody::Opened(_) | EventBody::Bound(_) => self.sandbox = None,
            EventBody::Sandboxed(applied) => self.sandbox = read_sandbox(event.at, applied),
            EventBody::HostRefused(refused) => {
                self.add_refusal(event.at, RefusedAction::Connection(refused.clone()));
            }
            EventBody::Served(served) => self.add_served(event.at, served),
            EventBody::Said(message) => self.add_message(event.at, &message.frame),
            _ => {}
        }
    }

    fn add_refusal(&mut self, at: Time, what: RefusedAction) {
        if self.refusals.iter().any(|it| it.what == what) {
            return;
        }
        if REFUSALS_MAX <= self.refusals.len() {
            self.refusals.pop_front();
        }
        self.refusals.push_back(LoggedRefusal { at, what });
    }

    fn add_served(&mut self, at: Time, served: &RequestServed<Value>) {
        let ServedOutcome::Failed(why) = &served.outcome else { return };
        if self.sandbox.is_none() || !why.contains("sandbox") {
            return;
        }
        let text = |name: &str| served.call[name].as_str().unwrap_or_default().to_owned();
        let (method, path) = (text("method"), PathBuf::from(text("path")));
        self.add_refusal(at, RefusedAction::Request { method, path, why: why.to_string() });
    }

    /// Looks for errors in the output of tools.
    fn add_message(&mut self, at: Time, frame: &Value) {
        let update = &frame["params"]["update"];
        let is_update = Method::SessionUpdate.name() == frame["method"];
        let Some(sandbox) = self.sandbox.as_ref().filter(|_| is_update) else { return };
        if update["sessionUpdate"] != "tool_call_update" && update["sessionUpdate"] != "tool_call" {
            return;
        }
        let mut output = String::new();
        for name in ["content", "rawOutput"] {
            collect_texts(&update[name], &mut output);
        }
        let found = find_refusals(&sandbox.plan, &output, &self.home, &self.cwd);
        for it in found {
            self.add_refusal(at, RefusedAction::Output { line: it.line, path: it.path });
        }
    }
}

/// None for a plan of another version.
fn read_sandbox(at: Time, applied: &SandboxApplied<Value>) -> Option<LoggedSandbox> {
    let plan = serde_json::from_value(applied.plan.clone()).ok()?;
    let (profile, hosts) = (applied.profile.to_string(), applied.hosts.clone());
    Some(LoggedSandbox { at, profile, hosts, plan })
}

/// All texts in a JSON value, each on lines of its own.
fn collect_texts(value: &Value, texts: &mut String) {
    match value {
        Value::String(text) => {
            texts.push_str(text);
            texts.push('\n');
        }
        Value::Array(items) => items.iter().for_each(|it| collect_texts(it, texts)),
        Value::Object(members) => members.values().for_each(|it| collect_texts(it, texts)),
        _ => {}
    }
}
