//! Requests that all hosts answer, and the list of all sessions: many responses become one.

use super::{
    Gateway, GatewayOutput, HostConnectionId, HostId, ListedSession, SessionPage, Timer,
    client::RequestTarget, host_connection::SentRequest,
};
use jackfield_hub::{ConnId, SessionId, rfc3339};
use jackfield_protocol::{Fault, Frame, acp::Method};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// A request to all hosts whose response is not complete.
#[derive(Debug)]
pub(super) struct PendingMerge {
    pub(super) conn: ConnId,
    id: Box<str>,
    kind: MergedRequest,
    /// Connections whose hosts have not answered.
    awaited: BTreeSet<HostConnectionId>,
    responses: BTreeMap<HostId, Value>,
    /// Hosts that will not answer.
    missing: BTreeSet<HostId>,
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
}

impl MergedRequest {
    pub(super) fn from_method(method: Method) -> Option<MergedRequest> {
        match method {
            Method::SessionList => Some(MergedRequest::List),
            Method::ControlSessions => Some(MergedRequest::Sessions),
            Method::ControlAsks => Some(MergedRequest::Asks),
            Method::ControlFindKey => Some(MergedRequest::FindKey),
            Method::ControlStatus => Some(MergedRequest::Status),
            _ => None,
        }
    }

    fn wants_page(self) -> bool {
        matches!(self, MergedRequest::List | MergedRequest::Sessions)
    }
}

impl Gateway {
    pub(super) fn send_to_all_hosts(&mut self, conn: ConnId, frame: &Frame, kind: MergedRequest) {
        self.register_request(conn, frame.clone(), RequestTarget::AllHosts);
        let id = frame.id().expect("a request has an id").into();
        let token = self.next_id();
        let (awaited, responses, missing) = <_>::default();
        self.merges.insert(
            token,
            PendingMerge { conn, id, kind, awaited, responses, missing, page: None },
        );
        if kind != MergedRequest::List {
            let hosts: Vec<HostId> = self.hosts.keys().cloned().collect();
            for host in hosts {
                let host_conn = self.host_conn_to(conn, &host);
                let text = self.add_sent_request(host_conn, SentRequest::Merge(token), frame);
                self.merges.get_mut(&token).expect("just made").awaited.insert(host_conn);
                self.send_to_host(host_conn, text);
            }
        }
        if kind.wants_page() {
            let params = frame.params().and_then(|it| serde_json::from_str::<Value>(it).ok());
            let member = |name: &str| {
                let value = params.as_ref().filter(|_| kind == MergedRequest::List)?.get(name)?;
                value.as_str().map(str::to_owned)
            };
            let (cursor, cwd) = (member("cursor"), member("cwd"));
            let tenant = self.tenant_name(conn).map(Into::into);
            self.outputs.push_back(GatewayOutput::ListSessions { token, cursor, cwd, tenant });
        }
        self.timers.set(self.now.plus(self.config.limits.merge_ms), Timer::Merge(token));
        self.complete_merge(token);
    }

    pub(super) fn on_merge_response(
        &mut self,
        token: u64,
        host_conn: HostConnectionId,
        answer: &Frame,
    ) {
        let host = self.host_conns[&host_conn].host.clone();
        let Some(merge) = self.merges.get_mut(&token) else { return };
        merge.awaited.remove(&host_conn);
        match answer.result().and_then(|it| serde_json::from_str(it).ok()) {
            Some(result) => _ = merge.responses.insert(host, result),
            None => _ = merge.missing.insert(host),
        }
        self.complete_merge(token);
    }

    /// The connection to a host that has not answered is lost.
    pub(super) fn on_merge_host_lost(
        &mut self,
        token: u64,
        host_conn: HostConnectionId,
        host: &HostId,
    ) {
        let Some(merge) = self.merges.get_mut(&token) else { return };
        merge.awaited.remove(&host_conn);
        merge.missing.insert(host.clone());
        self.complete_merge(token);
    }

    pub(super) fn on_sessions_listed(&mut self, token: u64, page: Result<SessionPage, Fault>) {
        let Some(conn) = self.merges.get(&token).map(|it| it.conn) else { return };
        let page = page.map(|it| self.visible_sessions(conn, it));
        let merge = self.merges.get_mut(&token).expect("found above");
        merge.page = Some(page);
        self.complete_merge(token);
    }

    pub(super) fn expire_merge(&mut self, token: u64) {
        let Some(merge) = self.merges.get_mut(&token) else { return };
        for host_conn in std::mem::take(&mut merge.awaited) {
            if let Some(host_conn) = self.host_conns.get(&host_conn) {
                merge.missing.insert(host_conn.host.clone());
            }
        }
        if merge.page.is_none() && merge.kind.wants_page() {
            let why = "the session list timed out; try again".to_owned();
            merge.page = Some(Err(Fault::Internal { why }));
        }
        self.complete_merge(token);
    }

