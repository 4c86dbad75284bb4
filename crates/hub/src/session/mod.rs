//! A session: its log, its subscribers, its agent, its turn, its queued prompts and its open requests to the user.

mod activity;
mod agent_exit;
mod agent_params;
mod agent_slot;
mod agent_updates;
mod answer;
mod approval;
mod ask;
mod attach;
mod calls;
mod delivery;
mod digest;
mod fork;
mod import;
mod issued_requests;
mod journal;
mod keyed;
mod liveness;
mod open;
mod queue;
mod queue_order;
mod refusal;
mod release;
mod reseed;
mod restore;
mod restore_method;
mod restore_state;
mod restore_trial;
mod rules;
mod sandbox;
#[cfg(test)]
mod sandbox_tests;
mod sentence;
mod served;
mod settings;
mod sleep;
mod subscription_end;
mod turn;
mod wake;

pub(crate) use agent_exit::{AgentEnd, AgentEndCause};
pub(crate) use attach::AttachMode;
pub(crate) use keyed::KnownKey;
pub(crate) use open::SessionOpening;
pub use served::SHELL;
pub(crate) use subscription_end::SubscriptionEnd;

use crate::{
    AgentId, ConnId, SessionId,
    budget::{ByteBudget, ByteCharge, ByteOwner, update_charge},
    fanout::EventSubscriber,
    log::SessionLog,
    restart::RestartCounter,
};
use activity::SessionActivity;
use ask::UserRequest;
use calls::ToolCalls;
use import::SessionImport;
use jackfield_events::{AgentSessionId, SessionSummary};
use jackfield_protocol::{Frame, redact};
use queue::Prompt;
use release::SessionRelease;
use restore_state::SessionRestore;
use restore_trial::RestoreHistory;
use served::ServedRequest;
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};
use turn::Turn;

#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: SessionId,
    pub(crate) log: SessionLog,
    pub(crate) subscribers: BTreeMap<ConnId, EventSubscriber>,
    pub(crate) stage: SessionStage,
    pub(crate) agent: Option<AgentId>,
    /// A process that served it before and serves other sessions now.
    pub(crate) last: Option<AgentId>,
    pub(crate) activity: SessionActivity,
    pub(crate) turn: Option<Turn>,
    /// Prompts that run in this order. Prompts that are only in the log are held until a client runs them.
    pub(crate) queue: VecDeque<Prompt>,
    /// Requests of clients that wait until the session is restored.
    pub(crate) parked: VecDeque<(ConnId, Frame, ByteCharge)>,
    /// Bytes of messages that it retains.
    pub(crate) kept: ByteOwner,
    /// Of these, the bytes of queued prompts.
    queued_bytes: Option<ByteCharge>,
    /// Open requests to the user, by number.
    pub(crate) asks: BTreeMap<u64, UserRequest>,
    /// Requests for files and terminals that the daemon is serving.
    pub(crate) served: Vec<ServedRequest>,
    /// How the latest closed requests ended, for clients that answer too late.
    pub(crate) settled: BTreeMap<u64, Arc<str>>,
    pub(crate) restarts: RestartCounter,
    /// The tool calls that the agent has reported.
    pub(crate) calls: ToolCalls,
    pub(crate) restore_history: RestoreHistory,
    /// The client that opened it, and the request that is answered with its id.
    pub(crate) opener: Option<(ConnId, Box<str>)>,
    /// It is being released, or another host has taken it over.
    pub(crate) release: Option<SessionRelease>,
}

/// The relation of a session to an agent process.
#[derive(Debug)]
pub(crate) enum SessionStage {
    /// `session/new` is pending; no client knows the session yet.
    Opening(SessionOpening),
    /// Its events are being imported; no client knows the session yet.
    Importing(SessionImport),
    /// It has no agent.
    Asleep,
    /// An agent is being started for it, or restores it.
    Restoring(SessionRestore),
    /// The agent serves it.
    Bound,
}

