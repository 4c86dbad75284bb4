//! One type per kind of event. Frames in them name the session by the hub's id.
//!
//! `J` is how embedded JSON is held: as its exact text ([`RawJson`], in the hub and the journal) or
//! parsed (`serde_json::Value`, in views and clients).

use crate::{
    AgentName, AgentSessionId, HostId, RawJson, RestoreStep, SESSION_CANCELLED, Seq, ServedOutcome,
    SessionId, Time, TurnOutcome,
};
use serde::{Deserialize, Serialize, de::Error as _};
use std::sync::Arc;

/// The session was created by an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionOpened<J = RawJson> {
    pub agent: AgentName,
    pub argv: Vec<String>,
    pub cwd: String,
    /// The params of `session/new`.
    pub params: J,
    pub agent_session: AgentSessionId,
    /// The agent's result of `session/new`.
    pub setup: J,
    /// The launch variant of the catalog that serves it; none for a command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<Arc<str>>,
    /// The agents and launch variants that were tried before and failed, each with the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback: Option<J>,
    /// The sandbox profile of the agent's process; none if it runs without limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<Arc<str>>,
    /// What the agent accepts in a prompt besides text; earlier versions did not write it.
    #[serde(default, skip_serializing_if = "PromptCapabilities::is_text_only")]
    pub prompt_capabilities: PromptCapabilities,
}

/// What an agent accepts in a prompt besides text: `promptCapabilities` of its `initialize` result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PromptCapabilities {
    pub image: bool,
    pub audio: bool,
    pub embedded_context: bool,
}

impl PromptCapabilities {
    pub fn is_text_only(&self) -> bool {
        *self == PromptCapabilities::default()
    }
}

/// The events up to here are a copy: the session branched off another one after that one's `seq_there`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionForked<J = RawJson> {
    pub from: SessionId,
    pub seq_there: Seq,
    pub cwd: String,
    pub params: J,
}

/// The events up to here were imported. The session had this id where it was exported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionImported {
    pub from: SessionId,
}

/// Another host has the session from now on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionMoved {
    pub from: HostId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<HostId>,
    pub why: Arc<str>,
}

/// A new agent process took over the session, or every attempt failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentBound<J = RawJson> {
    /// Earlier versions wrote `rung`.
    #[serde(alias = "rung")]
    pub restore: RestoreStep,
    pub setup: J,
    /// The agent's new id of the session, if it changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_session: Option<AgentSessionId>,
    /// The sandbox profile of the new process; none if it runs without limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<Arc<str>>,
    /// The methods that failed before, each with the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tried: Option<J>,
}

/// The agent sent a notification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentMessage<J = RawJson> {
    /// 0 before the first turn.
    pub turn: u64,
    /// The turn had already ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub late: bool,
    pub frame: J,
}

/// A prompt waits for the running turn to end or for the agent to start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptQueued<J = RawJson> {
    pub prompt: u64,
    pub by: Arc<str>,
    pub frame: J,
}

/// A queued prompt will not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptWithdrawn {
    pub prompt: u64,
    pub why: Arc<str>,
}

/// A client moved a prompt in the queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueReordered {
    /// The prompt that was moved.
    pub prompt: u64,
    pub by: Arc<str>,
    /// All prompts that wait, in their new order: those that will run, then the held ones.
    pub order: Vec<u64>,
}

/// The reason of a prompt whose own client withdrew it. Journals contain it, so it may not change.
pub const WITHDRAWN_BY_SENDER: &str = "its client withdrew it";
/// How the reason of a prompt begins that another client withdrew; the name of the client follows.
pub const WITHDRAWN_BY_PREFIX: &str = "withdrawn by ";

impl PromptWithdrawn {
    /// Whether a client withdrew the prompt or canceled the session. Otherwise it could not run.
    pub fn is_by_client(&self) -> bool {
        [SESSION_CANCELLED, WITHDRAWN_BY_SENDER].contains(&&*self.why)
            || self.why.starts_with(WITHDRAWN_BY_PREFIX)
    }
}

/// A prompt started a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnStarted<J = RawJson> {
    pub turn: u64,
    pub by: Arc<str>,
    /// The prompt's number in the queue, if it was queued.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<u64>,
    pub frame: J,
}

/// A client canceled the turn, or a later step of canceling was taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnCancelled {
    pub turn: u64,
    /// 1 is `session/cancel`, 2 its repetition, 3 ends the process.
    pub step: u64,
}

