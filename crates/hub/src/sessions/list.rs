//! Lists of sessions: `session/list` in pages, `_jackfield/sessions`, `_jackfield/asks` and `_jackfield/status`.
//!
//! A session that is used while a client reads the pages changes its place. Those that changed since the first page
//! are listed behind all others, so each session that was there comes at least once.

use super::Sessions;
use crate::{
    ConnId, Time, Usage,
    parts::HubParts,
    session::Session,
    session_name::{is_known_to, known_to, tenant_of},
};
use jackfield_events::TenantName;
use jackfield_protocol::{Fault, Frame, is_planted};
use serde_json::{Value, json};
use std::{cmp::Reverse, collections::BTreeMap, fmt};

impl Sessions {
    /// The sessions that a client may see: those of its tenant, or all. A session that is being opened is not listed.
    pub(super) fn visible_to(&self, parts: &HubParts, conn: ConnId) -> Vec<&Session> {
        let tenant = parts.clients.tenant_name(conn);
        let tenant = tenant.filter(|_| !is_planted("list-foreign-sessions"));
        let sessions = known_to(tenant, &self.by_id).map(|(_, it)| it);
        sessions.filter(|it| !it.is_opening()).collect()
    }

    pub(crate) fn list_sessions(
        &self,
        parts: &mut HubParts,
        conn: ConnId,
        id: &str,
        frame: &Frame,
    ) -> Result<(), Fault> {
        let params = frame.params_value();
        let cwd = params.get("cwd").and_then(Value::as_str);
        let cursor = match params.get("cursor").and_then(Value::as_str) {
            Some(cursor) => {
                Some(ListCursor::parse(cursor).ok_or_else(|| Fault::InvalidParams {
                    why: "`cursor` is not valid: leave it out to start over".into(),
                })?)
            }
            None => None,
        };
        let mut rows = self.visible_to(parts, conn);
        rows.retain(|it| cwd.is_none_or(|cwd| it.summary().cwd == cwd));
        let latest = || rows.iter().map(|it| it.summary().updated_at).max().unwrap_or_default();
        let listed_at = cursor.as_ref().map_or_else(latest, |it| it.listed_at);
        let mut rows: Vec<_> =
            rows.into_iter().map(|row| (ListPlace::of(row, listed_at), row)).collect();
        rows.retain(|(place, _)| cursor.as_ref().is_none_or(|it| it.after < *place));
        rows.sort_by(|(one, _), (other, _)| one.cmp(other));
        let page = parts.cx.config.limits.list_page;
        let has_more = page < rows.len();
        rows.truncate(page);
        let sessions: Vec<Value> = rows.iter().map(|(_, row)| row.info(parts)).collect();
        let mut result = json!({ "sessions": sessions });
        if has_more && let Some((last, _)) = rows.pop() {
            result["nextCursor"] = json!(ListCursor { listed_at, after: last }.to_string());
        }
        parts.clients.answer_request(&mut parts.cx, conn, id, Ok(&result.to_string()));
        Ok(())
    }

    /// `_jackfield/sessions`: all sessions with everything that `ps` shows, also those that are being opened, and
    /// the agents that start for clients that have no session yet. `sessionId` selects one session, and `limit` the
    /// latest ones: a row costs more than everything else here.
    pub(crate) fn describe_sessions(
        &self,
        parts: &mut HubParts,
        conn: ConnId,
        id: &str,
        frame: &Frame,
    ) {
        let tenant = parts.clients.tenant_name(conn);
        let rows: Vec<Value> =
            self.select_sessions(parts, conn, frame).iter().map(|it| it.row(parts)).collect();
        let starting: Vec<Value> = parts.describe_starting_agents(tenant);
        let mut answer = json!({ "sessions": rows });
        if !starting.is_empty() {
            answer["starting"] = json!(starting);
        }
        if let Some(storage) = self.describe_storage_failure(parts, conn) {
            answer["storage"] = storage;
        }
        parts.clients.answer_request(&mut parts.cx, conn, id, Ok(&answer.to_string()));
    }

    fn select_sessions(&self, parts: &HubParts, conn: ConnId, frame: &Frame) -> Vec<&Session> {
        let tenant = parts.clients.tenant_name(conn);
        if let Some(session) = frame.session_id() {
            let named = self.by_id.get(&*session).filter(|it| is_known_to(tenant, &it.id));
            return named.into_iter().collect();
        }
        let opening = known_to(tenant, &self.by_id).map(|(_, it)| it).filter(|it| it.is_opening());
        let mut sessions: Vec<_> =
            self.visible_to(parts, conn).into_iter().chain(opening).collect();
        let limit = frame.params_value().get("limit").and_then(Value::as_u64);
        if let Some(limit) = limit.and_then(|it| usize::try_from(it).ok()) {
            sessions.sort_by_key(|it| (Reverse(it.listed_updated_at()), &it.id));
            sessions.truncate(limit);
        }
        sessions
    }

