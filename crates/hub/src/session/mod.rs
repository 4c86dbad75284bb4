//! A session: its log, its subscribers, its agent if it has one, its turn if one runs.

mod adopt;
mod answer;
mod approval;
mod ask;
mod attach;
mod calls;
mod delivery;
mod digest;
mod fallback;
mod fork;
mod import;
mod journal;
mod keyed;
mod list;
mod liveness;
mod open;
mod passing;
mod queue;
mod refusal;
mod release;
mod reseed;
mod restore;
mod restore_method;
mod restore_trial;
mod rules;
mod sentence;
mod served;
mod settings;
mod sleep;
mod turn;
mod wake;

pub(crate) use attach::AttachMode;
pub(crate) use fallback::{FailedAgent, tell as tell_fallen};
pub(crate) use fork::SessionFork;
pub use list::rfc3339;
pub(crate) use open::SessionOpening;
pub(crate) use release::SessionRelease;
pub(crate) use restore::SessionRestore;
pub(crate) use restore_method::RestoreMethod;
pub(crate) use restore_trial::RestoreHistory;
pub use served::SHELL;

use crate::{
    AgentId, ConnId, SessionId,
    agent::SessionActivity,
    budget::{ByteBudget, ByteCharge, ByteOwner, update_charge},
    fanout::EventSubscriber,
    log::SessionLog,
    restart::RestartCounter,
};
use ask::UserRequest;
use calls::ToolCalls;
use import::SessionImport;
use jackfield_events::AgentSessionId;
use jackfield_events::SessionSummary;
use jackfield_protocol::{Frame, redact};
use queue::Prompt;
use served::ServedRequest;
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};
use turn::Turn;

/// All sessions.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    pub(crate) by_id: BTreeMap<SessionId, Session>,
    /// Sessions that are being copied, by the id of the copy.
    pub(crate) forks: BTreeMap<SessionId, SessionFork>,
}

#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: SessionId,
    pub(crate) log: SessionLog,
    pub(crate) subscribers: BTreeMap<ConnId, EventSubscriber>,
    pub(crate) stage: SessionStage,
    pub(crate) agent: Option<AgentId>,
    /// A process that it left and that serves others since.
    pub(crate) last: Option<AgentId>,
    pub(crate) activity: SessionActivity,
    pub(crate) turn: Option<Turn>,
    /// Prompts that run as soon as they can. What waits only in the log is held.
    pub(crate) queue: VecDeque<Prompt>,
    /// Requests of clients that wait for the agent to wake.
    pub(crate) parked: VecDeque<(ConnId, Frame, ByteCharge)>,
    /// Bytes of messages that it keeps.
    pub(crate) kept: ByteOwner,
    /// Of these, the prompts that wait.
    queued_bytes: Option<ByteCharge>,
    /// Asks that wait for an answer.
    pub(crate) asks: BTreeMap<u64, UserRequest>,
    /// Requests for files and terminals that are being carried out.
    pub(crate) served: Vec<ServedRequest>,
    /// How the latest others ended, for whoever answers too late.
    pub(crate) settled: BTreeMap<u64, Arc<str>>,
    pub(crate) restarts: RestartCounter,
    /// What its agent does, as far as it tells.
    pub(crate) calls: ToolCalls,
    pub(crate) restore_history: RestoreHistory,
    /// Who made it, and with which request: that is answered with its name.
    pub(crate) opener: Option<(ConnId, Box<str>)>,
    /// It is being let go, or was taken away.
    pub(crate) release: Option<SessionRelease>,
}

/// Where a session stands with its agent.
#[derive(Debug)]
pub(crate) enum SessionStage {
    /// `session/new` is under way; nobody knows the session yet.
    Opening(SessionOpening),
    /// Its events are being brought from elsewhere; nobody knows the session yet.
    Importing(SessionImport),
    /// No agent.
    Asleep,
    /// An agent is being started for it, and asked to take it up again.
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

    /// The agent's name for it.
    pub(crate) fn theirs(&self) -> &AgentSessionId {
        let new = match &self.stage {
            SessionStage::Restoring(restoring) => restoring.theirs(),
            _ => None,
        };
        new.unwrap_or(&self.summary().agent_session)
    }

    /// The name by which its present process has heard of it; empty if it has not.
    pub(crate) fn told_as(&self) -> AgentSessionId {
        match &self.stage {
            SessionStage::Restoring(restoring) if !restoring.has_named() => "".into(),
            _ => self.theirs().clone(),
        }
    }

    /// Whether its agent means it by this name: the one it has, had, or is about to have.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        let names = [self.theirs(), &self.summary().agent_session];
        names.into_iter().chain(&self.restore_history.former).any(|it| &**it == name)
    }

    /// One word for people, and whether it needs one.
    pub(crate) fn shown(&self) -> &'static str {
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

    /// A name for lists: the agent's, or the first line of the first prompt. Without secrets.
    pub(crate) fn title(&self) -> Option<String> {
        let title = self.summary().title.as_ref().or(self.summary().hint.as_ref())?;
        Some(redact::text(title).into_owned())
    }

    /// Whether this client has heard every answer it waits for here.
    pub(crate) fn owes_nothing(&self, conn: ConnId) -> bool {
        let settled = |it: &EventSubscriber| it.owed.is_empty() && !it.has_deferred();
        self.log.is_all_durable() && self.subscribers.get(&conn).is_none_or(settled)
    }

    /// Whose request it would be woken for.
    pub(crate) fn asker(&self) -> Option<ConnId> {
        let prompt = self.queue.front().map(|it| it.conn);
        prompt.or_else(|| self.parked.front().map(|it| it.0))
    }

    /// Who drives: the client whose prompt runs.
    pub(crate) fn driver(&self) -> Option<ConnId> {
        self.turn.as_ref().map(|it| it.driver)
    }
}
