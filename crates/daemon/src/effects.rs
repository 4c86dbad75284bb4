//! Carrying out what the hub asks. Nothing here decides anything, and nothing here waits.

use crate::{
    chunks::Chunks,
    copy::Fork,
    environment,
    metrics::Meters,
    observe,
    roster::Roster,
    served::{Answer, Served},
};
use bytes::Bytes;
use jackfield_agents::{
    AgentEvent, AgentHandle, GuardCommand, LaunchCommand as Command, ProcessLedger, StdoutFormat,
    StopUrgency,
};
use jackfield_events::{Seq, SessionId, SessionSummary};
use jackfield_hub::{
    AgentId, AppendFailure, ConnId, Exit, Input, Launch, Output, StorageFault, limits,
};
use jackfield_journal::{AppendError, JournalCompletion, NonBlockingJournal, ReadError};
use jackfield_protocol::chain;
use jackfield_transport::ClientHandle;
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    path::PathBuf,
    time::{Duration, Instant},
};
use tokio::sync::mpsc::Sender;

/// Answers that wait for a client that does not read them. Events do not count: the hub bounds those
/// far below.
const UNREAD_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The same of all clients together, and what all agents together have not read. Above it the one with the most is cut
/// off, or stopped.
const UNREAD_BYTES_ALL_MAX: usize = 96 * 1024 * 1024;

/// Whoever has read all but this is not the one.
const UNREAD_BYTES_MIN: usize = 1024 * 1024;

/// The reader that is no client: conns are counted from 1.
pub(crate) const FOR_THE_HUB: u64 = 0;

/// What every process of this daemon is started with.
#[derive(Debug, Clone)]
pub(crate) struct Ground {
    pub(crate) guard: GuardCommand,
    pub(crate) ledger: ProcessLedger,
    /// Marks this daemon's processes among all of the machine.
    pub(crate) mark: String,
}

/// The hands of the loop: the edges, and what is on its way to them.
pub(crate) struct Effects {
    pub(crate) conns: BTreeMap<ConnId, ClientHandle>,
    pub(crate) agents: BTreeMap<AgentId, AgentHandle>,
    pub(crate) port: NonBlockingJournal,
    pub(crate) chunks: Chunks,
    pub(crate) roster: Roster,
    pub(crate) served: Served,
    pub(crate) ground: Ground,
    pub(crate) meters: Meters,
    pub(crate) agent_events: Sender<(AgentId, AgentEvent)>,
    /// Edges with something to flush at the end of the turn.
    dirty_conns: BTreeSet<ConnId>,
    dirty_agents: BTreeSet<AgentId>,
    /// What carrying out an output made happen at once.
    pub(crate) inputs: VecDeque<Input>,
    pub(crate) stop_asked: bool,
    pub(crate) stopped: bool,
}

impl Effects {
    pub(crate) fn new(
        port: NonBlockingJournal,
        roster: Roster,
        served: Served,
        ground: Ground,
        agent_events: Sender<(AgentId, AgentEvent)>,
    ) -> Effects {
        Effects {
            conns: BTreeMap::new(),
            agents: BTreeMap::new(),
            chunks: Chunks::new(port.append_interval()),
            port,
            roster,
            served,
            ground,
            meters: Meters::default(),
            agent_events,
            dirty_conns: BTreeSet::new(),
            dirty_agents: BTreeSet::new(),
            inputs: VecDeque::new(),
            stop_asked: false,
            stopped: false,
        }
    }

    pub(crate) fn carry_out(&mut self, output: Output) {
        match output {
            Output::Append { session, event, summary } => {
                self.meters.events += 1;
                self.chunks.push(&session, &event, summary);
            }
            Output::Summarize { session, upto, summary } => {
                self.chunks.summarize(&session, upto, summary);
            }
            Output::Read { conn, session, after } => {
                let (events, bytes) = (limits::READ_EVENTS_MAX, limits::READ_BYTES_MAX);
                if let Some(refused) =
                    self.port.start_read(conn.0, session.into(), after.0, events, bytes)
                {
                    self.on_done(refused);
                }
            }
            Output::Recall { session, after } => {
                let (events, bytes) = (limits::READ_EVENTS_MAX, limits::READ_BYTES_MAX);
                let refused =
                    self.port.start_read(FOR_THE_HUB, session.into(), after.0, events, bytes);
                if let Some(refused) = refused {
                    self.on_done(refused);
                }
            }
            Output::Copy { from, upto, to, last } => {
                let fork = Box::new(Fork::new(to.clone(), last));
                if let Some(refused) = self.port.start_copy(from.into(), upto.0, to.into(), fork) {
                    self.on_done(refused);
                }
            }
            Output::Serve { agent, frame, dirs } => {
                let answer = self.served.serve(agent, &frame, dirs);
                self.answer_served(answer);
            }
            Output::Delete { session } => {
                self.chunks.failed(&session);
                self.port.start_delete(session.into());
            }
            Output::LetGone { session } => self.port.release_stream(session.into()),
            Output::ToClient { conn, text } => self.tell_client(conn, text),
            Output::CloseClient { conn } => {
                if let Some(handle) = self.conns.get_mut(&conn) {
                    handle.close_after_flush();
                }
            }
            Output::Spawn { agent, launch } => self.spawn(agent, &launch),
            Output::ToAgent { agent, text } => self.tell_agent(agent, text),
            Output::PauseAgent { agent } => self.with_agent(agent, AgentHandle::pause),
            Output::ResumeAgent { agent } => self.with_agent(agent, AgentHandle::resume),
            Output::StopAgent { agent, now } => {
                self.served.on_stop(agent, now);
                let how = if now { StopUrgency::Now } else { StopUrgency::Polite };
                self.with_agent(agent, |it| it.stop(how));
            }
            Output::EndTools { agent, age_ms } => {
                let age = Duration::from_millis(age_ms);
                self.served.end_tools(agent, age);
                self.with_agent(agent, |it| it.end_tools(age));
            }
            Output::Note(note) => {
                self.meters.on_note(&note);
                observe::note(&note);
            }
            Output::StopAsked => self.stop_asked = true,
            Output::Stopped => self.stopped = true,
        }
    }

