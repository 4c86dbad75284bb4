//! What every host is asked, and the list of all sessions: one answer made of many.

use super::{
    Gateway, GatewayOutput, HostConnectionId, HostId, ListedSession, SessionPage, Timer,
    client::To, host_connection::Call,
};
use jackfield_hub::{ConnId, SessionId, rfc3339};
use jackfield_protocol::{Fault, Frame, acp::Method};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug)]
pub(super) struct Merge {
    pub(super) conn: ConnId,
    id: Box<str>,
    what: MergedRequest,
    /// Hosts that have not answered.
    waits: BTreeSet<HostConnectionId>,
    told: BTreeMap<HostId, Value>,
    /// Hosts that will not answer.
    missing: BTreeSet<HostId>,
    /// What the fleet knows of all sessions, if that is wanted.
    page: Option<Result<SessionPage, Fault>>,
}

/// A request that all hosts answer together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MergedRequest {
    /// `session/list`: no host is asked.
    List,
    Sessions,
    Asks,
    /// `_jackfield/find_key`: which session knows a key.
    Key,
    Status,
}

impl MergedRequest {
    pub(super) fn from_method(method: Method) -> Option<MergedRequest> {
        match method {
            Method::SessionList => Some(MergedRequest::List),
            Method::ControlSessions => Some(MergedRequest::Sessions),
            Method::ControlAsks => Some(MergedRequest::Asks),
            Method::ControlFindKey => Some(MergedRequest::Key),
            Method::ControlStatus => Some(MergedRequest::Status),
            _ => None,
        }
    }

    fn wants_page(self) -> bool {
        matches!(self, MergedRequest::List | MergedRequest::Sessions)
    }
}

impl Gateway {
    pub(super) fn ask_all(&mut self, conn: ConnId, frame: &Frame, what: MergedRequest) {
        self.begin(conn, frame.clone(), To::All);
        let id = frame.id().expect("a request has an id").into();
        let token = self.next_id();
        let (waits, told, missing) = <_>::default();
        self.merges.insert(token, Merge { conn, id, what, waits, told, missing, page: None });
        if what != MergedRequest::List {
            let hosts: Vec<HostId> = self.hosts.keys().cloned().collect();
            for host in hosts {
                let host_conn = self.host_conn_to(conn, &host);
                let text = self.call(host_conn, Call::Merge(token), frame);
                self.merges.get_mut(&token).expect("just made").waits.insert(host_conn);
                self.send_to_host(host_conn, text);
            }
        }
        if what.wants_page() {
            let params = frame.params().and_then(|it| serde_json::from_str::<Value>(it).ok());
            let member = |name: &str| {
                let value = params.as_ref().filter(|_| what == MergedRequest::List)?.get(name)?;
                value.as_str().map(str::to_owned)
            };
            let (cursor, cwd) = (member("cursor"), member("cwd"));
            let tenant = self.tenant_name(conn).map(Into::into);
            self.outputs.push_back(GatewayOutput::List { token, cursor, cwd, tenant });
        }
        self.timers.set(self.now.plus(self.config.limits.merge_ms), Timer::Merge(token));
        self.finish_merge(token);
    }

    pub(super) fn on_merged(&mut self, token: u64, host_conn: HostConnectionId, answer: &Frame) {
        let host = self.host_conns[&host_conn].host.clone();
        let Some(merge) = self.merges.get_mut(&token) else { return };
        merge.waits.remove(&host_conn);
        match answer.result().and_then(|it| serde_json::from_str(it).ok()) {
            Some(result) => _ = merge.told.insert(host, result),
            None => _ = merge.missing.insert(host),
        }
        self.finish_merge(token);
    }

    /// The host connection by which a host was asked is lost.
    pub(super) fn miss(&mut self, token: u64, host_conn: HostConnectionId, host: &HostId) {
        let Some(merge) = self.merges.get_mut(&token) else { return };
        merge.waits.remove(&host_conn);
        merge.missing.insert(host.clone());
        self.finish_merge(token);
    }

    pub(super) fn on_listed(&mut self, token: u64, page: Result<SessionPage, Fault>) {
        let Some(conn) = self.merges.get(&token).map(|it| it.conn) else { return };
        let page = page.map(|it| self.known_of(conn, it));
        let merge = self.merges.get_mut(&token).expect("found above");
        merge.page = Some(page);
        self.finish_merge(token);
    }

