//! An error that the hub or the agent answered with, told so that a person can act on it.

use crate::{exit::Exit, out::clean};
use serde_json::Value;

/// Behind these words the daemon says what to do about an agent that it cannot start.
const WAY_OUT: &str = "; to fix it: ";

/// An error answer: JSON-RPC's members, and what the hub adds.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    error: Value,
}

impl Answer {
    pub(crate) fn new(error: Value) -> Answer {
        Answer { error }
    }

    pub(crate) fn code(&self) -> i64 {
        self.error["code"].as_i64().unwrap_or(0)
    }

    /// The hub's stable name for it; empty if it is the agent's own error.
    pub(crate) fn name(&self) -> &str {
        self.ours("code")
    }

    pub(crate) fn ours(&self, member: &str) -> &str {
        self.error["data"]["jackfield"][member].as_str().unwrap_or_default()
    }

    pub(super) fn message(&self) -> String {
        let agent = self.ours("agent");
        match self.name() {
            "agent_gone" => format!("agent `{agent}` ended before it answered"),
            "agent_not_started" => format!("agent `{agent}` could not be started"),
            "agent_suspended" => format!("agent `{agent}` is not started now"),
            "cannot_resume" => format!("session `{}` cannot be resumed", self.ours("session")),
            "no_agent" => "no agent to use".to_owned(),
            "interrupted" => "the turn was interrupted".to_owned(),
            "ask_settled" => format!("ask {} is settled already", self.ours("ask")),
            _ => clean(self.error["message"].as_str().unwrap_or("an error without a message"))
                .into_owned(),
        }
    }

    /// The same as the cause of something else.
    pub(crate) fn as_causes(&self) -> Vec<String> {
        [vec![self.message()], self.causes()].concat()
    }

    pub(super) fn causes(&self) -> Vec<String> {
        let ours = match self.name() {
            "agent_gone" => self.ours("status"),
            "ask_settled" => self.ours("how"),
            "agent_not_started" | "agent_suspended" | "cannot_resume" | "no_agent"
            | "interrupted" => self.ours("why"),
            _ => return self.agents_causes(),
        };
        let ours = ours.split_once(WAY_OUT).map_or(ours, |it| it.0);
        [ours].into_iter().filter(|it| !it.is_empty()).map(|it| clean(it).into_owned()).collect()
    }

    /// What agents put into `data` has no form: text, or an object with some kind of text.
    fn agents_causes(&self) -> Vec<String> {
        let data = &self.error["data"];
        let told = ["details", "detail", "message", "error", "reason"];
        let told = told.iter().find_map(|it| data.get(*it).and_then(Value::as_str));
        let told = told.or(data.as_str()).map(|it| clean(it).into_owned());
        let code = (self.name().is_empty()).then(|| format!("the agent answered {}", self.code()));
        told.into_iter().chain(code).collect()
    }

    pub(super) fn exit(&self) -> Exit {
        match (self.name(), self.code()) {
            ("session_not_found" | "no_agent" | "ask_not_found", _) | (_, -32002) => Exit::NotFound,
            ("cancelled", _) | (_, -32800) => Exit::Interrupted,
            ("stopping", _) => Exit::Unreachable,
            _ => Exit::Failed,
        }
    }

    pub(super) fn hint(&self) -> String {
        let agent = self.ours("agent");
        match (self.name(), self.code()) {
            ("no_agent", _) => {
                "name one with `--agent` (`jackfield agents` lists them), give its command after \
                 `--`, or set `default_agent` in config.toml"
                    .into()
            }
            ("session_not_found", _) => "`jackfield sessions list` shows all sessions".into(),
            ("agent_not_started", _) if self.ours("why").contains(WAY_OUT) => {
                clean(self.ours("why").split_once(WAY_OUT).unwrap_or_default().1).into_owned()
            }
            ("agent_not_started", _) if self.ours("why").contains("not found") => format!(
                "install `{agent}`, or correct its command after `--` or under [agents.{agent}] \
                 in config.toml"
            ),
            ("agent_not_started" | "agent_gone", _) => {
                "run the agent's own command by itself: it may say more".into()
            }
            ("agent_suspended", _) => format!(
                "run the agent's own command by itself to see what is wrong; `fallback` under \
                 [agents.{agent}] in config.toml names one to use meanwhile"
            ),
            ("cannot_resume", _) => {
                "start a new session: leave `--session` out; `jackfield log` still has this one"
                    .into()
            }
            ("ask_not_found", _) => "`jackfield asks` lists what is asked".into(),
            ("ask_settled", _) => {
                format!("`jackfield log {}` shows the answer", self.ours("session"))
            }
            ("interrupted", _) => {
                "send the prompt again: what was said is in `jackfield log`".into()
            }
            ("overloaded", _) => {
                "try again when fewer prompts wait; `jackfield queue SESSION` lists them".into()
            }
            ("prompt_not_waiting", _) => {
                format!("`jackfield queue {}` lists what waits", self.ours("session"))
            }
            ("host_lost", _) => {
                "start a host with that name again (`--host-name`), where its directories are; `jackfield log`, \
                 `sessions show` and `sessions export` read the session meanwhile"
                    .into()
            }
            ("stopping", _) => "try again: the next command starts a new daemon".into(),
            (_, -32000) => "log in with the agent's own command, then try again".into(),
            _ => String::new(),
        }
    }
}