    /// `_jackfield/asks`: all open requests to the user that a client may see, the oldest first.
    pub(crate) fn list_user_requests(&self, parts: &mut HubParts, conn: ConnId, id: &str) {
        let mut rows: Vec<(Time, Value)> =
            self.visible_to(parts, conn).iter().flat_map(|it| it.user_request_rows()).collect();
        rows.sort_by_key(|(at, _)| *at);
        let rows: Vec<Value> = rows.into_iter().map(|(_, row)| row).collect();
        let result = json!({ "asks": rows }).to_string();
        parts.clients.answer_request(&mut parts.cx, conn, id, Ok(&result));
    }

    /// `_jackfield/status`.
    pub(crate) fn describe_status(&self, parts: &mut HubParts, conn: ConnId, id: &str) {
        let tenant = parts.clients.tenant_name(conn);
        let is_of_tenant = |of: Option<&str>| tenant.is_none() || of == tenant;
        let agents = parts.agents.processes.values();
        let agents = agents.filter(|it| is_of_tenant(parts.clients.tenant_of_agent(it)));
        let clients = parts.clients.connections.keys();
        let clients = clients.filter(|it| is_of_tenant(parts.clients.tenant_name(**it)));
        let mut status = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "sessions": known_to(tenant, &self.by_id).count(),
            "agents": agents.count(),
            "clients": clients.count(),
            "stopping": parts.cx.is_stopping,
            "storage": self.describe_storage(parts, conn),
        });
        // Tenants may not name configured servers and profiles.
        if tenant.is_none() {
            let config = &parts.cx.config;
            let servers: Vec<&String> = config.mcp.servers.keys().collect();
            let lists = [
                ("mcpServers", json!(servers)),
                ("sandboxProfiles", json!(config.policies.sandbox_profiles)),
            ];
            for (name, list) in lists.into_iter().filter(|(_, it)| *it != json!([])) {
                status[name] = list;
            }
        }
        parts.clients.answer_request(&mut parts.cx, conn, id, Ok(&status.to_string()));
    }

    /// What each tenant uses here.
    pub(crate) fn usage(&self, parts: &HubParts) -> BTreeMap<TenantName, Usage> {
        let mut usage: BTreeMap<TenantName, Usage> = BTreeMap::new();
        let awake = self.by_id.values().filter(|it| it.is_awake());
        for tenant in awake.filter_map(|it| tenant_of(&it.id)) {
            usage.entry(tenant.into()).or_default().sessions += 1;
        }
        let running = parts.agents.processes.values().filter(|it| !it.stopping);
        for tenant in running.filter_map(|it| parts.clients.tenant_of_agent(it)) {
            usage.entry(tenant.into()).or_default().agents += 1;
        }
        usage
    }
}

/// How far a client has read the list.
#[derive(Debug, PartialEq, Eq)]
struct ListCursor {
    /// The latest change of any session when the first page was made.
    listed_at: u64,
    /// The last session of the page before.
    after: ListPlace,
}

/// The position of a session in the list.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ListPlace {
    /// The latest first, then by name.
    Unchanged(Reverse<u64>, String),
    /// Used since the first page: by name, which stays the same when the session is used once more.
    Changed(String),
}

impl ListPlace {
    fn of(session: &Session, listed_at: u64) -> ListPlace {
        let (id, updated_at) = (&session.id, session.summary().updated_at);
        if listed_at < updated_at {
            ListPlace::Changed(id.to_string())
        } else {
            ListPlace::Unchanged(Reverse(updated_at), id.to_string())
        }
    }
}

impl ListCursor {
    fn parse(text: &str) -> Option<ListCursor> {
        let number = |text| u64::from_str_radix(text, 16).ok();
        let (listed_at, place) = text.split_once('.')?;
        let after = match place.split_once('.')? {
            ("", id) => ListPlace::Changed(id.to_owned()),
            (at, id) => ListPlace::Unchanged(Reverse(number(at)?), id.to_owned()),
        };
        Some(ListCursor { listed_at: number(listed_at)?, after })
    }
}

