//! A session: its log, its subscribers, its agent if it has one, its turn if one runs.

mod adopt;
mod answer;
mod approval;
mod ask;
mod attach;
mod calls;
mod digest;
mod fallback;
mod fork;
mod import;
mod journal;
mod key_index;
mod keyed;
mod ladder;
mod leaving;
mod list;
mod liveness;
mod open;
mod passing;
mod queue;
mod refusal;
mod reseed;
mod rules;
mod sentence;
mod served;
mod settings;
mod sleep;
mod trial;
mod turn;
mod wake;
mod way;

pub(crate) use attach::Attach;
pub(crate) use fallback::{Fallen, tell as tell_fallen};
pub(crate) use fork::Fork;
pub(crate) use key_index::KeyIndex;
pub(crate) use ladder::Waking;
pub(crate) use leaving::Leaving;
pub use list::rfc3339;
pub use liveness::Liveness;
pub(crate) use open::Opening;
pub use rules::{AskRule, Unanswered};
pub use served::SHELL;
pub use sleep::Sleep;
pub(crate) use trial::Standing;
pub(crate) use way::Way;

use crate::{
    AgentId, ConnId,
    agent::Pulse,
    budget::{ByteBudget, ByteCharge, ByteOwner},
    fanout::Subscriber,
    log::Gate,
    restart::Restarts,
};
use ask::Ask;
use calls::Calls;
use import::Importing;
use jackfield_events::AgentSessionId;
use jackfield_events::SessionSummary;
use jackfield_wire::{Frame, redact};
use queue::Prompt;
use served::ServedRequest;
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};
use turn::Turn;

#[derive(Debug)]
pub(crate) struct Session {
    /// What the log says, up to the last event appended.
    pub(crate) state: SessionSummary,
    pub(crate) gate: Gate,
    /// Appends that failed in a row.
    pub(crate) append_failures: u32,
    /// The last append failed and its retry has not begun: events are held, all are sent then.
    pub(crate) stalled: bool,
    /// The summary that is written is older than it should be for long.
    pub(crate) summary_is_due: bool,
    pub(crate) subscribers: BTreeMap<ConnId, Subscriber>,
    pub(crate) stage: Stage,
    pub(crate) agent: Option<AgentId>,
    /// A process that it left and that serves others since.
    pub(crate) last: Option<AgentId>,
    pub(crate) pulse: Pulse,
    pub(crate) turn: Option<Turn>,
    /// Prompts that run as soon as they can. What waits only in the log is held.
    pub(crate) queue: VecDeque<Prompt>,
    /// Requests of clients that wait for the agent to wake.
    pub(crate) parked: VecDeque<(ConnId, Frame, ByteCharge)>,
    /// Bytes of messages that it keeps.
    pub(crate) kept: ByteOwner,
    /// Of these, the prompts that wait.
    queued_bytes: Option<ByteCharge>,
    /// Bytes that its log holds until they are durable.
    held_bytes: Option<ByteCharge>,
    /// Asks that wait for an answer.
    pub(crate) asks: BTreeMap<u64, Ask>,
    /// Requests for files and terminals that are being carried out.
    pub(crate) served: Vec<ServedRequest>,
    /// How the latest others ended, for whoever answers too late.
    pub(crate) settled: BTreeMap<u64, Arc<str>>,
    pub(crate) restarts: Restarts,
    /// What its agent does, as far as it tells.
    pub(crate) calls: Calls,
    pub(crate) standing: Standing,
    /// Who made it, and with which request: that is answered with its name.
    pub(crate) opener: Option<(ConnId, Box<str>)>,
    /// It is being let go, or was taken away.
    pub(crate) leaving: Option<Leaving>,
}

/// Where a session stands with its agent.
#[derive(Debug)]
pub(crate) enum Stage {
    /// `session/new` is under way; nobody knows the session yet.
    Opening(Opening),
    /// Its events are being brought from elsewhere; nobody knows the session yet.
    Importing(Importing),
    /// No agent.
    Asleep,
    /// An agent is being started for it, and asked to take it up again.
    Waking(Waking),
    /// The agent serves it.
    Bound,
}

