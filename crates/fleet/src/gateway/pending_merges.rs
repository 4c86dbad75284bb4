//! Requests that all hosts answer, and the list of all sessions.

use super::{
    config::HostId,
    host_connection_id::HostConnectionId,
    input::SessionPage,
    merge_results::{
        HostResponses, asks_result, key_result, list_result, sessions_result, status_result,
        watch_result,
    },
};
use jackfield_hub::ConnId;
use jackfield_protocol::{Fault, Frame, acp::Method};
use serde_json::Value;
use std::collections::BTreeMap;

/// Requests to all hosts whose responses are not complete.
#[derive(Debug, Default)]
pub(super) struct PendingMerges {
    by_token: BTreeMap<u64, PendingMerge>,
}

/// A request to all hosts whose response is not complete.
#[derive(Debug)]
pub(super) struct PendingMerge {
    conn: ConnId,
    /// The client's id of the request.
    id: Box<str>,
    kind: MergedRequest,
    /// Connections whose hosts have not answered.
    awaited: BTreeMap<HostConnectionId, HostId>,
    hosts: HostResponses,
    /// The page of all sessions, if the response contains it.
    page: Option<Result<SessionPage, Fault>>,
}

/// A request that all hosts answer together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MergedRequest {
    /// `session/list`: no host is asked.
    List,
    Sessions,
    Asks,
    /// `_jackfield/find_key`: which session has a key.
    FindKey,
    Status,
    /// `_jackfield/watch`: the lists, and changes from then on.
    Watch,
}

impl MergedRequest {
    pub(super) fn from_method(method: Method) -> Option<MergedRequest> {
        match method {
            Method::SessionList => Some(MergedRequest::List),
            Method::ControlSessions => Some(MergedRequest::Sessions),
            Method::ControlAsks => Some(MergedRequest::Asks),
            Method::ControlFindKey => Some(MergedRequest::FindKey),
            Method::ControlStatus => Some(MergedRequest::Status),
            Method::ControlWatch => Some(MergedRequest::Watch),
            _ => None,
        }
    }

    /// Whether the response contains sessions that no host has.
    pub(super) fn wants_page(self) -> bool {
        matches!(self, MergedRequest::List | MergedRequest::Sessions | MergedRequest::Watch)
    }
}

impl PendingMerges {
    pub(super) fn add_merge(&mut self, token: u64, merge: PendingMerge) {
        self.by_token.insert(token, merge);
    }

    pub(super) fn client_of(&self, token: u64) -> Option<ConnId> {
        self.by_token.get(&token).map(|it| it.conn)
    }

    pub(super) fn get_mut(&mut self, token: u64) -> Option<&mut PendingMerge> {
        self.by_token.get_mut(&token)
    }

    /// Removes and returns a merge that has everything it waits for.
    pub(super) fn take_complete(&mut self, token: u64) -> Option<PendingMerge> {
        self.by_token.get(&token).filter(|it| it.is_complete())?;
        self.by_token.remove(&token)
    }

    pub(super) fn remove_client(&mut self, conn: ConnId) {
        self.by_token.retain(|_, it| it.conn != conn);
    }
}

impl PendingMerge {
    pub(super) fn new(conn: ConnId, id: &str, kind: MergedRequest) -> PendingMerge {
        PendingMerge {
            conn,
            id: id.into(),
            kind,
            awaited: BTreeMap::new(),
            hosts: HostResponses::default(),
            page: None,
        }
    }

    pub(super) fn kind(&self) -> MergedRequest {
        self.kind
    }

    /// Waits for the response of a host on this connection.
    pub(super) fn await_host(&mut self, host_conn: HostConnectionId, host: HostId) {
        self.awaited.insert(host_conn, host);
    }

    pub(super) fn on_response(&mut self, host_conn: HostConnectionId, answer: &Frame) {
        if let Some(host) = self.awaited.remove(&host_conn) {
            let result = answer.result().and_then(|it| serde_json::from_str(it).ok());
            self.hosts.add_result(host, result);
        }
    }

    /// The connection to a host that has not answered is lost.
    pub(super) fn on_host_lost(&mut self, host_conn: HostConnectionId) {
        if let Some(host) = self.awaited.remove(&host_conn) {
            self.hosts.add_result(host, None);
        }
    }

    pub(super) fn set_page(&mut self, page: Result<SessionPage, Fault>) {
        self.page = Some(page);
    }

    /// The time to answer is over.
    pub(super) fn stop_waiting(&mut self) {
        for host in std::mem::take(&mut self.awaited).into_values() {
            self.hosts.add_result(host, None);
        }
        if self.page.is_none() && self.kind.wants_page() {
            let why = "the session list timed out; try again".to_owned();
            self.page = Some(Err(Fault::Internal { why }));
        }
    }

    fn is_complete(&self) -> bool {
        self.awaited.is_empty() && (!self.kind.wants_page() || self.page.is_some())
    }

    /// The client's id of the request, and the result. `clients` is the number of connected clients
    /// that the client may see.
    pub(super) fn into_result(self, clients: usize) -> (Box<str>, Result<Value, Fault>) {
        let page = self.page.unwrap_or_else(|| Ok(SessionPage::default()));
        let result = match self.kind {
            MergedRequest::List => page.map(|it| list_result(&it)),
            MergedRequest::Sessions => Ok(sessions_result(self.hosts, &page.unwrap_or_default())),
            MergedRequest::Asks => Ok(asks_result(self.hosts)),
            MergedRequest::FindKey => key_result(self.hosts),
            MergedRequest::Status => Ok(status_result(self.hosts, clients)),
            MergedRequest::Watch => Ok(watch_result(self.hosts, &page.unwrap_or_default())),
        };
        (self.id, result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jackfield_protocol::acp::GatewayRoute;

    #[test]
    fn answers_to_every_method_for_all_hosts_can_be_merged() {
        for method in Method::ALL {
            let is_merged = MergedRequest::from_method(*method).is_some();
            assert_eq!(is_merged, method.row().route == GatewayRoute::AllHosts, "{method:?}");
        }
    }
}
