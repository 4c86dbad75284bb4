//! `session/list`: every session of the hub, newest first, in pages.

use super::{Session, listed};
use crate::{ConnId, Hub, SessionId};
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
        let mut rows = listed(&self.sessions);
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

/// Milliseconds since the epoch as `2026-11-15T08:30:00.123Z` (civil-from-days).
pub fn rfc3339(ms: u64) -> String {
    let (days, rest) = (ms / 86_400_000, ms % 86_400_000);
    let z = days + 719_468;
    let (era, day_of_era) = (z / 146_097, z % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute) = (rest / 3_600_000, rest / 60_000 % 60);
    let (second, milli) = (rest / 1_000 % 60, rest % 1_000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}

#[cfg(test)]
mod tests {
    use super::{Place, rfc3339};

    #[test]
    fn times_are_shown_as_editors_expect_them() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(rfc3339(951_782_400_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(rfc3339(1_794_731_400_123), "2026-11-15T08:30:00.123Z");
    }

    #[test]
    fn a_cursor_survives_the_trip() {
        let place = Place(std::cmp::Reverse(17), "s-abc".into());
        assert!(Place::parse(&place.to_string()).is_some_and(|it| it == place));
        assert!(Place::parse("nonsense").is_none());
    }
}
