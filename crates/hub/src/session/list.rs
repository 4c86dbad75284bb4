//! `session/list`: every session of the hub, the latest first, in pages.
//!
//! A session that is used while a client reads the pages changes its place. Those that changed since the first page
//! are listed behind all others, so each session that was there comes at least once.

use super::Session;
use crate::{ConnId, Hub, SessionId};
pub use jackfield_protocol::rfc3339;
use jackfield_protocol::{Fault, Frame};
use serde_json::{Value, json};
use std::{cmp::Reverse, fmt};

impl Hub {
    pub(crate) fn on_list(&mut self, conn: ConnId, id: &str, frame: &Frame) -> Result<(), Fault> {
        let params: Value =
            serde_json::from_str(frame.params().unwrap_or("{}")).unwrap_or_default();
        let cwd = params.get("cwd").and_then(Value::as_str);
        let cursor = match params.get("cursor").and_then(Value::as_str) {
            Some(cursor) => {
                Some(ListCursor::parse(cursor).ok_or_else(|| Fault::InvalidParams {
                    why: "`cursor` is none of ours: leave it out to start over".into(),
                })?)
            }
            None => None,
        };
        let mut rows: Vec<_> = self.sessions_of(conn).collect();
        rows.retain(|(_, it)| cwd.is_none_or(|cwd| it.summary().cwd == cwd));
        let latest =
            || rows.iter().map(|(_, it)| it.summary().updated_at).max().unwrap_or_default();
        let listed_at = cursor.as_ref().map_or_else(latest, |it| it.listed_at);
        let mut rows: Vec<_> =
            rows.into_iter().map(|row| (ListPlace::of(row, listed_at), row)).collect();
        rows.retain(|(place, _)| cursor.as_ref().is_none_or(|it| it.after < *place));
        rows.sort_by(|(one, _), (other, _)| one.cmp(other));
        let page = self.parts.cx.config.limits.list_page;
        let more = page < rows.len();
        rows.truncate(page);
        let sessions: Vec<Value> = rows.iter().map(|(_, row)| self.info(*row)).collect();
        let mut result = json!({ "sessions": sessions });
        if more && let Some((last, _)) = rows.pop() {
            result["nextCursor"] = json!(ListCursor { listed_at, after: last }.to_string());
        }
        self.parts.clients.answer_request(&mut self.parts.cx, conn, id, Ok(&result.to_string()));
        Ok(())
    }

    fn info(&self, (id, session): (&SessionId, &Session)) -> Value {
        let state = &session.summary();
        let shown = self.shown(id, session);
        let mut info = json!({
            "sessionId": &**id,
            "cwd": state.cwd,
            "updatedAt": rfc3339(state.updated_at),
            "_meta": { "jackfield": { "agent": &*state.agent, "state": shown } },
        });
        if let Some(title) = session.title() {
            info["title"] = json!(title);
        }
        info
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
    fn of((id, session): (&SessionId, &Session), listed_at: u64) -> ListPlace {
        let updated_at = session.summary().updated_at;
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
    use crate::{Config, Input, Limits, Output, Recovered, Time};
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

    /// One page: the sessions and the cursor of the next page.
    fn page(hub: &mut Hub, cursor: Option<&Value>) -> (Vec<String>, Option<Value>) {
        let params = cursor.map_or_else(|| json!({}), |it| json!({ "cursor": it }));
        let frame = Frame::request("1", "session/list", &params.to_string());
        while hub.poll_output().is_some() {}
        hub.on_list(ConnId(1), "1", &frame).unwrap();
        let answered = std::iter::from_fn(|| hub.poll_output()).find_map(|it| match it {
            Output::ToClient { text, .. } => Some(text),
            _ => None,
        });
        let answer: Value = serde_json::from_slice(&answered.unwrap()).unwrap();
        let names = answer["result"]["sessions"].as_array().unwrap().iter();
        let names = names.map(|it| it["sessionId"].as_str().unwrap().to_owned()).collect();
        (names, answer["result"].get("nextCursor").cloned())
    }

    fn prompt(hub: &mut Hub, session: &str, at: u64) {
        let body = EventBody::Slept(AgentSuspended { why: "it was used".into() });
        hub.sessions.append_event_at(&mut hub.parts.cx, &session.into(), Time(at), body);
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
