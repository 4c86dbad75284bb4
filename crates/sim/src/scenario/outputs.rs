//! Executes the outputs of the hub: appends and reads of the journal, messages, processes.

use super::runner::{AgentProcess, ScenarioRunner};
use bytes::Bytes;
use jackfield_events::{SessionEvent, SessionSummary};
use jackfield_hub::{ConnId, Input, Output, Seq, SessionId, limits};
use jackfield_protocol::{Fault, Frame};
use std::collections::VecDeque;

impl ScenarioRunner {
    pub(super) fn drain_outputs(&mut self) {
        let mut inputs = VecDeque::new();
        loop {
            while let Some(output) = self.hub.poll_output() {
                inputs.extend(self.execute_output(output));
            }
            let Some(input) = inputs.pop_front() else { return };
            self.hub.handle(self.now, input);
        }
    }

    fn execute_output(&mut self, output: Output) -> Option<Input> {
        match output {
            Output::Append { session, event, .. } => {
                let upto = event.seq;
                let log = self.journal.entry(session.clone()).or_default();
                assert_eq!(Seq(log.len() as u64).next(), upto, "appends are contiguous");
                log.push(event);
                return Some(Input::Durable { session, upto });
            }
            Output::Read { conn, session, after } => {
                let events = self.read_log(&session, after, limits::READ_EVENTS_MAX);
                return Some(Input::Read { conn, session, after, events });
            }
            Output::ReadPage { page, session, after, events_max } => {
                let events = Ok(self.read_log(&session, after, events_max));
                return Some(Input::PageRead { page, events });
            }
            Output::Recall { session, after } => {
                let events = self.read_log(&session, after, limits::READ_EVENTS_MAX);
                return Some(Input::Recalled { session, after, events });
            }
            Output::Copy { from, upto, to, last } => {
                let log = self.journal.get(&from).into_iter().flatten();
                let events = log.take_while(|it| it.seq <= upto).map(|it| it.with_session_id(&to));
                let events: Vec<SessionEvent> = events.chain([last]).collect();
                let mut state = SessionSummary::default();
                for event in &events {
                    state.fold(event);
                }
                self.journal.insert(to.clone(), events);
                return Some(Input::Copied { to, state: Box::new(state) });
            }
            Output::Serve { agent, frame, .. } => {
                return Some(Input::Served { agent, frame: refuse_file_request(&frame) });
            }
            Output::Delete { session } => drop(self.journal.remove(&session)),
            Output::ToClient { conn, text } => return self.deliver_message(conn, text),
            Output::CloseClient { conn } => {
                if let Some(it) = self.conns.get_mut(&conn) {
                    it.closed = true;
                }
            }
            Output::Spawn { agent, .. } => {
                self.procs.insert(agent, AgentProcess::default());
                self.started.push_back(agent);
            }
            Output::ToAgent { agent, text } => {
                if let Some(process) = self.procs.get_mut(&agent) {
                    process.unread.push_back(text);
                }
            }
            Output::StopAgent { agent, .. } => {
                if let Some(process) = self.procs.get_mut(&agent) {
                    process.stop_requested = true;
                }
            }
            Output::Stopped => self.stopped = true,
            Output::Summarize { session, upto, .. } => {
                return Some(Input::Durable { session, upto });
            }
            Output::SessionReleased { session } => drop(self.released.insert(session)),
            Output::PauseAgent { .. }
            | Output::ResumeAgent { .. }
            | Output::EndTools { .. }
            | Output::Note(_)
            | Output::ChangeListeners { .. }
            | Output::StopAsked => {}
        }
        None
    }

    fn read_log(&self, session: &SessionId, after: Seq, events_max: usize) -> Vec<SessionEvent> {
        let log = self.journal.get(session).into_iter().flatten();
        log.filter(|it| after < it.seq).take(events_max).cloned().collect()
    }

    fn deliver_message(&mut self, conn: ConnId, text: Bytes) -> Option<Input> {
        let it = self.conns.get_mut(&conn)?;
        let bytes = text.len();
        it.unread.push_back(text);
        if it.stopped_reading {
            it.unwritten += bytes;
            return None;
        }
        Some(Input::ClientWrote { conn, bytes })
    }
}

/// The error for requests for files and terminals.
fn refuse_file_request(frame: &Frame) -> Frame {
    let why = "this world has no files".to_owned();
    Frame::error_for(frame.id().expect("a request has an id"), &Fault::Internal { why })
}
