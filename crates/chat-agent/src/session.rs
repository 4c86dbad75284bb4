//! One open session: its context, its history, and the turn that runs in it.

use crate::{
    AgentProfile, bridge,
    history::HistoryEntry,
    mcp::McpServers,
    model::add_costs,
    mutex::lock,
    options::SessionOptions,
    store::{ChatSessionStore, StoreError, StoredSession},
    tool::SessionContext,
};
use agent_client_protocol::v1::schema::{
    Cost, SessionNotification, SessionUpdate, ToolCallId, ToolCallStatus, ToolCallUpdate,
    ToolCallUpdateFields,
};
use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use tokio_util::sync::CancellationToken;

/// The maximum length of a title in characters.
const TITLE_CHARS_MAX: usize = 60;

/// A session that a client has opened.
pub(crate) struct ChatSession {
    pub(crate) context: SessionContext,
    pub(crate) mcp_servers: McpServers,
    store: Arc<Mutex<ChatSessionStore>>,
    record: Mutex<StoredSession>,
    /// Locked by the running turn.
    pub(crate) history: tokio::sync::Mutex<Vec<HistoryEntry>>,
    /// Cancels the running turn. Each turn has its own token, so that a cancel affects one turn
    /// only.
    running_turn: Mutex<Option<CancellationToken>>,
    /// Calls that were announced to the client and have not ended.
    open_calls: Mutex<HashSet<ToolCallId>>,
    /// What all model requests of the session have cost, as far as the server reports it.
    cost_nanos: Mutex<Option<u64>>,
}

impl ChatSession {
    pub(crate) fn new(
        context: SessionContext,
        mcp_servers: McpServers,
        store: Arc<Mutex<ChatSessionStore>>,
        record: StoredSession,
        history: Vec<HistoryEntry>,
    ) -> ChatSession {
        let costs = history.iter().map(|it| match it {
            HistoryEntry::Answer { tokens: Some(tokens), .. } => tokens.cost_nanos,
            _ => None,
        });
        let cost_nanos = Mutex::new(costs.fold(None, add_costs));
        ChatSession {
            context,
            mcp_servers,
            store,
            record: Mutex::new(record),
            history: tokio::sync::Mutex::new(history),
            running_turn: Mutex::default(),
            open_calls: Mutex::default(),
            cost_nanos,
        }
    }

    pub(crate) fn has_title(&self) -> bool {
        lock(&self.record).title.is_some()
    }

    /// Adds the cost of a model request.
    pub(crate) fn add_cost(&self, cost_nanos: Option<u64>) {
        let mut sum = lock(&self.cost_nanos);
        *sum = add_costs(*sum, cost_nanos);
    }

    /// The cost of the session so far.
    pub(crate) fn cost(&self) -> Option<Cost> {
        lock(&self.cost_nanos).map(to_acp_cost)
    }

    /// Whether the user has granted this permission permanently.
    pub(crate) fn is_granted(&self, permission: &str) -> bool {
        lock(&self.record).granted_permissions.iter().any(|it| it == permission)
    }

    pub(crate) fn options(&self) -> SessionOptions {
        lock(&self.record).options.clone()
    }

    /// Changes the record of the session and saves it.
    pub(crate) fn update_record(
        &self,
        change: impl FnOnce(&mut StoredSession),
    ) -> Result<StoredSession, StoreError> {
        let mut record = lock(&self.record);
        change(&mut record);
        lock(&self.store).save_record(&record)?;
        Ok(record.clone())
    }

    /// Stores entries before it adds them to `history`, so that this process never knows more than
    /// the next one will.
    pub(crate) fn append_entries(
        &self,
        history: &mut Vec<HistoryEntry>,
        new: Vec<HistoryEntry>,
    ) -> Result<(), StoreError> {
        let count = i64::try_from(history.len()).unwrap_or(i64::MAX);
        lock(&self.store).append_entries(&self.context.session_id.0, count, &new)?;
        history.extend(new);
        Ok(())
    }

    /// Sends an update to the client. If the client is gone, the turn ends soon, so errors are
    /// ignored.
    pub(crate) fn send_update(&self, update: SessionUpdate) {
        if self.context.profile == AgentProfile::ChatBridge && !bridge::is_sent(&update) {
            return;
        }
        match &update {
            SessionUpdate::ToolCall(call) if !is_final(call.status) => {
                lock(&self.open_calls).insert(call.tool_call_id.clone());
            }
            SessionUpdate::ToolCallUpdate(update) if update.fields.status.is_some_and(is_final) => {
                lock(&self.open_calls).remove(&update.tool_call_id);
            }
            _ => {}
        }
        let notification = SessionNotification::new(self.context.session_id.clone(), update);
        let _disconnected = self.context.client.send_notification(notification);
    }

    /// Starts a turn. Returns `None` if one is running.
    pub(crate) fn begin_turn(&self) -> Option<CancellationToken> {
        let mut running = lock(&self.running_turn);
        if running.is_some() {
            return None;
        }
        Some(running.insert(CancellationToken::new()).clone())
    }

    /// Ends the turn. Calls that are still open are reported as failed.
    pub(crate) fn end_turn(&self) {
        // Taken before the loop, because `send_update` locks `open_calls` too.
        let open_calls = std::mem::take(&mut *lock(&self.open_calls));
        for id in open_calls {
            let fields = ToolCallUpdateFields::new().status(ToolCallStatus::Failed);
            self.send_update(SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id, fields)));
        }
        lock(&self.running_turn).take();
    }

    /// Cancels the running turn, if there is one.
    pub(crate) fn cancel_turn(&self) {
        if let Some(running) = &*lock(&self.running_turn) {
            running.cancel();
        }
    }
}

pub(crate) fn to_acp_cost(nanos: u64) -> Cost {
    #[expect(
        clippy::cast_precision_loss,
        reason = "an amount of money that this rounds is not real"
    )]
    let amount = nanos as f64 / 1e9;
    Cost::new(amount, "USD")
}

fn is_final(status: ToolCallStatus) -> bool {
    matches!(status, ToolCallStatus::Completed | ToolCallStatus::Failed)
}

/// Derives a title from the first line of a prompt, cut between words.
pub(crate) fn derive_title(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|it| !it.is_empty())?;
    match line.char_indices().nth(TITLE_CHARS_MAX) {
        None => Some(line.to_owned()),
        Some((end, _)) => {
            let cut = &line[..end];
            let cut = cut.rsplit_once(' ').map_or(cut, |(head, _)| head);
            Some(format!("{}…", cut.trim_end()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn title_is_the_first_line_cut_between_words() {
        assert_eq!(derive_title("\n  Fix the test \nplease").as_deref(), Some("Fix the test"));
        assert_eq!(derive_title(" \n"), None);
        let long = derive_title(&"word ".repeat(30)).unwrap();
        assert!(long.ends_with("word…") && long.chars().count() <= TITLE_CHARS_MAX + 1, "{long}");
        let one = derive_title(&"ä".repeat(100)).unwrap();
        assert_eq!(one.chars().count(), TITLE_CHARS_MAX + 1);
    }
}