impl Session {
    fn new(id: SessionId, summary: SessionSummary, stage: SessionStage) -> Session {
        Session {
            id,
            log: SessionLog::recovered(summary),
            subscribers: BTreeMap::new(),
            stage,
            agent: None,
            last: None,
            activity: SessionActivity::default(),
            turn: None,
            queue: VecDeque::new(),
            parked: VecDeque::new(),
            kept: ByteOwner::default(),
            queued_bytes: None,
            asks: BTreeMap::new(),
            served: Vec::new(),
            settled: BTreeMap::new(),
            restarts: RestartCounter::default(),
            calls: ToolCalls::default(),
            restore_history: RestoreHistory::default(),
            opener: None,
            release: None,
        }
    }

    pub(crate) fn recovered(id: SessionId, summary: SessionSummary) -> Session {
        Session::new(id, summary, SessionStage::Asleep)
    }

    /// The summary of all events.
    pub(crate) fn summary(&self) -> &SessionSummary {
        self.log.summary()
    }

    /// Charges the bytes of queued prompts, including those that an earlier daemon left.
    pub(crate) fn count_queue(&mut self, budget: &ByteBudget) {
        let queue = &self.log.summary().queue;
        let bytes: usize = queue.values().map(|it| it.frame.bytes().len()).sum();
        update_charge(&mut self.queued_bytes, budget, &self.kept, bytes);
    }

    pub(crate) fn is_opening(&self) -> bool {
        matches!(self.stage, SessionStage::Opening(_) | SessionStage::Importing(_))
    }

    pub(crate) fn is_bound(&self) -> bool {
        matches!(self.stage, SessionStage::Bound)
    }

    /// The session id of the agent.
    pub(crate) fn agent_session_id(&self) -> &AgentSessionId {
        let new = match &self.stage {
            SessionStage::Restoring(restoring) => restoring.agent_session_id(),
            _ => None,
        };
        new.unwrap_or(&self.summary().agent_session)
    }

    /// The session id that the current process knows; empty if it knows none.
    pub(crate) fn known_agent_session_id(&self) -> AgentSessionId {
        match &self.stage {
            SessionStage::Restoring(restoring) if !restoring.has_named() => "".into(),
            _ => self.agent_session_id().clone(),
        }
    }

    /// Whether this is the current, a former or the next session id of the agent.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        let names = [self.agent_session_id(), &self.summary().agent_session];
        names.into_iter().chain(&self.restore_history.former).any(|it| &**it == name)
    }

    /// The state that lists show.
    fn stage_name(&self) -> &'static str {
        match &self.stage {
            SessionStage::Opening(_) | SessionStage::Importing(_) => "opening",
            SessionStage::Restoring(_) => "starting",
            SessionStage::Asleep if self.summary().closed => "closed",
            SessionStage::Asleep => "asleep",
            SessionStage::Bound if !self.asks.is_empty() => "asks",
            SessionStage::Bound if self.turn.is_some() => "working",
            SessionStage::Bound => "idle",
        }
    }

    /// The title for lists: that of the agent, or the first line of the first prompt. Secrets are redacted.
    pub(crate) fn title(&self) -> Option<String> {
        let title = self.summary().title.as_ref().or(self.summary().hint.as_ref())?;
        Some(redact::text(title).into_owned())
    }

    /// Whether this client has received all answers that it waits for in this session.
    pub(crate) fn owes_nothing(&self, conn: ConnId) -> bool {
        let settled = |it: &EventSubscriber| it.owed.is_empty() && !it.has_deferred();
        self.log.is_all_durable() && self.subscribers.get(&conn).is_none_or(settled)
    }

    /// The client whose request the session is restored for.
    pub(crate) fn asker(&self) -> Option<ConnId> {
        let prompt = self.queue.front().map(|it| it.conn);
        prompt.or_else(|| self.parked.front().map(|it| it.0))
    }

    /// The client whose prompt runs.
    pub(crate) fn driver(&self) -> Option<ConnId> {
        self.turn.as_ref().map(|it| it.driver)
    }
}
