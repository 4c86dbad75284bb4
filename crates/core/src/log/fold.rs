//! One fold from events to what is known of a session. Recovery, listing and the live hub use it
//! alike, so they cannot disagree.

use super::{Body, Event, Json, Keys, Outcome, RequestKey, Rung, first_line};
use crate::{Seq, Time, limits};
use bytes::Bytes;
use jackfield_wire::Frame;
use memchr::memmem;
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::{Arc, LazyLock},
};

/// Updates that change what is known of a session. Made once: to make a searcher takes longer than to
/// look through a frame with it.
static TELLING: LazyLock<[memmem::Finder<'static>; 2]> =
    LazyLock::new(|| ["session_info_update", "current_mode_update"].map(memmem::Finder::new));

/// What the log says about a session. Its JSON form is the summary kept beside the stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct State {
    /// The last event folded in.
    pub seq: u64,
    pub agent: Arc<str>,
    pub argv: Vec<String>,
    pub cwd: String,
    pub params: Json,
    pub agent_session: Arc<str>,
    pub setup: Json,
    /// The agents that were to have it and could not be had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback: Option<Json>,
    pub title: Option<String>,
    /// The first line of the first prompt: a name until the agent gives one.
    pub hint: Option<String>,
    pub mode: Option<String>,
    /// The model, where a client chose it in the old way.
    pub model: Option<String>,
    /// Config options changed by a client: the request's params, by option.
    pub config: BTreeMap<String, Json>,
    pub turns: u64,
    pub open_turn: Option<u64>,
    pub asks: u64,
    pub open_asks: BTreeSet<u64>,
    /// The last number given to a prompt that had to wait, and those that still do.
    pub prompts: u64,
    pub queue: BTreeMap<u64, Queued>,
    /// The last prompts that had a key.
    #[serde(skip_serializing_if = "Keys::is_empty")]
    pub keys: Keys,
    /// The key of the request that opened it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opening_key: Option<RequestKey>,
    /// Rules learned in this session, as the policy writes them.
    pub rules: Vec<Json>,
    /// What the agent last did without asking although a rule wants it asked.
    pub unasked: Option<Json>,
    /// The agent has been given a new session, and no turn has ended in it: it knows nothing yet.
    pub unseeded: bool,
    /// The session this one branched off, and the agent's name for that one.
    pub forked: Option<Origin>,
    pub opened_at: u64,
    pub updated_at: u64,
    pub closed: bool,
    /// Its events are still being brought in: after a restart it is not there. Kept in the summary
    /// and never folded, for what is brought in may have been imported before and say so.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub importing: bool,
}

/// Whether the summary is to be written again. An old one is never wrong: what came after it is folded
/// in when it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Worth {
    /// Not for what streams by, nor for what a turn leaves behind anyway when it ends.
    Nothing,
    /// Somebody waits for this event, and nobody for the summary.
    ALittleLater,
    /// With the event.
    Now,
}

/// A prompt that waits, as the log has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queued {
    /// The event that says so, and when that was.
    pub seq: u64,
    pub at: u64,
    pub by: Arc<str>,
    pub frame: Json,
}

/// Where a session came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    pub session: Arc<str>,
    pub seq: u64,
    /// No turn ran there.
    #[serde(default)]
    pub whole: bool,
    /// The agent's own name for the session it came from.
    pub agent_session: Arc<str>,
}

impl Default for State {
    fn default() -> State {
        State {
            seq: 0,
            agent: "".into(),
            argv: Vec::new(),
            cwd: String::new(),
            params: Json::null(),
            agent_session: "".into(),
            setup: Json::null(),
            fallback: None,
            title: None,
            hint: None,
            mode: None,
            model: None,
            config: BTreeMap::new(),
            turns: 0,
            open_turn: None,
            asks: 0,
            open_asks: BTreeSet::new(),
            prompts: 0,
            queue: BTreeMap::new(),
            keys: Keys::default(),
            opening_key: None,
            rules: Vec::new(),
            unasked: None,
            unseeded: false,
            forked: None,
            opened_at: 0,
            updated_at: 0,
            closed: false,
            importing: false,
        }
    }
}

