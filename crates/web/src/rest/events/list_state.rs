//! The lists of sessions and open requests as all streams of a tenant share them: the current rows, and the last
//! changes with their ids.

use super::ListEvent;
use crate::rest::{asks::OpenAsk, sessions::SessionResource};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt,
    sync::Arc,
};

/// Changes that are kept for clients that reconnect, and their bytes: some minutes of a busy daemon.
const KEPT_CHANGES_MAX: usize = 4096;
const KEPT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The id of a change: the watch that numbered it, and its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ChangeId {
    pub(super) watch: Arc<str>,
    pub(super) number: u64,
}

impl ChangeId {
    /// `None` if the text is not an id of any watch.
    pub(super) fn parse(text: &str) -> Option<ChangeId> {
        let (watch, number) = text.rsplit_once('.')?;
        Some(ChangeId { watch: watch.into(), number: number.parse().ok()? })
    }
}

impl fmt::Display for ChangeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.watch, self.number)
    }
}

#[derive(Debug)]
pub(super) struct ListState {
    /// The name of this watch in ids.
    watch: Arc<str>,
    sessions: BTreeMap<String, Arc<ListEvent>>,
    asks: BTreeMap<(String, u64), Arc<ListEvent>>,
    /// The number of the last change.
    last: u64,
    /// The last changes, without gaps.
    changes: VecDeque<Arc<ListEvent>>,
    kept_bytes: usize,
}

impl ListState {
    pub(super) fn new(watch: Arc<str>) -> ListState {
        ListState {
            watch,
            sessions: BTreeMap::new(),
            asks: BTreeMap::new(),
            last: 0,
            changes: VecDeque::new(),
            kept_bytes: 0,
        }
    }

    /// The id of the last change.
    pub(super) fn last_id(&self) -> ChangeId {
        ChangeId { watch: self.watch.clone(), number: self.last }
    }

    /// The changes after an id, each with its id; `None` if they are not known any more.
    pub(super) fn changes_after(&self, id: &ChangeId) -> Option<Vec<(ChangeId, Arc<ListEvent>)>> {
        let first = self.last - self.changes.len() as u64;
        if id.watch != self.watch || !(first..=self.last).contains(&id.number) {
            return None;
        }
        let skipped = usize::try_from(id.number - first).ok()?;
        let numbered = self.changes.iter().zip(first + 1..).skip(skipped);
        let with_id = |(change, number): (&Arc<ListEvent>, u64)| {
            (ChangeId { watch: self.watch.clone(), number }, change.clone())
        };
        Some(numbered.map(with_id).collect())
    }

    /// All rows.
    pub(super) fn rows(&self) -> Vec<Arc<ListEvent>> {
        self.sessions.values().chain(self.asks.values()).cloned().collect()
    }

    /// Applies the answer to `_jackfield/watch`: only what differs is a change.
    pub(super) fn apply_lists(&mut self, lists: &mut Value) {
        let sessions: Vec<SessionResource> = take_rows(lists, "sessions");
        let asks: Vec<OpenAsk> = take_rows(lists, "asks");
        let listed: BTreeSet<&str> = sessions.iter().map(|it| &*it.session_id).collect();
        let is_removed = |it: &&String| !listed.contains(&***it);
        let removed: Vec<String> = self.sessions.keys().filter(is_removed).cloned().collect();
        let open: BTreeSet<(&str, u64)> =
            asks.iter().map(|it| (&*it.session_id, it.number)).collect();
        let is_closed = |(session, ask): &&(String, u64)| !open.contains(&(&**session, *ask));
        let closed: Vec<_> = self.asks.keys().filter(is_closed).cloned().collect();
        for ask in closed {
            let change = ListEvent::closed_ask(&ask.0, ask.1);
            self.close_ask(&ask, change);
        }
        for id in removed {
            self.remove_session(&id);
        }
        self.set_rows(&sessions, &asks);
    }

    /// Applies the parameters of `_jackfield/changes`. As in a second list, the row of a session follows the answers
    /// that changed it, and the deletion of an earlier session with its id.
    pub(super) fn apply_changes(&mut self, changes: &mut Value) {
        for answered in take_rows::<Value>(changes, "answered") {
            let session = answered["sessionId"].as_str().unwrap_or_default().to_owned();
            let ask = answered["ask"].as_u64().unwrap_or_default();
            self.close_ask(&(session, ask), ListEvent::answered(&answered));
        }
        for id in take_rows::<String>(changes, "removed") {
            self.remove_session(&id);
        }
        self.set_rows(&take_rows(changes, "sessions"), &take_rows(changes, "asks"));
    }

    fn set_rows(&mut self, sessions: &[SessionResource], asks: &[OpenAsk]) {
        for row in sessions {
            self.set_session(row);
        }
        for row in asks {
            self.set_ask(row);
        }
    }

    fn set_session(&mut self, row: &SessionResource) {
        let event = Arc::new(ListEvent::session(row));
        let last = self.sessions.insert(row.session_id.clone(), event.clone());
        if last.is_none_or(|it| *it != *event) {
            self.add_change(event);
        }
    }

