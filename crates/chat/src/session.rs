//! One conversation, open: where it works, what was said, and whoever runs its turn.

use crate::{
    history::Entry,
    mcp::Servers,
    options::Choices,
    store::{Record, Store, StoreError},
    tool::Site,
};
use agent_client_protocol::v1::schema::{
    SessionNotification, SessionUpdate, ToolCallId, ToolCallStatus, ToolCallUpdate,
    ToolCallUpdateFields,
};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

/// How long a title is at most, in characters.
const TITLE_MAX: usize = 60;

/// A session that a client has opened.
pub(crate) struct Session {
    pub(crate) site: Site,
    pub(crate) servers: Servers,
    store: Arc<Mutex<Store>>,
    record: Mutex<Record>,
    /// Whoever holds it has the turn.
    pub(crate) talk: tokio::sync::Mutex<Vec<Entry>>,
    /// What stops the turn that runs. A new one for each, so that a cancel is for one turn only.
    running: Mutex<Option<CancellationToken>>,
    /// Calls that the client has seen begin and not end.
    open: Mutex<HashSet<ToolCallId>>,
}

impl Session {
    pub(crate) fn new(
        site: Site,
        servers: Servers,
        store: Arc<Mutex<Store>>,
        record: Record,
        history: Vec<Entry>,
    ) -> Session {
        let (talk, record) = (tokio::sync::Mutex::new(history), Mutex::new(record));
        let (running, open) = (Mutex::default(), Mutex::default());
        Session { site, servers, store, record, talk, running, open }
    }

    pub(crate) fn has_title(&self) -> bool {
        lock(&self.record).title.is_some()
    }

    /// Whether the user has allowed this for good.
    pub(crate) fn allows(&self, grant: &str) -> bool {
        lock(&self.record).allowed.iter().any(|it| it == grant)
    }

    pub(crate) fn choices(&self) -> Choices {
        lock(&self.record).choices.clone()
    }

    /// Changes what is known of the session, and keeps it.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Record)) -> Result<Record, StoreError> {
        let mut record = lock(&self.record);
        change(&mut record);
        lock(&self.store).put(&record)?;
        Ok(record.clone())
    }

    /// Keeps entries and then has them said: in this order, so that nothing is known here that the
    /// next process would not know.
    pub(crate) fn append(&self, talk: &mut Vec<Entry>, new: Vec<Entry>) -> Result<(), StoreError> {
        let count = i64::try_from(talk.len()).unwrap_or(i64::MAX);
        lock(&self.store).append(&self.site.session.0, count, &new)?;
        talk.extend(new);
        Ok(())
    }

    /// Tells the client. If it is gone, so is the turn soon.
    pub(crate) fn tell(&self, update: SessionUpdate) {
        match &update {
            SessionUpdate::ToolCall(call) if !is_end(call.status) => {
                lock(&self.open).insert(call.tool_call_id.clone());
            }
            SessionUpdate::ToolCallUpdate(update) if update.fields.status.is_some_and(is_end) => {
                lock(&self.open).remove(&update.tool_call_id);
            }
            _ => {}
        }
        let note = SessionNotification::new(self.site.session.clone(), update);
        let _gone = self.site.client.send_notification(note);
    }

    /// A turn begins; `None` if one is running.
    pub(crate) fn begin(&self) -> Option<CancellationToken> {
        let mut running = lock(&self.running);
        if running.is_some() {
            return None;
        }
        Some(running.insert(CancellationToken::new()).clone())
    }

    /// The turn is over, and whatever it left open.
    pub(crate) fn end(&self) {
        // Not in the head of the loop: there it would stay locked, and `tell` locks it too.
        let left = std::mem::take(&mut *lock(&self.open));
        for id in left {
            let fields = ToolCallUpdateFields::new().status(ToolCallStatus::Failed);
            self.tell(SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id, fields)));
        }
        lock(&self.running).take();
    }

    /// Stops the turn that runs, if one does.
    pub(crate) fn cancel(&self) {
        if let Some(running) = &*lock(&self.running) {
            running.cancel();
        }
    }
}

fn is_end(status: ToolCallStatus) -> bool {
    matches!(status, ToolCallStatus::Completed | ToolCallStatus::Failed)
}

/// A title made of the first words of a conversation.
pub(crate) fn title_of(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|it| !it.is_empty())?;
    match line.char_indices().nth(TITLE_MAX) {
        None => Some(line.to_owned()),
        Some((end, _)) => {
            let cut = &line[..end];
            let cut = cut.rsplit_once(' ').map_or(cut, |(head, _)| head);
            Some(format!("{}…", cut.trim_end()))
        }
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_the_first_line_cut_between_words() {
        assert_eq!(title_of("\n  Fix the test \nplease").as_deref(), Some("Fix the test"));
        assert_eq!(title_of(" \n"), None);
        let long = title_of(&"word ".repeat(30)).unwrap();
        assert!(long.ends_with("word…") && long.chars().count() <= TITLE_MAX + 1, "{long}");
        let one = title_of(&"ä".repeat(100)).unwrap();
        assert_eq!(one.chars().count(), TITLE_MAX + 1);
    }
}