impl State {
    pub fn from_summary(summary: &[u8]) -> Result<State, serde_json::Error> {
        serde_json::from_slice(summary)
    }

    pub fn to_summary(&self) -> Bytes {
        // Made in one piece: to grow would take twice the memory while prompts of megabytes wait.
        let waiting: usize = self.queue.values().map(|it| it.frame.bytes().len() + 256).sum();
        let opened = self.params.bytes().len() + self.setup.bytes().len();
        let mut summary = Vec::with_capacity(1024 + waiting + opened);
        serde_json::to_writer(&mut summary, self).expect("plain data serializes");
        summary.into()
    }

    pub fn upto(&self) -> Seq {
        Seq(self.seq)
    }

    /// The mode the agent is in: what it said last, else what it opened with.
    pub fn mode(&self) -> Option<String> {
        let opened = || {
            let setup: serde_json::Value = serde_json::from_str(self.setup.as_str()).ok()?;
            Some(setup.pointer("/modes/currentModeId")?.as_str()?.to_owned())
        };
        self.mode.clone().or_else(opened)
    }

    /// Where the session may look for files: its own directory, then the ones it was given besides.
    pub fn dirs(&self) -> Vec<PathBuf> {
        let more = self.words("/additionalDirectories");
        std::iter::once(self.cwd.clone()).chain(more).map(PathBuf::from).collect()
    }

    /// What its host must be, each as `key=value`.
    pub fn labels(&self) -> Vec<String> {
        self.words("/_meta/jackfield/labels")
    }

    /// A list in what it was opened with.
    fn words(&self, place: &str) -> Vec<String> {
        let params: serde_json::Value =
            serde_json::from_str(self.params.as_str()).unwrap_or_default();
        let words = params.pointer(place).and_then(|it| it.as_array());
        words.into_iter().flatten().filter_map(|it| it.as_str()).map(str::to_owned).collect()
    }

    /// Takes the next event in.
    pub fn fold(&mut self, event: &Event) -> Worth {
        assert_eq!(event.seq, self.upto().next(), "events are folded in order, each once");
        self.seq = event.seq.0;
        let Time(at) = event.at;
        self.updated_at = at;
        match &event.body {
            Body::Opened { agent, argv, cwd, params, agent_session, setup, fallback } => {
                self.fallback = (*fallback != Json::null()).then(|| fallback.clone());
                self.agent = agent.clone();
                self.argv.clone_from(argv);
                self.cwd.clone_from(cwd);
                self.opening_key = RequestKey::of_params(params.as_str());
                self.params = params.clone();
                self.agent_session = agent_session.clone();
                self.setup = setup.clone();
                self.opened_at = at;
            }
            Body::Forked { from, seq, cwd, params } => {
                self.fold_fork(from, *seq);
                self.cwd.clone_from(cwd);
                self.params = params.clone();
            }
            Body::Imported { .. } => self.fold_import(),
            Body::Bound { rung: Rung::Failed, .. }
            | Body::Moved { .. }
            | Body::Gone { .. }
            | Body::Slept { .. } => {}
            Body::Bound { rung, setup, agent_session, .. } => {
                self.fold_bound(*rung, setup, agent_session.as_ref());
            }
            Body::Said { frame, .. } => {
                return if self.fold_update(frame) { Worth::Now } else { Worth::Nothing };
            }
            Body::Queued { prompt, by, frame } => {
                self.prompts = *prompt;
                self.keys.queued((event.seq, event.at), frame, *prompt);
                let (seq, by, frame) = (event.seq.0, by.clone(), frame.clone());
                self.queue.insert(*prompt, Queued { seq, at, by, frame });
            }
            Body::Withdrawn { prompt, why } => {
                self.keys.withdrawn(*prompt, why);
                self.queue.remove(prompt);
            }
            Body::Prompted { turn, frame, prompt, .. } => {
                self.fold_prompt((event.seq, event.at), *turn, frame, *prompt);
                return if prompt.is_some() { Worth::Now } else { Worth::Nothing };
            }
            Body::Ended { turn, outcome } => {
                self.keys.ended(*turn, outcome);
                self.open_turn = None;
                self.unseeded &= !went_well(outcome);
                return Worth::ALittleLater;
            }
            Body::Asked { ask, .. } => return self.fold_ask(*ask),
            Body::Answered { ask, .. } => {
                self.open_asks.remove(ask);
                return Worth::Nothing;
            }
            Body::Learned { rule, .. } => self.rules.push(rule.clone()),
            Body::Unasked { call } => self.unasked = Some(call.clone()),
            Body::Configured { frame, .. } => self.fold_setting(frame),
            Body::Closed => self.closed = true,
            Body::Cancelled { .. }
            | Body::Quiet { .. }
            | Body::Refused { .. }
            | Body::LeftOut { .. }
            | Body::Served { .. } => return Worth::Nothing,
        }
        Worth::Now
    }