/// The turn ended. Each turn has exactly one outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    try_from = "TurnEndedFields<J>",
    into = "TurnEndedFields<J>",
    bound(serialize = "J: Clone + Serialize")
)]
pub struct TurnEnded<J = RawJson> {
    pub turn: u64,
    pub outcome: TurnOutcome<J>,
}

/// The members of a [`TurnEnded`] in its JSON form.
#[derive(Serialize, Deserialize)]
struct TurnEndedFields<J> {
    turn: u64,
    how: String,
    answer: J,
}

impl<J> TryFrom<TurnEndedFields<J>> for TurnEnded<J> {
    type Error = serde::de::value::Error;

    fn try_from(fields: TurnEndedFields<J>) -> Result<TurnEnded<J>, Self::Error> {
        let outcome = match fields.how.as_str() {
            "stopped" => TurnOutcome::Stopped(fields.answer),
            "failed" => TurnOutcome::Failed(fields.answer),
            "interrupted" => TurnOutcome::Interrupted(fields.answer),
            other => {
                let known = &["stopped", "failed", "interrupted"];
                return Err(Self::Error::unknown_variant(other, known));
            }
        };
        Ok(TurnEnded { turn: fields.turn, outcome })
    }
}

impl<J: Clone> From<TurnEnded<J>> for TurnEndedFields<J> {
    fn from(ended: TurnEnded<J>) -> TurnEndedFields<J> {
        let (how, answer) = (ended.outcome.name().to_owned(), ended.outcome.json().clone());
        TurnEndedFields { turn: ended.turn, how, answer }
    }
}

/// The agent sent a request to the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserAsked<J = RawJson> {
    pub ask: u64,
    /// What the policy decided, if a rule applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<J>,
    /// The commands and paths of the request as the policy reads them, if a person decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<J>,
    pub frame: J,
}

/// A request to the user was answered, by a client, a rule or the hub.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserAnswered<J = RawJson> {
    pub ask: u64,
    pub by: Arc<str>,
    /// `{"result":…}` or `{"error":…}` as sent to the agent, or `{"void":"reason"}`.
    pub answer: J,
    /// The process of the client that answered: its pid, uid and executable, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<J>,
}

/// A client that runs below an agent requested an operation that only the operator may request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationRefused<J = RawJson> {
    pub operation: Arc<str>,
    pub by: Arc<str>,
    pub why: Arc<str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<J>,
}

/// The agent's process of this session runs in a sandbox. Follows the event that binds the process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxApplied<J = RawJson> {
    pub profile: Arc<str>,
    /// The hosts that the process may connect to without a question, if its network is limited to hosts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// What the process may do: the `SandboxPlan` of the crate `sandbox`.
    pub plan: J,
}

/// The sandbox refused a connection of the agent. The same refusal is logged once per process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConnectionRefused {
    pub host: Arc<str>,
    /// None if the host is invalid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    pub why: Arc<str>,
    /// What the agent or the user can do about it.
    pub way_out: Arc<str>,
}

impl ConnectionRefused {
    /// The host, with its port if that is known.
    pub fn destination(&self) -> String {
        match self.port {
            Some(port) => format!("{}:{port}", self.host),
            None => self.host.to_string(),
        }
    }
}

/// A message of the agent exceeded the size limit and was dropped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageDropped {
    pub what: Arc<str>,
    pub bytes: u64,
    pub limit: u64,
}

/// A user answered "always": this rule applies from now on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleLearned<J = RawJson> {
    pub ask: u64,
    pub rule: J,
}

/// The agent did something without asking although a rule requires it to ask or denies it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnaskedCall<J = RawJson> {
    pub call: J,
}

/// The daemon itself handled a file or terminal request of the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestServed<J = RawJson> {
    pub call: J,
    /// What the policy decided, if a rule applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<J>,
    #[serde(flatten)]
    pub outcome: ServedOutcome,
}

/// A client changed a mode, a model or another setting, and the agent accepted it; or it changed the
/// name of the session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingChanged<J = RawJson> {
    pub frame: J,
    pub answer: J,
}

/// The agent process exited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentExited {
    pub status: Arc<str>,
    /// The last lines that it wrote to stderr.
    pub stderr: Arc<str>,
}

/// The agent sent nothing for longer than usual in this phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentQuiet {
    pub turn: u64,
    pub phase: Arc<str>,
    pub since: Time,
    /// What the agent waits for, in words.
    pub waits: Arc<str>,
}

/// The idle agent process was stopped; the next prompt starts another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentSuspended {
    pub why: Arc<str>,
}
