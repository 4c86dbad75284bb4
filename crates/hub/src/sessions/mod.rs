//! All sessions. This module does what concerns more than one session: it finds the session that a message is for,
//! opens and removes sessions, decides which session gets an agent process, and lists sessions.

mod admission;
mod adopt;
mod agent_exit;
mod agent_messages;
mod client_agent;
mod clients;
mod direct_requests;
mod fork;
mod gauges;
mod import;
mod keys;
mod list;
mod log_pages;
mod open;
mod operator;
mod oversized;
mod remove;
mod rename;
mod sandbox;
mod session_table;
mod slots;
mod storage;
mod watch;

pub use gauges::{Gauges, Process};

use crate::{
    SessionId, context::HubContext, message::HubMessage, parts::HubParts, session::Session,
};
use fork::SessionFork;
use jackfield_protocol::{Fault, Frame};
use log_pages::LogPages;
use session_table::SessionTable;
use std::collections::BTreeMap;
use watch::SessionWatch;

#[derive(Debug, Default)]
pub(crate) struct Sessions {
    by_id: SessionTable,
    /// Sessions that are being copied, by the id of the copy.
    forks: BTreeMap<SessionId, SessionFork>,
    log_pages: LogPages,
    watch: SessionWatch,
}

impl Sessions {
    /// The sessions of the journal. What was open when the last daemon ended is ended in their logs.
    pub(crate) fn recovered(
        cx: &mut HubContext,
        sessions: impl IntoIterator<Item = Session>,
    ) -> Sessions {
        let by_id = SessionTable::new(sessions);
        let mut sessions = Sessions { by_id, ..Sessions::default() };
        sessions.index_all_keys(cx);
        for session in sessions.by_id.values_mut() {
            session.end_turn_of_last_daemon(cx);
            session.count_queue(&cx.retained_bytes);
            cx.schedule_unattended_check(&session.id);
        }
        sessions
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Session> {
        self.by_id.values()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Session> {
        self.by_id.values_mut()
    }

    pub(crate) fn get(&self, id: &str) -> Option<&Session> {
        self.by_id.get(id)
    }

    /// Runs work on a session, if it exists.
    pub(crate) fn with<R: Default>(
        &mut self,
        id: &SessionId,
        work: impl FnOnce(&mut Session) -> R,
    ) -> R {
        self.by_id.get_mut(id).map(work).unwrap_or_default()
    }

    /// The session that a frame names, or an error that there is none.
    pub(crate) fn find_session(&mut self, frame: &Frame) -> Result<&mut Session, Fault> {
        let named = frame.session_id();
        let Some(named) = named else {
            return Err(Fault::InvalidParams { why: "`sessionId` is missing".into() });
        };
        match self.by_id.get_mut(named.as_ref()) {
            Some(session) if !session.is_opening() => Ok(session),
            _ => Err(Fault::SessionNotFound { session: named.into_owned() }),
        }
    }

    /// Whether a session is being copied.
    pub(crate) fn has_forks(&self) -> bool {
        !self.forks.is_empty()
    }

    /// Handles what sessions have asked for.
    pub(crate) fn handle_messages(&mut self, parts: &mut HubParts) {
        while let Some(message) = parts.cx.messages.pop_front() {
            match message {
                HubMessage::FindAgent(id) => self.find_agent(parts, &id),
                HubMessage::TryRestoreStep(id) => self.try_restore_step(parts, &id),
                HubMessage::ResumeAgent(agent) => self.resume_agent(parts, agent),
                HubMessage::InterruptSessions { agent, culprit } => {
                    self.interrupt_sessions(parts, agent, &culprit);
                }
                HubMessage::RemoveOpening(id) => drop(self.by_id.remove(&id)),
                HubMessage::RemoveReleased(id) => self.remove_released(parts, &id),
                HubMessage::RequestAnswered(id, answered) => self.note_answered(id, &answered),
            }
        }
    }
}