impl fmt::Display for ListCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}.", self.listed_at)?;
        match &self.after {
            ListPlace::Unchanged(at, id) => write!(f, "{:x}.{id}", at.0),
            ListPlace::Changed(id) => write!(f, ".{id}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Hub, Input, Limits, Output, Recovered, Time};
    use jackfield_events::{AgentSuspended, EventBody, SessionSummary};

    #[test]
    fn a_cursor_survives_the_trip() {
        let places = [
            ListPlace::Unchanged(Reverse(17), "acme.s-1".into()),
            ListPlace::Changed("s-1".into()),
        ];
        for after in places {
            let cursor = ListCursor { listed_at: 18, after };
            assert_eq!(ListCursor::parse(&cursor.to_string()), Some(cursor));
        }
        for text in ["nonsense", "1.s-1", "x.1.s-1", "1.x.s-1"] {
            assert_eq!(ListCursor::parse(text), None, "{text}");
        }
    }

    /// Five sessions, of which `s-5` was used last, and a client.
    fn hub() -> Hub {
        let limits = Limits { list_page: 2, ..Limits::default() };
        let recovered = (1..=5).map(|number| Recovered {
            session: format!("s-{number}").into(),
            state: SessionSummary { seq: 1, updated_at: number, ..SessionSummary::default() },
        });
        let mut hub = Hub::new(Config { limits, ..Config::default() }, Time(5), recovered);
        hub.handle(Time(5), Input::ClientOpened { conn: ConnId(1), peer: None });
        hub
    }

    /// The result of the request that the hub has answered.
    fn take_result(hub: &mut Hub) -> Value {
        let answered = std::iter::from_fn(|| hub.poll_output()).find_map(|it| match it {
            Output::ToClient { text, .. } => Some(text),
            _ => None,
        });
        let mut answer: Value = serde_json::from_slice(&answered.unwrap()).unwrap();
        answer["result"].take()
    }

    fn session_ids(result: &Value) -> Vec<String> {
        let rows = result["sessions"].as_array().unwrap().iter();
        rows.map(|it| it["sessionId"].as_str().unwrap().to_owned()).collect()
    }

    /// One page: the sessions and the cursor of the next page.
    fn page(hub: &mut Hub, cursor: Option<&Value>) -> (Vec<String>, Option<Value>) {
        let params = cursor.map_or_else(|| json!({}), |it| json!({ "cursor": it }));
        let frame = Frame::request("1", "session/list", &params.to_string());
        while hub.poll_output().is_some() {}
        hub.sessions.list_sessions(&mut hub.parts, ConnId(1), "1", &frame).unwrap();
        let result = take_result(hub);
        (session_ids(&result), result.get("nextCursor").cloned())
    }

    #[test]
    fn one_session_or_the_latest_ones_are_described_without_the_others() {
        let mut hub = hub();
        let mut described = |params: Value| {
            let frame = Frame::request("1", "_jackfield/sessions", &params.to_string());
            while hub.poll_output().is_some() {}
            hub.sessions.describe_sessions(&mut hub.parts, ConnId(1), "1", &frame);
            session_ids(&take_result(&mut hub))
        };
        assert_eq!(described(json!({ "sessionId": "s-2" })), ["s-2"]);
        assert_eq!(described(json!({ "sessionId": "s-9" })), [""; 0]);
        assert_eq!(described(json!({ "limit": 2 })), ["s-5", "s-4"]);
        assert_eq!(described(json!({})).len(), 5);
    }

    fn prompt(hub: &mut Hub, session: &str, at: u64) {
        let body = EventBody::Slept(AgentSuspended { why: "it was used".into() });
        let (sessions, cx) = (&mut hub.sessions, &mut hub.parts.cx);
        sessions.with(&session.into(), |it| {
            it.append_event_at(cx, Time(at), body);
        });
    }

    #[test]
    fn a_session_that_is_used_between_two_pages_is_listed_behind_the_others() {
        let mut hub = hub();
        let (first, next) = page(&mut hub, None);
        assert_eq!(first, ["s-5", "s-4"]);
        prompt(&mut hub, "s-1", 6);
        let (second, next) = page(&mut hub, next.as_ref());
        assert_eq!(second, ["s-3", "s-2"]);
        prompt(&mut hub, "s-1", 7);
        assert_eq!(page(&mut hub, next.as_ref()), (vec!["s-1".to_owned()], None));
    }

    #[test]
    fn many_that_are_used_meanwhile_come_in_pages_each_once() {
        let mut hub = hub();
        let (_, next) = page(&mut hub, None);
        for session in ["s-3", "s-1", "s-2", "s-4"] {
            prompt(&mut hub, session, 6);
        }
        let (second, next) = page(&mut hub, next.as_ref());
        assert_eq!(second, ["s-1", "s-2"]);
        prompt(&mut hub, "s-1", 7);
        // `s-4` was listed before it was used: it is listed once more.
        let rest = vec!["s-3".to_owned(), "s-4".to_owned()];
        assert_eq!(page(&mut hub, next.as_ref()), (rest, None));
    }
}
