//! Finds the owner of a session. One search per session serves all clients that wait for it.

use super::{Gateway, GatewayOutput, HostId, Timer};
use jackfield_hub::{ConnId, SessionId};
use jackfield_protocol::Fault;
use std::collections::BTreeSet;

/// A search for the owner of a session.
#[derive(Debug, Default)]
pub(super) struct SessionSearch {
    waiting_clients: BTreeSet<ConnId>,
    /// The connection to it was lost, or it released the session.
    avoid: Option<HostId>,
    stage: SearchStage,
    /// Why the last attempt failed.
    last_fault: Option<Fault>,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum SearchStage {
    #[default]
    New,
    Requested,
    /// A timer repeats the request.
    Pausing,
}

impl Gateway {
    pub(super) fn search_owner(
        &mut self,
        session: &SessionId,
        conn: ConnId,
        avoid: Option<HostId>,
        delay: bool,
    ) {
        let search = self.searches.entry(session.clone()).or_default();
        search.waiting_clients.insert(conn);
        search.avoid = avoid.or_else(|| search.avoid.take());
        if search.stage != SearchStage::New {
            return;
        }
        if delay {
            self.schedule_retry(session);
        } else {
            self.request_location(session);
        }
    }

    fn schedule_retry(&mut self, session: &SessionId) {
        let search = self.searches.get_mut(session).expect("the caller found it");
        search.stage = SearchStage::Pausing;
        let due = self.now.plus(self.config.limits.retry_ms);
        self.timers.set(due, Timer::RetrySearch(session.clone()));
    }

    fn request_location(&mut self, session: &SessionId) {
        let search = self.searches.get_mut(session).expect("the caller found it");
        search.stage = SearchStage::Requested;
        let (session, avoid) = (session.clone(), search.avoid.clone());
        self.outputs.push_back(GatewayOutput::LocateSession { session, avoid });
    }

    pub(super) fn retry_search(&mut self, session: &SessionId) {
        let Some(search) = self.searches.get_mut(session) else { return };
        if search.stage != SearchStage::Pausing {
            return;
        }
        let uses_session =
            |it: &ConnId| self.clients.get(it).is_some_and(|it| it.sessions.contains_key(session));
        search.waiting_clients.retain(uses_session);
        if search.waiting_clients.is_empty() {
            self.searches.remove(session);
        } else {
            self.request_location(session);
        }
    }

    pub(super) fn on_session_located(&mut self, session: &SessionId, owner: Result<HostId, Fault>) {
        let Some(search) = self.searches.get_mut(session) else { return };
        if search.stage != SearchStage::Requested {
            return;
        }
        match owner {
            Ok(host) => {
                let search = self.searches.remove(session).expect("found above");
                for conn in search.waiting_clients {
                    self.bind_owner(conn, session, &host);
                }
            }
            Err(fault @ Fault::SessionNotFound { .. }) => {
                let search = self.searches.remove(session).expect("found above");
                for conn in search.waiting_clients {
                    self.on_session_missing(conn, session, &fault);
                }
            }
            Err(fault) => {
                search.last_fault = Some(fault.clone());
                let waiting_clients = search.waiting_clients.clone();
                self.schedule_retry(session);
                if let Fault::NoHost { why } = fault {
                    for conn in waiting_clients {
                        self.on_no_eligible_host(conn, session, &why);
                    }
                }
            }
        }
    }

    /// The error for messages that waited too long.
    pub(super) fn no_owner_fault(&self, session: &SessionId) -> Fault {
        let reason = self.searches.get(session).and_then(|it| it.last_fault.as_ref());
        let reason =
            reason.map_or_else(|| "no host has adopted it yet".to_owned(), Fault::to_string);
        let why = format!(
            "session `{session}` has no host: {reason}; the session is not lost: try again when its host \
             is back, or start a host with the same name; until then its log can be read"
        );
        Fault::HostLost { why }
    }
}
