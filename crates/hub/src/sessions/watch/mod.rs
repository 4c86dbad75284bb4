//! `_jackfield/watch`: changes of the lists of sessions and of open requests to the user.
//!
//! The answer has both lists. Then `_jackfield/changes` notifications have what changed, at most one per
//! [`WATCH_INTERVAL_MS`]: rows of sessions and requests that are new or different, ids of deleted sessions, and how
//! requests were answered. A watcher that does not read fast enough gets `restart` and asks again.

use super::Sessions;
use crate::{
    ConnId, SessionId, Time,
    limits::{WATCH_INTERVAL_MS, WATCH_PROGRESS_MS},
    parts::HubParts,
    session_name::is_known_to,
    timer::HubTimer,
};
use jackfield_events::{RawJson, UserAnswered};
use jackfield_protocol::{Frame, acp::Method};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The watchers, and what they have been sent.
#[derive(Debug, Default)]
pub(super) struct SessionWatch {
    watchers: BTreeMap<ConnId, SessionWatcher>,
    /// The last row of each session that changed.
    rows: BTreeMap<SessionId, SentRow>,
    /// Open requests to the user that were sent.
    requests: BTreeSet<(SessionId, u64)>,
    /// Deleted sessions that were not sent yet.
    removed: BTreeSet<SessionId>,
    /// Answers that were not sent yet.
    answered: Vec<(SessionId, Value)>,
    has_timer: bool,
}

#[derive(Debug, Default)]
struct SessionWatcher {
    /// It has not read everything and missed changes.
    is_behind: bool,
}

/// The row of a session as watchers have it.
#[derive(Debug, PartialEq, Eq)]
struct SentRow {
    /// Without what changes with every event.
    row: Value,
    progress: [Value; 2],
    at: Time,
}

/// A change with the session that it concerns.
type SessionChange = (SessionId, Value);

/// What watchers are notified of.
#[derive(Debug, Default)]
struct ListChanges {
    sessions: Vec<SessionChange>,
    removed: Vec<SessionChange>,
    requests: Vec<SessionChange>,
    answered: Vec<SessionChange>,
}

impl Sessions {
    /// Makes a client a watcher, and answers with the lists.
    pub(crate) fn watch_sessions(&mut self, parts: &mut HubParts, conn: ConnId, id: &str) {
        self.watch.watchers.insert(conn, SessionWatcher::default());
        self.by_id.set_tracked(true);
        let visible = self.visible_to(parts, conn);
        let rows: Vec<Value> = visible.iter().map(|it| it.row(parts)).collect();
        let requests = visible.iter().flat_map(|it| it.user_request_rows());
        let requests: Vec<Value> = requests.map(|(_, row)| row).collect();
        let result = json!({ "sessions": rows, "asks": requests }).to_string();
        parts.clients.answer_request(&mut parts.cx, conn, id, Ok(&result));
    }

    pub(super) fn remove_watcher(&mut self, conn: ConnId) {
        if self.watch.watchers.remove(&conn).is_some() && self.watch.watchers.is_empty() {
            self.watch = SessionWatch { has_timer: self.watch.has_timer, ..Default::default() };
            self.by_id.set_tracked(false);
        }
    }

    /// A session was deleted.
    pub(super) fn note_deleted(&mut self, id: &SessionId) {
        if !self.watch.watchers.is_empty() {
            self.watch.removed.insert(id.clone());
        }
    }

    /// A request to the user was closed, and the event of that is durable.
    pub(super) fn note_answered(&mut self, session: SessionId, answered: &UserAnswered) {
        if self.watch.watchers.is_empty() {
            return;
        }
        let UserAnswered { ask, by, answer, .. } = answered;
        let mut change = json!({ "sessionId": &*session, "ask": ask, "by": by });
        if let Some(option) = chosen_option(answer) {
            change["option"] = option;
        }
        self.watch.requests.remove(&(session.clone(), *ask));
        self.watch.answered.push((session, change));
    }

    /// Sets the timer of the next notification if there is something to notify of.
    pub(crate) fn schedule_changes(&mut self, parts: &mut HubParts) {
        let watch = &mut self.watch;
        let is_due = self.by_id.has_touched()
            || !watch.removed.is_empty()
            || !watch.answered.is_empty()
            || watch.watchers.values().any(|it| it.is_behind);
        if is_due && !watch.has_timer && !watch.watchers.is_empty() {
            watch.has_timer = true;
            let at = parts.cx.now.plus(WATCH_INTERVAL_MS);
            parts.cx.timers.set(at, HubTimer::Changes);
        }
    }

