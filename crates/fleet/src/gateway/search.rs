//! Whose a session is: one question at a time for each, however many clients wait for the answer.

use super::{Gateway, GatewayOutput, HostId, Timer};
use jackfield_hub::{ConnId, SessionId};
use jackfield_protocol::Fault;
use std::collections::BTreeSet;

#[derive(Debug, Default)]
pub(super) struct Search {
    seekers: BTreeSet<ConnId>,
    /// A host connection to it was lost, or it has let the session go.
    avoid: Option<HostId>,
    stage: Stage,
    /// Why the last try failed.
    why: Option<Fault>,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    New,
    Asked,
    /// A timer asks again.
    Pausing,
}

impl Gateway {
    pub(super) fn seek(
        &mut self,
        session: &SessionId,
        conn: ConnId,
        avoid: Option<HostId>,
        pause: bool,
    ) {
        let search = self.searches.entry(session.clone()).or_default();
        search.seekers.insert(conn);
        search.avoid = avoid.or_else(|| search.avoid.take());
        if search.stage != Stage::New {
            return;
        }
        if pause {
            self.pause(session);
        } else {
            self.locate(session);
        }
    }

    fn pause(&mut self, session: &SessionId) {
        let search = self.searches.get_mut(session).expect("the caller found it");
        search.stage = Stage::Pausing;
        let due = self.now.plus(self.config.limits.retry_ms);
        self.timers.set(due, Timer::Seek(session.clone()));
    }

    fn locate(&mut self, session: &SessionId) {
        let search = self.searches.get_mut(session).expect("the caller found it");
        search.stage = Stage::Asked;
        let (session, avoid) = (session.clone(), search.avoid.clone());
        self.outputs.push_back(GatewayOutput::Locate { session, avoid });
    }

    pub(super) fn seek_again(&mut self, session: &SessionId) {
        let Some(search) = self.searches.get_mut(session) else { return };
        if search.stage != Stage::Pausing {
            return;
        }
        let uses =
            |it: &ConnId| self.clients.get(it).is_some_and(|it| it.sessions.contains_key(session));
        search.seekers.retain(uses);
        if search.seekers.is_empty() {
            self.searches.remove(session);
        } else {
            self.locate(session);
        }
    }

    pub(super) fn on_located(&mut self, session: &SessionId, owner: Result<HostId, Fault>) {
        let Some(search) = self.searches.get_mut(session) else { return };
        if search.stage != Stage::Asked {
            return;
        }
        match owner {
            Ok(host) => {
                let search = self.searches.remove(session).expect("found above");
                for conn in search.seekers {
                    self.bind(conn, session, &host);
                }
            }
            Err(fault @ Fault::SessionNotFound { .. }) => {
                let search = self.searches.remove(session).expect("found above");
                for conn in search.seekers {
                    self.forget(conn, session, &fault);
                }
            }
            Err(fault) => {
                search.why = Some(fault.clone());
                let seekers = search.seekers.clone();
                self.pause(session);
                if let Fault::NoHost { why } = fault {
                    for conn in seekers {
                        self.on_absent(conn, session, &why);
                    }
                }
            }
        }
    }

    /// What those are told who have waited too long.
    pub(super) fn lost_fault(&self, session: &SessionId) -> Fault {
        let why = self.searches.get(session).and_then(|it| it.why.as_ref());
        let why = why.map_or_else(|| "none has taken it over yet".to_owned(), Fault::to_string);
        let why = format!(
            "session `{session}` has no host: {why}; it is kept: ask again when its host is there, or start \
             one with the name of that host; until then its log can be read"
        );
        Fault::HostLost { why }
    }
}