    /// What was served for agents becomes an input.
    pub(crate) fn answer_served(&mut self, answers: impl IntoIterator<Item = Answer>) {
        let inputs =
            answers.into_iter().map(|Answer { agent, frame }| Input::Served { agent, frame });
        self.inputs.extend(inputs);
    }

    fn tell_client(&mut self, conn: ConnId, text: Bytes) {
        let Some(handle) = self.conns.get_mut(&conn) else { return };
        handle.send(text);
        self.dirty_conns.insert(conn);
        if UNREAD_BYTES_MIN < handle.queued_bytes() {
            self.bound_unread_of_clients();
        }
    }

    /// Cuts off the client with the most unread bytes while all together have too many.
    fn bound_unread_of_clients(&mut self) {
        let unread = |conns: &BTreeMap<ConnId, ClientHandle>| -> usize {
            conns.values().map(ClientHandle::queued_bytes).sum()
        };
        while UNREAD_BYTES_ALL_MAX < unread(&self.conns) {
            let most = self.conns.iter_mut().max_by_key(|(_, it)| it.queued_bytes());
            let Some((conn, handle)) = most else { return };
            // What its socket takes now is read, or will be.
            let bytes = handle.flush();
            if bytes != 0 {
                self.inputs.push_back(Input::ClientWrote { conn: *conn, bytes });
                continue;
            }
            tracing::warn!(%conn, "clients do not read; the one with the most unread is cut off");
            handle.close();
        }
    }

    /// Stops the agent that has read the least while all together have too much to read.
    fn bound_unread_of_agents(&mut self) {
        let unread = |agents: &BTreeMap<AgentId, AgentHandle>| -> usize {
            agents.values().map(AgentHandle::backlog).sum()
        };
        while UNREAD_BYTES_ALL_MAX < unread(&self.agents) {
            let most = self.agents.iter_mut().max_by_key(|(_, it)| it.backlog());
            let Some((agent, handle)) = most else { return };
            if handle.flush() != 0 {
                continue;
            }
            tracing::warn!(%agent, "agents do not read; the one with the most unread is stopped");
            handle.stop(StopUrgency::Now);
        }
    }

    fn tell_agent(&mut self, agent: AgentId, text: Bytes) {
        let Some(handle) = self.agents.get_mut(&agent) else { return };
        match handle.send(text) {
            Ok(()) => {
                self.dirty_agents.insert(agent);
                if UNREAD_BYTES_MIN < handle.backlog() {
                    self.bound_unread_of_agents();
                }
            }
            Err(full) => {
                // It has not read for a long time and will not miss one more message.
                tracing::warn!(%agent, %full, "an agent does not read; it is stopped");
                handle.stop(StopUrgency::Now);
            }
        }
    }

    fn with_agent(&mut self, agent: AgentId, act: impl FnOnce(&mut AgentHandle)) {
        if let Some(handle) = self.agents.get_mut(&agent) {
            act(handle);
        }
    }

    fn spawn(&mut self, agent: AgentId, launch: &Launch) {
        let start = match self.roster.start(launch, environment::ours()) {
            Ok(start) => start,
            Err(why) => return self.not_started(agent, why, false),
        };
        // A process that was started before any session named a directory.
        let nowhere = launch.cwd.as_os_str().is_empty();
        let cwd = if nowhere { PathBuf::from("/") } else { launch.cwd.clone() };
        self.served.on_spawned(agent, &start.env);
        if start.never_asks {
            self.inputs.push_back(Input::AgentNeverAsks { agent });
        }
        let stdout_format = StdoutFormat::Frames;
        let command = Command { argv: start.argv, cwd, env: start.env, stdout_format };
        let Ground { guard, ledger, mark } = &self.ground;
        let mark = format!("{mark}-{}", agent.0);
        let events = self.agent_events.clone();
        match jackfield_agents::spawn_agent(guard, &command, &mark, ledger, events, agent) {
            Ok(handle) => {
                self.meters.on_spawn(agent);
                self.agents.insert(agent, handle);
            }
            Err(error) => match error.shortage() {
                Some(way_out) => {
                    self.not_started(agent, format!("{}; {way_out}", chain(&error)), true);
                }
                None => self.not_started(agent, chain(&error), false),
            },
        }
    }