    fn fold_ask(&mut self, ask: u64) -> Worth {
        self.asks = ask;
        self.open_asks.insert(ask);
        Worth::Nothing
    }

    fn fold_prompt(&mut self, when: (Seq, Time), turn: u64, frame: &Json, prompt: Option<u64>) {
        if let Some(prompt) = prompt {
            self.queue.remove(&prompt);
        }
        self.keys.began(when, frame, prompt, turn);
        if self.hint.is_none() {
            self.hint = first_line(frame);
        }
        self.turns = turn;
        self.open_turn = Some(turn);
        self.closed = false;
    }

    /// A copy of a session is not what its requests asked for.
    fn forget_keys(&mut self) {
        self.keys.clear();
        self.opening_key = None;
    }

    fn fold_import(&mut self) {
        self.queue.clear();
        self.forget_keys();
        self.closed = false;
    }

    /// From here on it is another session: with no agent, nothing waiting, and a past.
    fn fold_fork(&mut self, from: &Arc<str>, seq: Seq) {
        let mut agent_session = std::mem::replace(&mut self.agent_session, "".into());
        if let (true, Some(origin)) = (agent_session.is_empty(), &self.forked) {
            // A copy of a copy that never had an agent.
            agent_session = origin.agent_session.clone();
        }
        let whole = self.open_turn.is_none();
        self.forked = Some(Origin { session: from.clone(), seq: seq.0, whole, agent_session });
        self.queue.clear();
        self.forget_keys();
        self.closed = false;
    }

    fn fold_bound(&mut self, rung: Rung, setup: &Json, agent_session: Option<&Arc<str>>) {
        match rung {
            Rung::Reseeded => self.unseeded = true,
            Rung::Forked => self.unseeded = false,
            Rung::Resumed | Rung::Reloaded | Rung::Failed => {}
        }
        if let Some(agent_session) = agent_session {
            self.agent_session = agent_session.clone();
        }
        if setup != &Json::null() {
            self.setup = setup.clone();
        }
        self.closed = false;
    }

    /// A few updates change what is known of the session; most are text, told apart without parsing.
    /// True if this one does.
    fn fold_update(&mut self, frame: &Json) -> bool {
        if TELLING.iter().all(|it| it.find(frame.bytes()).is_none()) {
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
            _ => return false,
        }
        true
    }

    fn fold_setting(&mut self, frame: &Json) {
        let Ok(frame) = Frame::parse(frame.bytes().clone()) else { return };
        let Some(params) = frame.params().and_then(|it| serde_json::from_str(it).ok()) else {
            return;
        };
        let params: serde_json::Value = params;
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
            let is_room =
                self.config.contains_key(option) || self.config.len() < limits::OPTIONS_MAX;
            if is_room && setting.len() <= limits::OPTION_BYTES_MAX {
                self.config.insert(option.to_owned(), Json::trusted(setting));
            }
        }
    }
}

/// Whether a title or a name can be kept with the session.
fn is_short(name: &str) -> bool {
    name.len() <= limits::TITLE_BYTES_MAX
}

/// Whether the agent took the prompt in for certain.
fn went_well(outcome: &Outcome) -> bool {
    let cancelled = |it: &Json| memmem::find(it.bytes(), br#""cancelled""#).is_some();
    matches!(outcome, Outcome::Stopped(result) if !cancelled(result))
}
