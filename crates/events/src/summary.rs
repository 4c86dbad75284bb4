//! The summary of a session: one fold over its events. Recovery, lists and the live hub use the same
//! fold, so they cannot disagree.

use crate::{
    AgentBound, AgentMessage, AgentName, AgentSessionId, EventBody, KeyedPrompts,
    PromptCapabilities, RawJson, ReportedCost, RequestKey, RestoreStep, Seq, SessionCost,
    SessionEvent, SessionForked, SessionId, SessionOpened, SettingEvents, Time, TurnOutcome,
    TurnStarted, first_prompt_line,
    limits::{OPTION_BYTES_MAX, OPTIONS_MAX, TITLE_BYTES_MAX},
};
use bytes::Bytes;
use jackfield_protocol::{Frame, acp::Method, is_planted};
use memchr::memmem;
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::{Arc, LazyLock},
};

/// The updates that change the summary. Built once, because building a searcher takes longer than
/// searching a frame.
static SUMMARIZED_UPDATES: LazyLock<[memmem::Finder<'static>; 5]> = LazyLock::new(|| {
    let names = [
        "session_info_update",
        "current_mode_update",
        "available_commands_update",
        "config_option_update",
        "usage_update",
    ];
    names.map(memmem::Finder::new)
});

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
        let opened = || {
            let setup: serde_json::Value = serde_json::from_str(self.setup.as_str()).ok()?;
            Some(setup.pointer("/modes/currentModeId")?.as_str()?.to_owned())
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

    /// Folds the next event in. Returns whether the stored summary has to be written again.
    pub fn fold(&mut self, event: &SessionEvent) -> SummaryUpdate {
        assert_eq!(event.seq, self.upto().next(), "events are folded in order, each once");
        self.seq = event.seq.0;
        self.updated_at = event.at.0;
        match &event.body {
            EventBody::Opened(opened) => self.fold_opened(opened, event.at),
            EventBody::Forked(forked) => self.fold_forked(forked),
            EventBody::Imported(_) => self.fold_imported(),
            EventBody::Moved(_) | EventBody::Gone(_) | EventBody::Slept(_) => {}
            EventBody::Bound(bound) => self.fold_bound(bound),
            EventBody::Said(AgentMessage { frame, .. }) => {
                let changed = self.fold_update(event.seq, frame);
                return if changed { SummaryUpdate::Immediate } else { SummaryUpdate::None };
            }
            EventBody::Queued(queued) => {
                self.prompts = queued.prompt;
                self.keys.on_queued((event.seq, event.at), &queued.frame, queued.prompt);
                let (by, frame) = (queued.by.clone(), queued.frame.clone());
                let waiting = QueuedPrompt { seq: event.seq.0, at: event.at.0, by, frame };
                self.queue.insert(queued.prompt, waiting);
            }
            EventBody::Reordered(reordered) => self.fold_reordered(&reordered.order),
            EventBody::Withdrawn(withdrawn) => {
                self.keys.on_withdrawn(withdrawn.prompt, &withdrawn.why);
                self.remove_queued(withdrawn.prompt);
            }
            EventBody::Prompted(started) => {
                self.fold_turn_started((event.seq, event.at), started);
                let was_queued = started.prompt.is_some();
                return if was_queued { SummaryUpdate::Immediate } else { SummaryUpdate::None };
            }
            EventBody::Ended(ended) => {
                if !is_planted("forget-end-of-keyed-turn") {
                    self.keys.on_ended(ended.turn, &ended.outcome);
                }
                let answer = ended.outcome.json().parse::<serde_json::Value>();
                if let Some(cost) = answer.as_ref().and_then(ReportedCost::of_turn) {
                    SessionCost::add_turn(&mut self.cost, &cost);
                }
                self.open_turn = None;
                self.unseeded &= !was_prompt_accepted(&ended.outcome);
                return SummaryUpdate::Deferred;
            }
            EventBody::Asked(asked) => {
                self.asks = asked.ask;
                self.open_asks.insert(asked.ask);
                return SummaryUpdate::None;
            }
            EventBody::Answered(answered) => {
                self.open_asks.remove(&answered.ask);
                return SummaryUpdate::None;
            }
            EventBody::Learned(learned) => self.rules.push(learned.rule.clone()),
            EventBody::Unasked(unasked) => self.unasked = Some(unasked.call.clone()),
            EventBody::Configured(changed) => {
                self.fold_setting(&changed.frame);
                self.setting_events.on_setting(event.seq, &changed.answer);
            }
            EventBody::Closed => self.closed = true,
            EventBody::Cancelled(_)
            | EventBody::Quiet(_)
            | EventBody::Refused(_)
            | EventBody::LeftOut(_)
            | EventBody::Served(_) => return SummaryUpdate::None,
        }
        SummaryUpdate::Immediate
    }

    fn fold_opened(&mut self, opened: &SessionOpened, at: Time) {
        self.variant.clone_from(&opened.variant);
        self.fallback.clone_from(&opened.fallback);
        self.agent = opened.agent.clone();
        self.argv.clone_from(&opened.argv);
        self.cwd.clone_from(&opened.cwd);
        self.opening_key = RequestKey::from_params(opened.params.as_str());
        self.params = opened.params.clone();
        self.agent_session = opened.agent_session.clone();
        self.setup = opened.setup.clone();
        self.prompt_capabilities = opened.prompt_capabilities;
        self.opened_at = at.0;
    }

    fn fold_turn_started(&mut self, when: (Seq, Time), started: &TurnStarted) {
        let TurnStarted { turn, prompt, frame, .. } = started;
        if let Some(prompt) = prompt {
            self.remove_queued(*prompt);
        }
        self.keys.on_turn_started(when, frame, *prompt, *turn);
        if self.hint.is_none() {
            self.hint = first_prompt_line(frame);
        }
        self.turns = *turn;
        self.open_turn = Some(*turn);
        self.closed = false;
    }

    /// An imported log may name any numbers.
    fn fold_reordered(&mut self, order: &[u64]) {
        self.queue_order.clear();
        for number in order {
            if self.queue.contains_key(number) && !self.queue_order.contains(number) {
                self.queue_order.push(*number);
            }
        }
    }

    fn remove_queued(&mut self, number: u64) {
        self.queue.remove(&number);
        self.queue_order.retain(|it| *it != number);
    }

    fn clear_queue(&mut self) {
        self.queue.clear();
        self.queue_order.clear();
    }

    /// The keys belong to requests for the original session, not to a copy.
    fn forget_keys(&mut self) {
        self.keys.clear();
        self.opening_key = None;
    }

    fn fold_imported(&mut self) {
        self.clear_queue();
        self.forget_keys();
        self.closed = false;
    }

    /// The session is another one from here on: it has no agent yet and an empty queue.
    fn fold_forked(&mut self, forked: &SessionForked) {
        let mut agent_session = std::mem::take(&mut self.agent_session);
        if let (true, Some(origin)) = (agent_session.is_empty(), &self.forked) {
            // A copy of a copy that never had an agent.
            agent_session = origin.agent_session.clone();
        }
        let whole = self.open_turn.is_none();
        let (session, seq) = (forked.from.clone(), forked.seq_there.0);
        self.forked = Some(ForkOrigin { session, seq, whole, agent_session });
        self.cwd.clone_from(&forked.cwd);
        self.params = forked.params.clone();
        if !is_planted("fork-with-queued-prompts") {
            self.clear_queue();
        }
        self.forget_keys();
        // A name identifies one session.
        self.name = None;
        self.closed = false;
    }

    fn fold_bound(&mut self, bound: &AgentBound) {
        match bound.restore {
            RestoreStep::Failed => return,
            RestoreStep::Reseeded => self.unseeded = true,
            RestoreStep::Forked => self.unseeded = false,
            RestoreStep::Resumed | RestoreStep::Reloaded => {}
        }
        if let Some(agent_session) = &bound.agent_session {
            self.agent_session = agent_session.clone();
        }
        if bound.setup != RawJson::null() {
            self.setup = bound.setup.clone();
            self.setting_events.on_setup(&bound.setup);
        }
        self.closed = false;
    }

    /// Returns whether the update changes the summary. Most are text and are skipped without parsing.
    fn fold_update(&mut self, seq: Seq, frame: &RawJson) -> bool {
        if SUMMARIZED_UPDATES.iter().all(|it| it.find(frame.bytes()).is_none()) {
            return false;
        }
        let Ok(frame) = Frame::parse(frame.bytes().clone()) else { return false };
        let member = |name: &str| {
            let params: serde_json::Value = serde_json::from_str(frame.params()?).ok()?;
            params.get("update")?.get(name).cloned()
        };
        match frame.update().as_deref() {
            Some("session_info_update") => match member("title") {
                Some(serde_json::Value::String(title)) if is_short(&title) => {
                    self.title = Some(title);
                }
                Some(serde_json::Value::Null) => self.title = None,
                _ => return false,
            },
            Some("current_mode_update") => match member("currentModeId") {
                Some(serde_json::Value::String(mode)) if is_short(&mode) => self.mode = Some(mode),
                _ => return false,
            },
            Some("usage_update") => {
                if let Some(cost) = member("cost").as_ref().and_then(ReportedCost::parse) {
                    SessionCost::set_total(&mut self.cost, &cost);
                }
                // The summary is written again at the end of the turn.
                return false;
            }
            _ => return self.setting_events.on_update(seq, &frame),
        }
        true
    }

    fn fold_setting(&mut self, frame: &RawJson) {
        let Ok(frame) = Frame::parse(frame.bytes().clone()) else { return };
        let Some(params) = frame.params().and_then(|it| serde_json::from_str(it).ok()) else {
            return;
        };
        let params: serde_json::Value = params;
        if frame.is_method(Method::ControlRename) {
            let name = params.get("name").and_then(|it| it.as_str());
            self.name = name.filter(|it| !it.is_empty() && is_short(it)).map(str::to_owned);
        }
        if let Some(mode) =
            params.get("modeId").and_then(|it| it.as_str()).filter(|it| is_short(it))
        {
            self.mode = Some(mode.to_owned());
        }
        if let Some(model) =
            params.get("modelId").and_then(|it| it.as_str()).filter(|it| is_short(it))
        {
            self.model = Some(model.to_owned());
        }
        if let Some(option) = params.get("configId").and_then(|it| it.as_str()) {
            let setting = params.to_string();
            let is_room = self.config.contains_key(option) || self.config.len() < OPTIONS_MAX;
            if is_room && setting.len() <= OPTION_BYTES_MAX {
                self.config.insert(option.to_owned(), RawJson::trusted(setting));
            }
        }
    }
}

/// Whether a title or a mode is short enough to be kept.
fn is_short(name: &str) -> bool {
    name.len() <= TITLE_BYTES_MAX
}

/// Whether the agent has certainly read the prompt.
fn was_prompt_accepted(outcome: &TurnOutcome) -> bool {
    let cancelled = |it: &RawJson| memmem::find(it.bytes(), br#""cancelled""#).is_some();
    matches!(outcome, TurnOutcome::Stopped(result) if !cancelled(result))
}