    fn complete_merge(&mut self, token: u64) {
        let merge = &self.merges[&token];
        if !merge.awaited.is_empty() || (merge.kind.wants_page() && merge.page.is_none()) {
            return;
        }
        let merge = self.merges.remove(&token).expect("found above");
        let (conn, id) = (merge.conn, merge.id.clone());
        let result = match merge.kind {
            MergedRequest::List => match merge.page.expect("it came") {
                Ok(page) => list_result(&page),
                Err(fault) => return self.send_error(conn, &id, &fault),
            },
            MergedRequest::Sessions => sessions_result(merge),
            MergedRequest::Asks => asks_result(merge),
            MergedRequest::FindKey => match key_result(merge) {
                Ok(found) => found,
                Err(fault) => return self.send_error(conn, &id, &fault),
            },
            MergedRequest::Status => status_result(merge, self.count_visible_clients(conn)),
        };
        self.send_response(conn, &Frame::result_for(&id, &result.to_string()), None);
    }
}

/// The result of `session/list`, as a hub would send it, with the owner of each session.
fn list_result(page: &SessionPage) -> Value {
    let info = |it: &ListedSession| {
        let meta = json!({ "agent": &*it.agent, "state": it.state, "host": it.host.as_deref() });
        let mut info = json!({
            "sessionId": &*it.session,
            "cwd": it.cwd,
            "updatedAt": rfc3339(it.updated_at.0),
            "_meta": { "jackfield": meta },
        });
        if let Some(title) = &it.title {
            info["title"] = json!(title);
        }
        info
    };
    let mut result = json!({ "sessions": page.sessions.iter().map(info).collect::<Vec<_>>() });
    if let Some(next) = &page.next {
        result["nextCursor"] = json!(next);
    }
    result
}

/// The rows of every host, and the sessions of the fleet that are on none of them.
fn sessions_result(merge: PendingMerge) -> Value {
    let mut missing = merge.missing;
    let mut rows = take_rows(merge.responses, "sessions", &mut missing);
    let named: BTreeSet<SessionId> =
        rows.iter().filter_map(|it| it["sessionId"].as_str()).map(SessionId::from).collect();
    let row = |it: &ListedSession| {
        json!({
            "sessionId": &*it.session,
            "agent": &*it.agent,
            "cwd": it.cwd,
            "title": it.title,
            "state": it.state,
            "updatedAt": rfc3339(it.updated_at.0),
            "host": it.host.as_deref(),
        })
    };
    let page = merge.page.and_then(Result::ok).unwrap_or_default();
    rows.extend(page.sessions.iter().filter(|it| !named.contains(&it.session)).map(row));
    let mut result = json!({ "sessions": rows, "missing": host_names(&missing) });
    if page.next.is_some() {
        result["more"] = json!(true);
    }
    result
}

fn asks_result(merge: PendingMerge) -> Value {
    let mut missing = merge.missing;
    let rows = take_rows(merge.responses, "asks", &mut missing);
    json!({ "asks": rows, "missing": host_names(&missing) })
}

/// The session that has a key. One with the prompt is preferred, since a lost host may have left an
/// empty one. If no host has the key, every host must have answered.
fn key_result(merge: PendingMerge) -> Result<Value, Fault> {
    let mut found = None;
    for answer in merge.responses.into_values().filter(|it| it["sessionId"].is_string()) {
        if found.is_none() || answer["seq"].is_u64() {
            found = Some(answer);
        }
    }
    match found {
        Some(found) => Ok(found),
        None if merge.missing.is_empty() => Ok(json!({})),
        None => {
            let hosts = host_names(&merge.missing).join("`, `");
            let why = format!("no answer about this key from host `{hosts}`; try again");
            Err(Fault::HostLost { why })
        }
    }
}

/// The totals, and the status of each host.
fn status_result(merge: PendingMerge, clients: usize) -> Value {
    let sum = |name: &str| merge.responses.values().filter_map(|it| it[name].as_u64()).sum::<u64>();
    let (sessions, agents) = (sum("sessions"), sum("agents"));
    let hosts: Vec<Value> =
        merge.responses.into_iter().map(|(host, row)| with_host(row, &host)).collect();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "sessions": sessions,
        "agents": agents,
        "clients": clients,
        "stopping": false,
        "hosts": hosts,
        "missing": host_names(&merge.missing),
    })
}

fn take_rows(
    responses: BTreeMap<HostId, Value>,
    name: &str,
    missing: &mut BTreeSet<HostId>,
) -> Vec<Value> {
    let mut rows = Vec::new();
    for (host, mut result) in responses {
        match result.get_mut(name).map(Value::take) {
            Some(Value::Array(host_rows)) => {
                rows.extend(host_rows.into_iter().map(|it| with_host(it, &host)));
            }
            _ => _ = missing.insert(host),
        }
    }
    rows
}

fn with_host(mut row: Value, host: &HostId) -> Value {
    if let Some(row) = row.as_object_mut() {
        row.insert("host".to_owned(), json!(&**host));
    }
    row
}

fn host_names(hosts: &BTreeSet<HostId>) -> Vec<&str> {
    hosts.iter().map(|it| &**it).collect()
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
