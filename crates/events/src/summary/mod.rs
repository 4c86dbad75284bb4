//! The summary of a session: one fold over its events. Recovery, lists and the live hub use the same
//! fold, so they cannot disagree.

mod fold;

use crate::{
    AgentName, AgentSessionId, KeyedPrompts, PromptCapabilities, RawJson, RequestKey, Seq,
    SessionCost, SessionId, SettingEvents,
};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
};

/// The state of a session according to its log. Its JSON form is stored beside the stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionSummary {
    /// The last event folded in.
    pub seq: u64,
    pub agent: AgentName,
    pub argv: Vec<String>,
    pub cwd: String,
    pub params: RawJson,
    pub agent_session: AgentSessionId,
    pub setup: RawJson,
    /// The launch variant of the catalog that serves it; none for a command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<Arc<str>>,
    /// The agents and launch variants that were tried before and failed, each with the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback: Option<RawJson>,
    /// The sandbox profile of its last process; none if that ran without limits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<Arc<str>>,
    /// The name that a client gave the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub title: Option<String>,
    /// The first line of the first prompt, shown until the agent sends a title.
    pub hint: Option<String>,
    pub mode: Option<String>,
    /// The model that a client set with `session/set_model`.
    pub model: Option<String>,
    /// The config options that a client set: the params of the request, by option.
    pub config: BTreeMap<String, RawJson>,
    /// Where the log has the latest commands and config options.
    #[serde(skip_serializing_if = "SettingEvents::is_empty")]
    pub setting_events: SettingEvents,
    /// What the agent accepts in a prompt besides text.
    #[serde(skip_serializing_if = "PromptCapabilities::is_text_only")]
    pub prompt_capabilities: PromptCapabilities,
    pub turns: u64,
    pub open_turn: Option<u64>,
    pub asks: u64,
    pub open_asks: BTreeSet<u64>,
    /// The number of the last queued prompt, and the prompts that are still queued.
    pub prompts: u64,
    pub queue: BTreeMap<u64, QueuedPrompt>,
    /// The order of queued prompts since one was moved. The others follow by number.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub queue_order: Vec<u64>,
    /// The last prompts that carried a key.
    #[serde(skip_serializing_if = "KeyedPrompts::is_empty")]
    pub keys: KeyedPrompts,
    /// The key of the request that opened the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opening_key: Option<RequestKey>,
    /// Rules learned in this session, in the JSON form of the policy.
    pub rules: Vec<RawJson>,
    /// The last call that the agent made without asking although a rule requires it.
    pub unasked: Option<RawJson>,
    /// The agent has a new session in which no turn has ended, so it does not know the conversation.
    pub unseeded: bool,
    /// The session that this one branched off.
    pub forked: Option<ForkOrigin>,
    /// The cost that the agent has reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<SessionCost>,
    pub opened_at: u64,
    pub updated_at: u64,
    pub closed: bool,
    /// The import has not finished: the session is removed at the next start. Set by the importer and
    /// never by the fold, because the imported events may contain an earlier import.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub importing: bool,
}

/// When the stored summary has to be written again. An old one is never wrong: the events after it are
/// folded in when it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SummaryUpdate {
    /// Not for this event: it does not change the summary, or the end of its turn will.
    None,
    /// Later: a client waits for this event and nothing waits for the summary.
    Deferred,
    /// Together with the event.
    Immediate,
}

/// A prompt in the queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuedPrompt {
    /// The position and the time of its event.
    pub seq: u64,
    pub at: u64,
    pub by: Arc<str>,
    pub frame: RawJson,
}

/// The session that another one branched off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkOrigin {
    pub session: SessionId,
    pub seq: u64,
    /// No turn was running at that point.
    #[serde(default)]
    pub whole: bool,
    /// The agent's id of that session.
    pub agent_session: AgentSessionId,
}

impl Default for SessionSummary {
    fn default() -> SessionSummary {
        SessionSummary {
            seq: 0,
            agent: AgentName::default(),
            argv: Vec::new(),
            cwd: String::new(),
            params: RawJson::null(),
            agent_session: AgentSessionId::default(),
            setup: RawJson::null(),
            variant: None,
            fallback: None,
            sandbox: None,
            name: None,
            title: None,
            hint: None,
            mode: None,
            model: None,
            config: BTreeMap::new(),
            setting_events: SettingEvents::default(),
            prompt_capabilities: PromptCapabilities::default(),
            turns: 0,
            open_turn: None,
            asks: 0,
            open_asks: BTreeSet::new(),
            prompts: 0,
            queue: BTreeMap::new(),
            queue_order: Vec::new(),
            keys: KeyedPrompts::default(),
            opening_key: None,
            rules: Vec::new(),
            unasked: None,
            unseeded: false,
            forked: None,
            cost: None,
            opened_at: 0,
            updated_at: 0,
            closed: false,
            importing: false,
        }
    }
}

/// The modes in the result of `session/new`.
#[derive(Deserialize)]
struct SetupModes {
    modes: Option<CurrentMode>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CurrentMode {
    current_mode_id: Option<String>,
}

impl SessionSummary {
    pub fn from_summary(summary: &[u8]) -> Result<SessionSummary, serde_json::Error> {
        serde_json::from_slice(summary)
    }

    pub fn to_summary(&self) -> Bytes {
        // Allocated once: growing would take twice the memory while large prompts are queued.
        let waiting: usize = self.queue.values().map(|it| it.frame.bytes().len() + 256).sum();
        let opened = self.params.bytes().len() + self.setup.bytes().len();
        let mut summary = Vec::with_capacity(1024 + waiting + opened);
        serde_json::to_writer(&mut summary, self).expect("plain data serializes");
        summary.into()
    }

    pub fn upto(&self) -> Seq {
        Seq(self.seq)
    }

    /// The current mode: the last one set, else the one in the result of `session/new`.
    pub fn mode(&self) -> Option<String> {
        // Lists call this for every session, and a result can be long: the rest of it is skipped.
        let opened = || {
            let setup: SetupModes = serde_json::from_str(self.setup.as_str()).ok()?;
            setup.modes?.current_mode_id
        };
        self.mode.clone().or_else(opened)
    }

    /// The queued prompts in order, by number.
    pub fn queue_in_order(&self) -> impl Iterator<Item = (u64, &QueuedPrompt)> {
        let moved = self.queue_order.iter().filter_map(|it| Some((*it, self.queue.get(it)?)));
        let others = self.queue.iter().map(|(number, it)| (*number, it));
        moved.chain(others.filter(|(number, _)| !self.queue_order.contains(number)))
    }

    /// The directories of the session: its working directory, then the additional ones.
    pub fn dirs(&self) -> Vec<PathBuf> {
        let more = self.text_list("/additionalDirectories");
        std::iter::once(self.cwd.clone()).chain(more).map(PathBuf::from).collect()
    }

    /// The labels that its host must have, each as `key=value`.
    pub fn labels(&self) -> Vec<String> {
        self.text_list("/_meta/jackfield/labels")
    }

    /// A list of texts in the params that the session was opened with.
    fn text_list(&self, pointer: &str) -> Vec<String> {
        let params: serde_json::Value =
            serde_json::from_str(self.params.as_str()).unwrap_or_default();
        let texts = params.pointer(pointer).and_then(|it| it.as_array());
        texts.into_iter().flatten().filter_map(|it| it.as_str()).map(str::to_owned).collect()
    }
}
