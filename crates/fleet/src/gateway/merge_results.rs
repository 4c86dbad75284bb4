//! The results of requests that all hosts answer: many responses become one.

use super::{
    config::HostId,
    input::{ListedSession, SessionPage},
};
use jackfield_hub::{SessionId, rfc3339};
use jackfield_protocol::Fault;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The responses of hosts to one request.
#[derive(Debug, Clone, Default)]
pub(super) struct HostResponses {
    responses: BTreeMap<HostId, Value>,
    /// Hosts that did not answer.
    missing: BTreeSet<HostId>,
}

impl HostResponses {
    /// Adds the result of a host, if it has one.
    pub(super) fn add_result(&mut self, host: HostId, result: Option<Value>) {
        match result {
            Some(result) => _ = self.responses.insert(host, result),
            None => _ = self.missing.insert(host),
        }
    }
}

/// The result of `session/list`, as a hub would send it, with the owner of each session.
pub(super) fn list_result(page: &SessionPage) -> Value {
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
pub(super) fn sessions_result(hosts: HostResponses, page: &SessionPage) -> Value {
    let mut missing = hosts.missing;
    let mut rows = take_rows(hosts.responses, "sessions", &mut missing);
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
    rows.extend(page.sessions.iter().filter(|it| !named.contains(&it.session)).map(row));
    let mut result = json!({ "sessions": rows, "missing": host_names(&missing) });
    if page.next.is_some() {
        result["more"] = json!(true);
    }
    result
}

pub(super) fn asks_result(hosts: HostResponses) -> Value {
    let mut missing = hosts.missing;
    let rows = take_rows(hosts.responses, "asks", &mut missing);
    json!({ "asks": rows, "missing": host_names(&missing) })
}

/// The sessions and the open requests.
pub(super) fn watch_result(hosts: HostResponses, page: &SessionPage) -> Value {
    let mut requests = asks_result(hosts.clone());
    let mut result = sessions_result(hosts, page);
    result["asks"] = requests["asks"].take();
    result
}

/// The session that has a key. One with the prompt is preferred, since a lost host may have left an
/// empty one. If no host has the key, every host must have answered.
pub(super) fn key_result(hosts: HostResponses) -> Result<Value, Fault> {
    let mut found = None;
    for answer in hosts.responses.into_values().filter(|it| it["sessionId"].is_string()) {
        if found.is_none() || answer["seq"].is_u64() {
            found = Some(answer);
        }
    }
    match found {
        Some(found) => Ok(found),
        None if hosts.missing.is_empty() => Ok(json!({})),
        None => {
            let names = host_names(&hosts.missing).join("`, `");
            let why = format!("no answer about this key from host `{names}`; try again");
            Err(Fault::HostLost { why })
        }
    }
}

/// The totals, and the status of each host.
pub(super) fn status_result(hosts: HostResponses, clients: usize) -> Value {
    let sum = |name: &str| hosts.responses.values().filter_map(|it| it[name].as_u64()).sum::<u64>();
    let (sessions, agents) = (sum("sessions"), sum("agents"));
    let rows: Vec<Value> =
        hosts.responses.into_iter().map(|(host, row)| with_host(row, &host)).collect();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "sessions": sessions,
        "agents": agents,
        "clients": clients,
        "stopping": false,
        "hosts": rows,
        "missing": host_names(&hosts.missing),
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
