//! Finds the owner of a session. One search per session serves all clients that wait for it.

use super::{
    config::HostId,
    context::{GatewayContext, GatewayTimer},
    output::GatewayOutput,
};
use jackfield_hub::{ConnId, SessionId};
use jackfield_protocol::Fault;
use std::collections::{BTreeMap, BTreeSet};

/// Sessions whose owner is being searched.
#[derive(Debug, Default)]
pub(super) struct OwnerSearches {
    by_session: BTreeMap<SessionId, SessionSearch>,
}

/// A search for the owner of a session.
#[derive(Debug, Default)]
struct SessionSearch {
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

/// When a new search begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SearchStart {
    Immediate,
    /// After the delay of a retry, since the last owner is likely to be found again.
    Delayed,
}

/// What the clients that wait for a session learn from a completed lookup.
#[derive(Debug)]
pub(super) enum SearchResult {
    Found(HostId),
    /// The session does not exist.
    Missing(Fault),
    /// No host may own the session at this moment. The search goes on.
    NoEligibleHost(String),
}

impl OwnerSearches {
    pub(super) fn len(&self) -> usize {
        self.by_session.len()
    }

    /// Searches the owner of a session for a client.
    pub(super) fn start_search(
        &mut self,
        cx: &mut GatewayContext,
        session: &SessionId,
        conn: ConnId,
        avoid: Option<HostId>,
        start: SearchStart,
    ) {
        let search = self.by_session.entry(session.clone()).or_default();
        search.waiting_clients.insert(conn);
        search.avoid = avoid.or_else(|| search.avoid.take());
        if search.stage != SearchStage::New {
            return;
        }
        match start {
            SearchStart::Immediate => search.request_location(cx, session),
            SearchStart::Delayed => search.schedule_retry(cx, session),
        }
    }

    /// Repeats a search, unless none of its clients uses the session any more.
    pub(super) fn retry_search(
        &mut self,
        cx: &mut GatewayContext,
        session: &SessionId,
        uses_session: impl Fn(ConnId) -> bool,
    ) {
        let Some(search) = self.by_session.get_mut(session) else { return };
        if search.stage != SearchStage::Pausing {
            return;
        }
        search.waiting_clients.retain(|it| uses_session(*it));
        if search.waiting_clients.is_empty() {
            self.by_session.remove(session);
        } else {
            search.request_location(cx, session);
        }
    }

    /// Applies the result of a lookup. Returns what to report to which clients.
    pub(super) fn on_session_located(
        &mut self,
        cx: &mut GatewayContext,
        session: &SessionId,
        owner: Result<HostId, Fault>,
    ) -> Option<(SearchResult, BTreeSet<ConnId>)> {
        let search = self.by_session.get_mut(session)?;
        if search.stage != SearchStage::Requested {
            return None;
        }
        let result = match owner {
            Ok(host) => SearchResult::Found(host),
            Err(fault @ Fault::SessionNotFound { .. }) => SearchResult::Missing(fault),
            Err(fault) => {
                search.last_fault = Some(fault.clone());
                search.schedule_retry(cx, session);
                let Fault::NoHost { why } = fault else { return None };
                return Some((SearchResult::NoEligibleHost(why), search.waiting_clients.clone()));
            }
        };
        let search = self.by_session.remove(session)?;
        Some((result, search.waiting_clients))
    }

    /// The error for messages that waited too long.
    pub(super) fn no_owner_fault(&self, session: &SessionId) -> Fault {
        let reason = self.by_session.get(session).and_then(|it| it.last_fault.as_ref());
        let reason =
            reason.map_or_else(|| "no host has adopted it yet".to_owned(), Fault::to_string);
        let why = format!(
            "session `{session}` has no host: {reason}; the session is not lost: try again when its host \
             is back, or start a host with the same name; until then its log can be read"
        );
        Fault::HostLost { why }
    }
}

impl SessionSearch {
    fn schedule_retry(&mut self, cx: &mut GatewayContext, session: &SessionId) {
        self.stage = SearchStage::Pausing;
        let due = cx.now().plus(cx.limits().retry_ms);
        cx.set_timer(due, GatewayTimer::RetrySearch(session.clone()));
    }

    fn request_location(&mut self, cx: &mut GatewayContext, session: &SessionId) {
        self.stage = SearchStage::Requested;
        let (session, avoid) = (session.clone(), self.avoid.clone());
        cx.push_output(GatewayOutput::LocateSession { session, avoid });
    }
}