    fn not_started(&mut self, agent: AgentId, status: String, shortage: bool) {
        self.served.on_gone(agent);
        let exit = Exit { status, stderr: String::new(), started: false, shortage };
        self.inputs.push_back(Input::AgentGone { agent, exit });
    }

    /// Hands everything collected to the journal; what it commits at once is returned as inputs.
    pub(crate) fn append(&mut self) {
        let now = Instant::now();
        self.chunks.wake(now);
        if !self.chunks.has_ready() {
            return;
        }
        let batch = self.chunks.take(now);
        for done in self.port.append_batch(batch) {
            self.on_done(done);
        }
    }

    /// The journal answered.
    pub(crate) fn on_done(&mut self, done: JournalCompletion) {
        match done {
            JournalCompletion::Appended { stream, upto } => {
                let (session, upto) = (SessionId::from(stream), Seq(upto));
                self.chunks.done(&session, Instant::now());
                self.inputs.push_back(Input::Durable { session, upto });
            }
            JournalCompletion::AppendFailed { stream, error, .. } => {
                let why = failure(&error);
                if why == AppendFailure::Fenced {
                    self.port.forget_claim(&stream);
                }
                let session = SessionId::from(stream);
                self.chunks.failed(&session);
                self.inputs.push_back(Input::AppendFailed { session, why });
            }
            JournalCompletion::Read { token, stream, after, events } => {
                let session = SessionId::from(stream);
                let answer = crate::main_loop::read_answer(token, session, after, &events);
                self.inputs.push_back(answer);
            }
            JournalCompletion::ReadFailed { token, stream, after, error } => {
                let (session, why) = (SessionId::from(stream), chain(&error));
                tracing::error!(%session, after, why, "failed to read the journal");
                if token == FOR_THE_HUB {
                    return self.inputs.push_back(Input::RecallFailed { session, why });
                }
                let (conn, after) = (ConnId(token), Seq(after));
                let damaged = matches!(error, ReadError::Damaged { .. });
                let failed = Input::ReadFailed { conn, session, after, why, damaged };
                self.inputs.push_back(failed);
            }
            JournalCompletion::Copied { stream: to, summary } => {
                let state = SessionSummary::from_summary(&summary).expect("it was made of a state");
                self.inputs.push_back(Input::Copied { to: to.into(), state: Box::new(state) });
            }
            JournalCompletion::CopyFailed { stream: to, error } => {
                let why = chain(&error);
                tracing::error!(session = %to, why, "a session could not be copied");
                self.inputs.push_back(Input::CopyFailed { to: to.into(), why });
            }
            JournalCompletion::Deleted { .. } | JournalCompletion::Released { .. } => {}
            JournalCompletion::ReleaseFailed { stream, error } => {
                tracing::warn!(session = %stream, why = chain(&error), "a session is let go later");
            }
            JournalCompletion::DeleteFailed { stream, error } => {
                tracing::error!(session = %stream, why = chain(&error), "a session's log is still there");
            }
            JournalCompletion::UpkeepFailed { error } => {
                tracing::warn!(why = chain(&error), "the journal could not be tidied up");
            }
        }
    }

    /// Writes out what the turn produced.
    pub(crate) fn flush(&mut self) {
        for agent in std::mem::take(&mut self.dirty_agents) {
            self.with_agent(agent, |it| {
                let _left = it.flush();
            });
        }
        for conn in std::mem::take(&mut self.dirty_conns) {
            let Some(handle) = self.conns.get_mut(&conn) else { continue };
            let bytes = handle.flush();
            if UNREAD_BYTES_MAX < handle.queued_bytes() {
                tracing::warn!(%conn, "a client asks and asks and does not read; it is cut off");
                handle.close();
            }
            if bytes != 0 {
                self.inputs.push_back(Input::ClientWrote { conn, bytes });
            }
        }
    }
}

fn storage_fault(error: &AppendError) -> StorageFault {
    match error.storage_fault() {
        jackfield_journal::StorageFault::DiskFull => StorageFault::DiskFull,
        jackfield_journal::StorageFault::ReadOnly => StorageFault::ReadOnly,
        jackfield_journal::StorageFault::FileChanged => StorageFault::FileChanged,
        jackfield_journal::StorageFault::Other => StorageFault::Other,
    }
}

fn failure(error: &AppendError) -> AppendFailure {
    match error {
        AppendError::Fenced { .. } => AppendFailure::Fenced,
        // Trying again is safe even where it cannot help: what is there is skipped.
        _ => AppendFailure::Unavailable { fault: storage_fault(error), why: chain(error) },
    }
}