impl Session {
    fn new(known: SessionSummary, stage: Stage) -> Session {
        Session {
            gate: Gate::recovered(known.upto()),
            state: known,
            append_failures: 0,
            stalled: false,
            summary_is_due: false,
            subscribers: BTreeMap::new(),
            stage,
            agent: None,
            last: None,
            pulse: Pulse::default(),
            turn: None,
            queue: VecDeque::new(),
            parked: VecDeque::new(),
            kept: ByteOwner::default(),
            queued_bytes: None,
            held_bytes: None,
            asks: BTreeMap::new(),
            served: Vec::new(),
            settled: BTreeMap::new(),
            restarts: Restarts::default(),
            calls: Calls::default(),
            standing: Standing::default(),
            opener: None,
            leaving: None,
        }
    }

    pub(crate) fn recovered(state: SessionSummary) -> Session {
        Session::new(state, Stage::Asleep)
    }

    /// Counts the prompts that wait, those that an earlier daemon left included.
    pub(crate) fn count_queue(&mut self, budget: &ByteBudget) {
        let queue = &self.state.queue;
        let bytes: usize = queue.values().map(|it| it.frame.bytes().len()).sum();
        count(&mut self.queued_bytes, bytes, |bytes| budget.charge_unchecked(&self.kept, bytes));
    }

    /// Counts what its log holds until it is durable.
    pub(crate) fn count_held(&mut self, budget: &ByteBudget) {
        let owner = ByteOwner::default();
        let bytes = self.gate.held_bytes();
        count(&mut self.held_bytes, bytes, |bytes| budget.charge_unchecked(&owner, bytes));
    }

    pub(crate) fn is_opening(&self) -> bool {
        matches!(self.stage, Stage::Opening(_) | Stage::Importing(_))
    }

    pub(crate) fn is_bound(&self) -> bool {
        matches!(self.stage, Stage::Bound)
    }

    /// The agent's name for it.
    pub(crate) fn theirs(&self) -> &AgentSessionId {
        let new = match &self.stage {
            Stage::Waking(waking) => waking.theirs(),
            _ => None,
        };
        new.unwrap_or(&self.state.agent_session)
    }

    /// The name by which its present process has heard of it; empty if it has not.
    pub(crate) fn told_as(&self) -> AgentSessionId {
        match &self.stage {
            Stage::Waking(waking) if !waking.has_named() => "".into(),
            _ => self.theirs().clone(),
        }
    }

    /// Whether its agent means it by this name: the one it has, had, or is about to have.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        let names = [self.theirs(), &self.state.agent_session];
        names.into_iter().chain(&self.standing.former).any(|it| &**it == name)
    }

    /// One word for people, and whether it needs one.
    pub(crate) fn shown(&self) -> &'static str {
        match &self.stage {
            Stage::Opening(_) | Stage::Importing(_) => "opening",
            Stage::Waking(_) => "starting",
            Stage::Asleep if self.state.closed => "closed",
            Stage::Asleep => "asleep",
            Stage::Bound if !self.asks.is_empty() => "asks",
            Stage::Bound if self.turn.is_some() => "working",
            Stage::Bound => "idle",
        }
    }

    /// A name for lists: the agent's, or the first line of the first prompt. Without secrets.
    pub(crate) fn title(&self) -> Option<String> {
        let title = self.state.title.as_ref().or(self.state.hint.as_ref())?;
        Some(redact::text(title).into_owned())
    }

    /// Whether this client has heard every answer it waits for here.
    pub(crate) fn owes_nothing(&self, conn: ConnId) -> bool {
        let settled = |it: &Subscriber| it.owed.is_empty() && !it.has_deferred();
        self.gate.is_clear() && self.subscribers.get(&conn).is_none_or(settled)
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

/// Most sessions have nothing to count, and no charge.
fn count(charge: &mut Option<ByteCharge>, bytes: usize, new: impl FnOnce(usize) -> ByteCharge) {
    match charge {
        _ if bytes == 0 => *charge = None,
        Some(charge) => charge.resize(bytes),
        None => *charge = Some(new(bytes)),
    }
}
