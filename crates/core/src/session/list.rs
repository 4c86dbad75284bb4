//! `session/list`: every session of the hub, newest first, in pages.

use super::Session;
use crate::{ConnId, Hub, SessionId};
pub use jackfield_wire::rfc3339;
use jackfield_wire::{Fault, Frame};
use serde_json::{Value, json};

impl Hub {
    pub(crate) fn on_list(&mut self, conn: ConnId, id: &str, frame: &Frame) -> Result<(), Fault> {
        let params: Value =
            serde_json::from_str(frame.params().unwrap_or("{}")).unwrap_or_default();
        let cwd = params.get("cwd").and_then(Value::as_str);
        let after = match params.get("cursor").and_then(Value::as_str) {
            Some(cursor) => Some(Place::parse(cursor).ok_or_else(|| Fault::InvalidParams {
                why: "`cursor` is none of ours: leave it out to start over".into(),
            })?),
            None => None,
        };
        let mut rows: Vec<_> = self.sessions_of(conn).collect();
        rows.retain(|(_, it)| cwd.is_none_or(|cwd| it.state.cwd == cwd));
        rows.sort_by_key(|row| Place::of(*row));
        rows.retain(|row| after.as_ref().is_none_or(|after| *after < Place::of(*row)));
        let page = self.config.limits.list_page;
        let more = page < rows.len();
        rows.truncate(page);
        let mut result =
            json!({ "sessions": rows.iter().map(|row| self.info(*row)).collect::<Vec<_>>() });
        if more && let Some(last) = rows.last() {
            result["nextCursor"] = json!(Place::of(*last).to_string());
        }
        self.answer(conn, id, Ok(&result.to_string()));
        Ok(())
    }

    fn info(&self, (id, session): (&SessionId, &Session)) -> Value {
        let state = &session.state;
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

/// A session's place in the list: the latest first, then by name.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Place(std::cmp::Reverse<u64>, String);

impl Place {
    fn of((id, session): (&SessionId, &Session)) -> Place {
        Place(std::cmp::Reverse(session.state.updated_at), id.to_string())
    }

    fn parse(text: &str) -> Option<Place> {
        let (at, id) = text.split_once('.')?;
        Some(Place(std::cmp::Reverse(u64::from_str_radix(at, 16).ok()?), id.to_owned()))
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:x}.{}", self.0.0, self.1)
    }
}

#[cfg(test)]
mod tests {
    use super::Place;

    #[test]
    fn a_cursor_survives_the_trip() {
        let place = Place(std::cmp::Reverse(17), "s-abc".into());
        assert!(Place::parse(&place.to_string()).is_some_and(|it| it == place));
        assert!(Place::parse("nonsense").is_none());
    }
}
