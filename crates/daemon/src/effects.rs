//! Carries out the outputs of the hub. Nothing here decides anything or waits.

use crate::{
    added_listeners::AddedListeners,
    agent_registry::AgentRegistry,
    append_queue::AppendQueue,
    copy::ForkTranslator,
    journal_inputs::{JournalReader, to_append_failure, to_read_failure, to_read_input},
    metrics::LoopCounters,
    observe,
    sandbox::{AgentSandboxes, HostAsks},
    served::{AgentServices, ServedResponse},
    spawn_context::SpawnContext,
};
use bytes::Bytes;
use jackfield_agents::{AgentHandle, AgentProcessEvent, StopUrgency};
use jackfield_events::{Seq, SessionId, SessionSummary};
use jackfield_hub::{
    AgentId, AppendFailure, ConnId, Input, Output,
    limits::{READ_BYTES_MAX, READ_EVENTS_MAX},
};
use jackfield_journal::{JournalCompletion, NonBlockingJournal};
use jackfield_protocol::{Fault, acp::Method, chain};
use jackfield_transport::ClientHandle;
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::{Duration, Instant},
};
use tokio::sync::mpsc::Sender;

/// The limit of unread responses of one client. Events do not count: the hub limits those far
/// below.
const UNREAD_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The limit for all clients together, and for the unread bytes of all agents together. Above it
/// the client or agent with the most unread bytes is disconnected or stopped.
const UNREAD_BYTES_ALL_MAX: usize = 96 * 1024 * 1024;

/// Clients and agents with fewer unread bytes are not considered.
const UNREAD_BYTES_MIN: usize = 1024 * 1024;

/// Connections, agents and the journal of the loop.
pub(crate) struct HubEffects {
    pub(crate) conns: BTreeMap<ConnId, ClientHandle>,
    pub(crate) agents: BTreeMap<AgentId, AgentHandle>,
    pub(crate) journal_port: NonBlockingJournal,
    pub(crate) append_queue: AppendQueue,
    pub(crate) agent_registry: AgentRegistry,
    pub(crate) served: AgentServices,
    pub(crate) sandboxes: AgentSandboxes,
    pub(crate) host_asks: HostAsks,
    pub(crate) spawn_context: SpawnContext,
    pub(crate) counters: LoopCounters,
    pub(crate) agent_events: Sender<(AgentId, AgentProcessEvent)>,
    /// Handles that must be flushed at the end of this iteration of the loop.
    dirty_conns: BTreeSet<ConnId>,
    dirty_agents: BTreeSet<AgentId>,
    /// Inputs that result from an output at once.
    pub(crate) inputs: VecDeque<Input>,
    /// The addresses of the daemon; none if this hub is part of a command.
    pub(crate) listeners: Option<AddedListeners>,
    pub(crate) stop_requested: bool,
    pub(crate) stopped: bool,
}

impl HubEffects {
    pub(crate) fn new(
        journal_port: NonBlockingJournal,
        agent_registry: AgentRegistry,
        served: AgentServices,
        sandboxes: AgentSandboxes,
        spawn_context: SpawnContext,
        agent_events: Sender<(AgentId, AgentProcessEvent)>,
    ) -> HubEffects {
        HubEffects {
            conns: BTreeMap::new(),
            agents: BTreeMap::new(),
            append_queue: AppendQueue::new(journal_port.append_interval()),
            journal_port,
            agent_registry,
            served,
            host_asks: HostAsks::new(sandboxes.host_answers()),
            sandboxes,
            spawn_context,
            counters: LoopCounters::default(),
            agent_events,
            dirty_conns: BTreeSet::new(),
            dirty_agents: BTreeSet::new(),
            inputs: VecDeque::new(),
            listeners: None,
            stop_requested: false,
            stopped: false,
        }
    }

