//! Summarizes a conversation that no longer fits into the context window of the model.

use super::{ChatTurn, ModelResult};
use crate::{
    content::block_to_text,
    history::HistoryEntry,
    model::{ModelError, ModelRequest},
};
use agent_client_protocol::v1::schema::{
    CompactionStatus, CompactionUpdate, ContentBlock, SessionUpdate,
};

/// How full the window may be before a request. The rest is for the response.
const WINDOW_USE_PERCENT_MAX: u64 = 80;
/// An estimate for text and code.
const BYTES_PER_TOKEN: usize = 4;
/// How much of the last prompt is repeated after a summary.
const LAST_PROMPT_BYTES_MAX: usize = 4000;
/// How much of a tool result is passed to the summary.
const RESULT_BYTES_MAX: usize = 1000;

const SUMMARY_PROMPT: &str = "Sum up this conversation for yourself, because you will see nothing else of it. \
    Keep what the user wants, in their words where it matters; what was decided and why; which files \
    were read or changed and what is in them that matters; what was tried and did not work; what is \
    left to do. Write plain text, no calls.";

impl ChatTurn<'_> {
    /// Returns the size of the context window in tokens.
    pub(super) fn context_window(&self) -> Option<u64> {
        let reported = self.model_info.as_ref().and_then(|it| it.window);
        self.settings.context_window.or(reported)
    }

    /// Whether the next request would leave too little space for its response.
    pub(super) fn is_window_full(&self) -> bool {
        let limit = self.context_window().map(|it| it * WINDOW_USE_PERCENT_MAX / 100);
        !self.is_bridge()
            && limit.is_some_and(|limit| limit < estimate_tokens(self.history))
            && 1 < visible_entries(self.history).len()
    }

    /// Lets the model summarize the conversation. Later requests have the summary instead of it.
    pub(crate) async fn compact_history(&mut self) -> ModelResult<()> {
        let id = format!("c-{}", self.history.len());
        self.send_compaction_update(&id, CompactionStatus::InProgress, None);
        let mut shortened =
            shorten_for_summary(visible_entries(self.history), self.context_window());
        shortened.push(HistoryEntry::Hint { text: SUMMARY_PROMPT.to_owned() });
        let request = ModelRequest { tools: Vec::new(), ..self.build_request(&shortened) };
        let summary = match self.model.send_request(&request, |_| {}).await {
            Ok(response) => {
                self.add_usage(response.tokens.unwrap_or_default());
                response.text
            }
            Err(error) => {
                let message = error.to_string();
                self.send_compaction_update(&id, CompactionStatus::Failed, Some(message));
                return Ok(Err(error));
            }
        };
        self.send_compaction_update(&id, CompactionStatus::Completed, None);
        let mut text = format!("This is what was said and done so far:\n\n{}\n", summary.trim());
        if let Some(prompt) = last_prompt_text(self.history) {
            text.push_str("\nThe last thing that the user said:\n\n");
            text.push_str(&prompt);
            text.push('\n');
        }
        let first_kept = self.history.len();
        self.append_entries(vec![HistoryEntry::Summary { text, first_kept }])?;
        Ok(Ok(()))
    }

    fn send_compaction_update(&self, id: &str, status: CompactionStatus, error: Option<String>) {
        if !self.display.shows_compaction {
            return;
        }
        let update = CompactionUpdate::new(id.to_owned(), status);
        let update = match error {
            Some(error) => update.error(error),
            None => update,
        };
        self.session.send_update(SessionUpdate::CompactionUpdate(update));
    }
}

/// Whether a server rejected a request because of its length. Servers use different phrases.
pub(super) fn is_window_exceeded(error: &ModelError) -> bool {
    const PHRASES: [&str; 6] = [
        "context_length_exceeded",
        "context length",
        "context window",
        "context size",
        "too many tokens",
        "prompt is too long",
    ];
    let text = error.to_string().to_ascii_lowercase();
    PHRASES.iter().any(|it| text.contains(it))
}

/// Returns the entries that the model still sees, without the summary itself.
fn visible_entries(history: &[HistoryEntry]) -> &[HistoryEntry] {
    let first = history.iter().rev().find_map(|it| match it {
        HistoryEntry::Summary { first_kept, .. } => Some(*first_kept),
        _ => None,
    });
    &history[first.unwrap_or(0).min(history.len())..]
}

/// Estimates the tokens of the next request: what the server counted last, and an estimate of the
/// entries since then.
fn estimate_tokens(history: &[HistoryEntry]) -> u64 {
    let visible = visible_entries(history);
    let counted = visible.iter().enumerate().rev().find_map(|(at, it)| match it {
        HistoryEntry::Answer { tokens: Some(tokens), .. } => {
            Some((at + 1, tokens.input + tokens.output))
        }
        _ => None,
    });
    let (since, counted) = counted.unwrap_or((0, 0));
    let bytes: usize = visible[since..].iter().map(entry_bytes).sum();
    counted + (bytes / BYTES_PER_TOKEN) as u64
}

/// Returns how many bytes an entry adds to a request.
fn entry_bytes(entry: &HistoryEntry) -> usize {
    match entry {
        HistoryEntry::Prompt { content } => {
            content.iter().filter_map(block_to_text).map(|it| it.len()).sum()
        }
        HistoryEntry::Answer { text, calls, .. } => {
            text.len() + calls.iter().map(|it| it.name.len() + it.arguments.len()).sum::<usize>()
        }
        HistoryEntry::Result(result) => result.text.len(),
        HistoryEntry::Hint { text } | HistoryEntry::Summary { text, .. } => text.len(),
        HistoryEntry::Plan { .. } | HistoryEntry::Failed { .. } => 0,
    }
}

/// Truncates long results, and drops the oldest entries until the rest fits into half of the
/// window.
fn shorten_for_summary(history: &[HistoryEntry], window: Option<u64>) -> Vec<HistoryEntry> {
    let mut entries = history.to_vec();
    for entry in &mut entries {
        if let HistoryEntry::Result(result) = entry {
            truncate_text(&mut result.text, RESULT_BYTES_MAX);
        }
    }
    let limit = window.map_or(usize::MAX, |it| {
        usize::try_from(it / 2).unwrap_or(usize::MAX).saturating_mul(BYTES_PER_TOKEN)
    });
    let mut bytes: usize = entries.iter().map(entry_bytes).sum();
    let dropped = entries.iter().take_while(|it| {
        let exceeds_limit = limit < bytes;
        bytes -= entry_bytes(it);
        exceeds_limit
    });
    let dropped = dropped.count();
    entries.split_off(dropped)
}

fn last_prompt_text(history: &[HistoryEntry]) -> Option<String> {
    let content = history.iter().rev().find_map(|it| match it {
        HistoryEntry::Prompt { content } => Some(content),
        _ => None,
    })?;
    let text: Vec<String> = content
        .iter()
        .filter(|it| !matches!(it, ContentBlock::Image(_)))
        .filter_map(block_to_text)
        .collect();
    let mut text = text.join("\n");
    truncate_text(&mut text, LAST_PROMPT_BYTES_MAX);
    Some(text)
}

fn truncate_text(text: &mut String, bytes_max: usize) {
    if bytes_max < text.len() {
        text.truncate(text.floor_char_boundary(bytes_max));
        text.push_str(" […]");
    }
}