    pub(super) fn on_merge_due(&mut self, token: u64) {
        let Some(merge) = self.merges.get_mut(&token) else { return };
        for host_conn in std::mem::take(&mut merge.waits) {
            if let Some(host_conn) = self.host_conns.get(&host_conn) {
                merge.missing.insert(host_conn.host.clone());
            }
        }
        if merge.page.is_none() && merge.what.wants_page() {
            let why = "the list of sessions did not come in time; ask again".to_owned();
            merge.page = Some(Err(Fault::Internal { why }));
        }
        self.finish_merge(token);
    }

    fn finish_merge(&mut self, token: u64) {
        let merge = &self.merges[&token];
        if !merge.waits.is_empty() || (merge.what.wants_page() && merge.page.is_none()) {
            return;
        }
        let merge = self.merges.remove(&token).expect("found above");
        let (conn, id) = (merge.conn, merge.id.clone());
        let result = match merge.what {
            MergedRequest::List => match merge.page.expect("it came") {
                Ok(page) => list(&page),
                Err(fault) => return self.fail(conn, &id, &fault),
            },
            MergedRequest::Sessions => sessions(merge),
            MergedRequest::Asks => asks(merge),
            MergedRequest::Key => match key(merge) {
                Ok(found) => found,
                Err(fault) => return self.fail(conn, &id, &fault),
            },
            MergedRequest::Status => status(merge, self.fellows(conn)),
        };
        self.finish(conn, &Frame::result_for(&id, &result.to_string()), None);
    }
}

/// The answer to `session/list`, as a hub would give it, with the owner of each.
fn list(page: &SessionPage) -> Value {
    let info = |it: &ListedSession| {
        let ours = json!({ "agent": &*it.agent, "state": it.state, "host": it.host.as_deref() });
        let mut info = json!({
            "sessionId": &*it.session,
            "cwd": it.cwd,
            "updatedAt": rfc3339(it.updated_at.0),
            "_meta": { "jackfield": ours },
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

/// Every host's own rows, and what the fleet knows of sessions that none of them has.
fn sessions(merge: Merge) -> Value {
    let mut missing = merge.missing;
    let mut rows = rows_of(merge.told, "sessions", &mut missing);
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
    let mut result = json!({ "sessions": rows, "missing": shown(&missing) });
    if page.next.is_some() {
        result["more"] = json!(true);
    }
    result
}

fn asks(merge: Merge) -> Value {
    let mut missing = merge.missing;
    let rows = rows_of(merge.told, "asks", &mut missing);
    json!({ "asks": rows, "missing": shown(&missing) })
}

/// The session that knows a key; one with the prompt comes first, if a lost host left an empty one. If no host
/// knows the key, every host must have said so.
fn key(merge: Merge) -> Result<Value, Fault> {
    let mut found = None;
    for answer in merge.told.into_values().filter(|it| it["sessionId"].is_string()) {
        if found.is_none() || answer["seq"].is_u64() {
            found = Some(answer);
        }
    }
    match found {
        Some(found) => Ok(found),
        None if merge.missing.is_empty() => Ok(json!({})),
        None => {
            let hosts = shown(&merge.missing).join("`, `");
            let why = format!("host `{hosts}` did not say whether it knows this key; ask again");
            Err(Fault::HostLost { why })
        }
    }
}

/// What the hosts have together, and each by itself.
fn status(merge: Merge, clients: usize) -> Value {
    let sum = |name: &str| merge.told.values().filter_map(|it| it[name].as_u64()).sum::<u64>();
    let (sessions, agents) = (sum("sessions"), sum("agents"));
    let hosts: Vec<Value> =
        merge.told.into_iter().map(|(host, row)| with_host(row, &host)).collect();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "sessions": sessions,
        "agents": agents,
        "clients": clients,
        "stopping": false,
        "hosts": hosts,
        "missing": shown(&merge.missing),
    })
}

fn rows_of(
    told: BTreeMap<HostId, Value>,
    name: &str,
    missing: &mut BTreeSet<HostId>,
) -> Vec<Value> {
    let mut rows = Vec::new();
    for (host, mut result) in told {
        match result.get_mut(name).map(Value::take) {
            Some(Value::Array(of_it)) => {
                rows.extend(of_it.into_iter().map(|it| with_host(it, &host)));
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

fn shown(hosts: &BTreeSet<HostId>) -> Vec<&str> {
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