    pub(crate) fn carry_out(&mut self, output: Output) {
        match output {
            Output::Append { session, event, summary } => {
                self.counters.events += 1;
                self.append_queue.push(&session, &event, summary);
            }
            Output::Summarize { session, upto, summary } => {
                self.append_queue.summarize(&session, upto, summary);
            }
            Output::Read { conn, session, after } => {
                self.start_read(JournalReader::Subscriber(conn), session, after, READ_EVENTS_MAX);
            }
            Output::ReadPage { page, session, after, events_max } => {
                let events_max = events_max.min(READ_EVENTS_MAX);
                self.start_read(JournalReader::Page(page), session, after, events_max);
            }
            Output::Recall { session, after } => {
                self.start_read(JournalReader::Hub, session, after, READ_EVENTS_MAX);
            }
            Output::Copy { from, upto, to, last } => {
                let fork = Box::new(ForkTranslator::new(to.clone(), last));
                if let Some(refused) =
                    self.journal_port.start_copy(from.into(), upto.0, to.into(), fork)
                {
                    self.on_journal_completion(refused);
                }
            }
            Output::Serve { agent, frame, dirs } => {
                let answer = self.served.serve(agent, &frame, dirs);
                self.add_served_inputs(answer);
            }
            Output::Delete { session } => {
                self.append_queue.on_append_failed(&session);
                self.journal_port.start_delete(session.into());
            }
            Output::SessionReleased { session } => self.journal_port.release_stream(session.into()),
            Output::ToClient { conn, text } => self.send_to_client(conn, text),
            Output::CloseClient { conn } => {
                if let Some(handle) = self.conns.get_mut(&conn) {
                    handle.close_after_flush();
                }
            }
            Output::Spawn { agent, launch } => self.spawn_agent(agent, &launch),
            Output::ToAgent { agent, text } => self.send_to_agent(agent, text),
            Output::PauseAgent { agent } => self.with_agent(agent, AgentHandle::pause),
            Output::ResumeAgent { agent } => self.with_agent(agent, AgentHandle::resume),
            Output::StopAgent { agent, now } => {
                self.served.on_stop(agent, now);
                let urgency = if now { StopUrgency::Now } else { StopUrgency::Polite };
                self.with_agent(agent, |it| it.stop(urgency));
            }
            Output::EndTools { agent, age_ms } => {
                let age = Duration::from_millis(age_ms);
                self.served.end_tools(agent, age);
                self.with_agent(agent, |it| it.end_tools(age));
            }
            Output::Note(note) => {
                self.counters.on_note(&note);
                observe::log_note(&note);
            }
            Output::ChangeListeners { conn, request, change } => {
                let result = match &mut self.listeners {
                    Some(listeners) => listeners.apply_change(&change),
                    None => Err(Fault::NotServed { method: Method::ControlListen.name().into() }),
                };
                self.inputs.push_back(Input::ListenersChanged { conn, request, result });
            }
            Output::StopAsked => self.stop_requested = true,
            Output::Stopped => self.stopped = true,
        }
    }

    fn start_read(
        &mut self,
        reader: JournalReader,
        session: SessionId,
        after: Seq,
        events_max: usize,
    ) {
        let (token, after) = (reader.to_token(), after.0);
        let refused =
            self.journal_port.start_read(token, session.into(), after, events_max, READ_BYTES_MAX);
        if let Some(refused) = refused {
            self.on_journal_completion(refused);
        }
    }

    /// Turns responses for agents into inputs.
    pub(crate) fn add_served_inputs(&mut self, answers: impl IntoIterator<Item = ServedResponse>) {
        let inputs = answers
            .into_iter()
            .map(|ServedResponse { agent, frame }| Input::Served { agent, frame });
        self.inputs.extend(inputs);
    }

    fn send_to_client(&mut self, conn: ConnId, text: Bytes) {
        let Some(handle) = self.conns.get_mut(&conn) else { return };
        handle.send(text);
        self.dirty_conns.insert(conn);
        if UNREAD_BYTES_MIN < handle.queued_bytes() {
            self.limit_unread_of_clients();
        }
    }

    /// Disconnects the client with the most unread bytes while all together exceed the limit.
    fn limit_unread_of_clients(&mut self) {
        let unread = |conns: &BTreeMap<ConnId, ClientHandle>| -> usize {
            conns.values().map(ClientHandle::queued_bytes).sum()
        };
        while UNREAD_BYTES_ALL_MAX < unread(&self.conns) {
            let fullest = self.conns.iter_mut().max_by_key(|(_, it)| it.queued_bytes());
            let Some((conn, handle)) = fullest else { return };
            // What its socket accepts now does not count as unread.
            let bytes = handle.flush();
            if bytes != 0 {
                self.inputs.push_back(Input::ClientWrote { conn: *conn, bytes });
                continue;
            }
            tracing::warn!(%conn, "total unread bytes of clients exceed the limit; disconnecting the client with the most");
            handle.close();
        }
    }