    fn set_ask(&mut self, row: &OpenAsk) {
        let event = Arc::new(ListEvent::ask(row));
        let last = self.asks.insert((row.session_id.clone(), row.number), event.clone());
        if last.is_none_or(|it| *it != *event) {
            self.add_change(event);
        }
    }

    fn close_ask(&mut self, ask: &(String, u64), change: ListEvent) {
        self.asks.remove(ask);
        self.add_change(Arc::new(change));
    }

    fn remove_session(&mut self, id: &str) {
        self.asks.retain(|(session, _), _| session != id);
        if self.sessions.remove(id).is_some() {
            self.add_change(Arc::new(ListEvent::removed(id)));
        }
    }

    fn add_change(&mut self, change: Arc<ListEvent>) {
        self.last += 1;
        self.kept_bytes += change.data.len();
        self.changes.push_back(change);
        while KEPT_CHANGES_MAX < self.changes.len() || KEPT_BYTES_MAX < self.kept_bytes {
            let Some(oldest) = self.changes.pop_front() else { return };
            self.kept_bytes -= oldest.data.len();
        }
    }
}

/// The rows of a list. A row that has another form is skipped.
fn take_rows<Row: DeserializeOwned>(lists: &mut Value, name: &str) -> Vec<Row> {
    let rows = lists.get_mut(name).map(Value::take);
    let Some(Value::Array(rows)) = rows else { return Vec::new() };
    rows.into_iter().filter_map(|it| serde_json::from_value(it).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn state() -> ListState {
        let mut state = ListState::new("w".into());
        let rows = json!([{ "sessionId": "s-1", "state": "idle" }, { "sessionId": "s-2" }]);
        let asks = json!([{ "sessionId": "s-1", "ask": 1 }]);
        state.apply_lists(&mut json!({ "sessions": rows, "asks": asks }));
        state
    }

    fn changes(state: &ListState, after: u64) -> Option<Vec<(u64, &'static str)>> {
        let changes = state.changes_after(&ChangeId { watch: "w".into(), number: after })?;
        Some(changes.iter().map(|(id, change)| (id.number, change.name)).collect())
    }

    #[test]
    fn only_differences_of_a_second_list_are_changes() {
        let mut state = state();
        assert_eq!(changes(&state, 0).unwrap().len(), 3);
        let rows = json!([{ "sessionId": "s-1", "state": "working" }, { "sessionId": "s-3" }]);
        state.apply_lists(&mut json!({ "sessions": rows, "asks": [] }));
        let expected = [(4, "answered"), (5, "removed"), (6, "session"), (7, "session")];
        assert_eq!(changes(&state, 3).unwrap(), expected);
        assert_eq!(state.rows().len(), 2);
        let rows = json!([{ "sessionId": "s-1", "state": "working" }, { "sessionId": "s-3" }]);
        state.apply_lists(&mut json!({ "sessions": rows, "asks": [] }));
        assert_eq!(changes(&state, 7).unwrap(), []);
    }

    #[test]
    fn changes_update_the_rows() {
        let mut state = state();
        let answered = json!({ "sessionId": "s-1", "ask": 1, "by": "x", "option": "once" });
        state.apply_changes(&mut json!({ "answered": [answered], "removed": ["s-2", "s-9"] }));
        assert_eq!(changes(&state, 3).unwrap(), [(4, "answered"), (5, "removed")]);
        let rows = state.rows();
        assert_eq!((rows.len(), rows[0].name), (1, "session"));
    }

    #[test]
    fn row_follows_the_answer_and_the_deletion_of_the_same_notification() {
        let mut state = state();
        let answered = json!({ "sessionId": "s-1", "ask": 1, "by": "x" });
        let rows = json!([{ "sessionId": "s-1", "state": "working" }, { "sessionId": "s-2" }]);
        let changed = json!({ "sessions": rows, "answered": [answered], "removed": ["s-2"] });
        state.apply_changes(&mut changed.clone());
        let expected = [(4, "answered"), (5, "removed"), (6, "session"), (7, "session")];
        assert_eq!(changes(&state, 3).unwrap(), expected);
        assert_eq!(state.rows().len(), 2);
    }

    #[test]
    fn changes_after_an_unknown_or_old_id_are_not_known() {
        let mut state = state();
        assert_eq!(changes(&state, 4), None);
        let other = ChangeId::parse("other.1").unwrap();
        assert!(state.changes_after(&other).is_none());
        for turn in 0..=KEPT_CHANGES_MAX {
            let row = json!({ "sessionId": "s-1", "turns": turn + 1 });
            state.apply_changes(&mut json!({ "sessions": [row] }));
        }
        assert_eq!(changes(&state, 3), None);
        let last = state.last_id();
        assert_eq!(ChangeId::parse(&last.to_string()), Some(last.clone()));
        assert_eq!(changes(&state, last.number), Some(Vec::new()));
        for text in ["", "w", "w.x", "now"] {
            assert_eq!(ChangeId::parse(text), None, "{text}");
        }
    }
}