    /// Notifies the watchers of what changed since the last time.
    pub(crate) fn send_changes(&mut self, parts: &mut HubParts) {
        self.watch.has_timer = false;
        let changes = self.collect_changes(parts);
        for (conn, watcher) in &mut self.watch.watchers {
            if parts.clients.has_full_outbox(&parts.cx, *conn) {
                watcher.is_behind |= !changes.is_empty();
                continue;
            }
            let params = if std::mem::take(&mut watcher.is_behind) {
                Some(json!({ "restart": true }))
            } else {
                changes.visible_to(parts.clients.tenant_name(*conn))
            };
            if let Some(params) = params {
                let name = Method::ControlChanges.name();
                let notice = Frame::notification(name, &params.to_string());
                parts.clients.send(&mut parts.cx, *conn, notice.into_bytes());
            }
        }
    }

    fn collect_changes(&mut self, parts: &HubParts) -> ListChanges {
        let removed = std::mem::take(&mut self.watch.removed);
        let answered = std::mem::take(&mut self.watch.answered);
        let mut changes = ListChanges { answered, ..ListChanges::default() };
        // A new session may have the id of a deleted one.
        for id in removed {
            self.watch.rows.remove(&id);
            self.watch.requests.retain(|(session, _)| *session != id);
            let change = Value::from(&*id);
            changes.removed.push((id, change));
        }
        for id in self.by_id.take_touched() {
            let Some(session) = self.by_id.get(&id).filter(|it| !it.is_opening()) else { continue };
            for (_, request) in session.user_request_rows() {
                let number = request["ask"].as_u64().unwrap_or_default();
                if self.watch.requests.insert((id.clone(), number)) {
                    changes.requests.push((id.clone(), request));
                }
            }
            match self.watch.update_row(&id, session.row(parts), parts.cx.now) {
                RowUpdate::Changed(row) => changes.sessions.push((id, row)),
                RowUpdate::Later => self.by_id.touch(id),
                RowUpdate::Same => {}
            }
        }
        changes
    }
}

enum RowUpdate {
    Changed(Value),
    /// Only its number of events changed, a short time after the last notification.
    Later,
    Same,
}

impl SessionWatch {
    fn update_row(&mut self, id: &SessionId, mut row: Value, now: Time) -> RowUpdate {
        let progress = ["events", "updatedAt"].map(|it| row[it].take());
        let last = self.rows.get(id);
        if let Some(last) = last.filter(|it| it.row == row) {
            if last.progress == progress {
                return RowUpdate::Same;
            }
            if now.since(last.at) < WATCH_PROGRESS_MS {
                return RowUpdate::Later;
            }
        }
        let mut changed = row.clone();
        (changed["events"], changed["updatedAt"]) = (progress[0].clone(), progress[1].clone());
        self.rows.insert(id.clone(), SentRow { row, progress, at: now });
        RowUpdate::Changed(changed)
    }
}

impl ListChanges {
    fn is_empty(&self) -> bool {
        [&self.sessions, &self.removed, &self.requests, &self.answered]
            .iter()
            .all(|it| it.is_empty())
    }

    /// The parameters of the notification for a client of this tenant, if it concerns any of its sessions.
    fn visible_to(&self, tenant: Option<&str>) -> Option<Value> {
        let mut params = json!({});
        let lists = [
            ("sessions", &self.sessions),
            ("removed", &self.removed),
            ("asks", &self.requests),
            ("answered", &self.answered),
        ];
        for (name, list) in lists {
            let visible = list.iter().filter(|(id, _)| is_known_to(tenant, id));
            let visible: Vec<&Value> = visible.map(|(_, change)| change).collect();
            if !visible.is_empty() {
                params[name] = json!(visible);
            }
        }
        params.as_object().is_some_and(|it| !it.is_empty()).then_some(params)
    }
}

/// The option that an answer to a permission request chose.
fn chosen_option(answer: &RawJson) -> Option<Value> {
    let mut answer: Value = answer.parse()?;
    let option = answer.pointer_mut("/result/outcome/optionId")?.take();
    option.is_string().then_some(option)
}

#[cfg(test)]
mod tests;