    /// Stops the agent with the most unread bytes while all together exceed the limit.
    fn limit_unread_of_agents(&mut self) {
        let unread = |agents: &BTreeMap<AgentId, AgentHandle>| -> usize {
            agents.values().map(AgentHandle::backlog).sum()
        };
        while UNREAD_BYTES_ALL_MAX < unread(&self.agents) {
            let fullest = self.agents.iter_mut().max_by_key(|(_, it)| it.backlog());
            let Some((agent, handle)) = fullest else { return };
            if handle.flush() != 0 {
                continue;
            }
            tracing::warn!(%agent, "total unread bytes of agents exceed the limit; stopping the agent with the most");
            handle.stop(StopUrgency::Now);
        }
    }

    fn send_to_agent(&mut self, agent: AgentId, text: Bytes) {
        if self.host_asks.take_answer(agent, &text) {
            return;
        }
        let Some(handle) = self.agents.get_mut(&agent) else { return };
        match handle.send(text) {
            Ok(()) => {
                self.dirty_agents.insert(agent);
                if UNREAD_BYTES_MIN < handle.backlog() {
                    self.limit_unread_of_agents();
                }
            }
            Err(full) => {
                // It has not read for a long time.
                tracing::warn!(%agent, %full, "agent does not read its input; stopping it");
                handle.stop(StopUrgency::Now);
            }
        }
    }

    fn with_agent(&mut self, agent: AgentId, apply: impl FnOnce(&mut AgentHandle)) {
        if let Some(handle) = self.agents.get_mut(&agent) {
            apply(handle);
        }
    }

    /// Hands all batches to the journal; immediate commits become inputs.
    pub(crate) fn append_batches(&mut self) {
        let now = Instant::now();
        self.append_queue.end_waits(now);
        if !self.append_queue.has_ready() {
            return;
        }
        let batch = self.append_queue.take_batches(now);
        for completion in self.journal_port.append_batch(batch) {
            self.on_journal_completion(completion);
        }
    }

    /// Handles a completion of the journal.
    pub(crate) fn on_journal_completion(&mut self, completion: JournalCompletion) {
        match completion {
            JournalCompletion::Appended { stream, upto } => {
                let (session, upto) = (SessionId::from(stream), Seq(upto));
                self.append_queue.on_appended(&session, Instant::now());
                self.inputs.push_back(Input::Durable { session, upto });
            }
            JournalCompletion::AppendFailed { stream, error, .. } => {
                let why = to_append_failure(&error);
                if why == AppendFailure::Fenced {
                    self.journal_port.forget_claim(&stream);
                }
                let session = SessionId::from(stream);
                self.append_queue.on_append_failed(&session);
                self.inputs.push_back(Input::AppendFailed { session, why });
            }
            JournalCompletion::Read { token, stream, after, events } => {
                let session = SessionId::from(stream);
                let input = to_read_input(token, session, after, &events);
                self.inputs.push_back(input);
            }
            JournalCompletion::ReadFailed { token, stream, after, error } => {
                let session = SessionId::from(stream);
                self.inputs.push_back(to_read_failure(token, session, after, &error));
            }
            JournalCompletion::Copied { stream: to, summary } => {
                let state =
                    SessionSummary::from_summary(&summary).expect("it was written from a summary");
                self.inputs.push_back(Input::Copied { to: to.into(), state: Box::new(state) });
            }
            JournalCompletion::CopyFailed { stream: to, error } => {
                let why = chain(&error);
                tracing::error!(session = %to, why, "failed to copy session");
                self.inputs.push_back(Input::CopyFailed { to: to.into(), why });
            }
            JournalCompletion::Deleted { .. } | JournalCompletion::Released { .. } => {}
            JournalCompletion::ReleaseFailed { stream, error } => {
                tracing::warn!(session = %stream, why = chain(&error), "failed to release session; retrying later");
            }
            JournalCompletion::DeleteFailed { stream, error } => {
                tracing::error!(session = %stream, why = chain(&error), "failed to delete the log of session");
            }
            JournalCompletion::UpkeepFailed { error } => {
                tracing::warn!(why = chain(&error), "journal maintenance failed");
            }
        }
    }

    /// Writes the frames that this iteration of the loop produced.
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
                tracing::warn!(%conn, "unread responses of client exceed the limit; disconnecting it");
                handle.close();
            }
            if bytes != 0 {
                self.inputs.push_back(Input::ClientWrote { conn, bytes });
            }
        }
    }
}
