//! The fold of events into the summary of a session.

use super::{ForkOrigin, QueuedPrompt, SessionSummary, SummaryUpdate};
use crate::{
    AgentBound, AgentMessage, EventBody, RawJson, ReportedCost, RequestKey, RestoreStep, Seq,
    SessionCost, SessionEvent, SessionForked, SessionOpened, Time, TurnOutcome, TurnStarted,
    first_prompt_line,
    limits::{OPTION_BYTES_MAX, OPTIONS_MAX, TITLE_BYTES_MAX},
};
use jackfield_protocol::{Frame, acp::Method, is_planted};
use memchr::memmem;
use std::sync::LazyLock;

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

impl SessionSummary {
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
            | EventBody::Sandboxed(_)
            | EventBody::HostRefused(_)
            | EventBody::LeftOut(_)
            | EventBody::Served(_) => return SummaryUpdate::None,
        }
        SummaryUpdate::Immediate
    }

    fn fold_opened(&mut self, opened: &SessionOpened, at: Time) {
        self.variant.clone_from(&opened.variant);
        self.fallback.clone_from(&opened.fallback);
        self.sandbox.clone_from(&opened.sandbox);
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
        self.sandbox.clone_from(&bound.sandbox);
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
