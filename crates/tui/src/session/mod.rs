//! One session: its transcript, the input field, the queue and the settings.
//!
//! [`SessionView`] handles inputs. `keys` finds what a key does, `actions` does it, `hub_updates` applies messages of
//! the hub.

mod actions;
mod areas;
mod clients;
mod completion;
mod composer;
mod detail;
mod detail_lines;
mod focus;
mod hub_updates;
mod keys;
mod line_prompt;
mod pickers;
mod prompt_blocks;
mod queue;
mod scroll;
#[cfg(test)]
mod terminal_effect_tests;
#[cfg(test)]
mod tests;
mod transcript_pane;

use crate::{
    hub::{HubRequest, LogRange, RequestNumber, SessionRow, SessionSettings, SessionState},
    page::{ActivePage, AppEffect, AppInput, UpdateContext},
};
pub(crate) use areas::MARK_WIDTH;
use clients::ClientList;
pub(crate) use completion::CompletionKind;
pub(crate) use composer::{PromptComposer, WrittenPrompt};
pub(crate) use detail::{DetailContent, DetailPage};
pub(crate) use focus::{SessionFocus, SessionOverlay};
pub(crate) use line_prompt::{LinePrompt, LinePurpose};
pub(crate) use pickers::{ChoicePicker, PickerChoice};
pub(crate) use queue::PromptQueue;
use ratatui::layout::Rect;
use std::collections::BTreeMap;
pub(crate) use transcript_pane::{
    FindStatus, GUTTER_WIDTH, HighlightedRange, SCROLLBAR_WIDTH, TranscriptPane, VisibleRow,
};

/// The state of an open session.
#[derive(Debug)]
pub(crate) struct SessionView {
    session: String,
    row: SessionRow,
    settings: SessionSettings,
    context: Option<ContextFill>,
    pane: TranscriptPane,
    composer: PromptComposer,
    queue: PromptQueue,
    clients: ClientList,
    focus: SessionFocus,
    overlay: Option<SessionOverlay>,
    /// The text that was searched last.
    find_text: String,
    size: (u16, u16),
    /// What was written in other sessions and not sent.
    other_drafts: PromptDrafts,
    /// Requests whose outcome matters.
    sent: BTreeMap<RequestNumber, SentRequest>,
}

/// What was written and not sent, by session.
pub(crate) type PromptDrafts = BTreeMap<String, WrittenPrompt>;

/// How full the context of the agent was at its last report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ContextFill {
    /// The event of the report.
    seq: u64,
    pub(crate) tokens: u64,
    pub(crate) size: Option<u64>,
}

/// What a request was for.
#[derive(Debug)]
enum SentRequest {
    ReadLog(LogRange),
    Prompt(WrittenPrompt),
    Fork,
    /// Something else, as a verb with its object.
    Other(&'static str),
}

impl SessionView {
    /// Opens a session. `row` is missing if the lists have not arrived yet. `drafts` are those of the session before.
    pub(crate) fn open(
        cx: &mut UpdateContext<'_>,
        session: &str,
        row: Option<&SessionRow>,
        mut drafts: PromptDrafts,
    ) -> SessionView {
        let row = row.cloned().unwrap_or_else(|| SessionRow {
            session_id: session.to_owned(),
            ..SessionRow::default()
        });
        let (pane, requests) =
            TranscriptPane::new(session.to_owned(), row.events, cx.theme.clone());
        let mut view = SessionView {
            session: session.to_owned(),
            row,
            settings: SessionSettings::default(),
            context: None,
            pane,
            composer: PromptComposer::new(cx.keymap.editing()),
            queue: PromptQueue::default(),
            clients: ClientList::default(),
            focus: SessionFocus::default(),
            overlay: None,
            find_text: String::new(),
            size: cx.page_size,
            other_drafts: PromptDrafts::new(),
            sent: BTreeMap::new(),
        };
        if let Some(draft) = drafts.remove(session) {
            view.composer.restore_prompt(draft);
        }
        view.other_drafts = drafts;
        view.send_log_requests(cx, requests);
        cx.send(HubRequest::ReadSettings { session: session.to_owned() });
        cx.send(HubRequest::ReadQueue { session: session.to_owned() });
        view.lay_out(cx);
        view
    }

    pub(crate) fn session_id(&self) -> &str {
        &self.session
    }

    /// Handles keys while the page has the focus, and everything that concerns the session at any time.
    /// `AppInput::Resize` has the size of the page.
    pub(crate) fn update(&mut self, cx: &mut UpdateContext<'_>, input: &AppInput) {
        match input {
            AppInput::Key(key) => self.on_key(cx, key),
            AppInput::Paste(text) => self.on_paste(cx, text),
            AppInput::Mouse(mouse) => self.on_mouse(*mouse),
            AppInput::Resize { width, height } => self.size = (*width, *height),
            AppInput::Hub(update) => self.on_hub_update(cx, update),
            AppInput::EditedText(Some(text)) => self.composer.set_text(text),
            AppInput::Files { session, query, paths } if *session == self.session => {
                self.composer.on_files(query, paths);
            }
            AppInput::SyntaxLoaded(_) => self.render_again(),
            AppInput::Drawn => return,
            AppInput::EditedText(None) | AppInput::Files { .. } | AppInput::Tick => {}
        }
        self.lay_out(cx);
    }

    /// Code has other colors now.
    fn render_again(&mut self) {
        self.pane.render_again();
        if let Some(SessionOverlay::Detail(page)) = &mut self.overlay {
            page.render_again();
        }
    }

    /// Ends what was started for the session. Returns what was written and not sent.
    pub(crate) fn close(self, cx: &mut UpdateContext<'_>) -> PromptDrafts {
        let mut drafts = self.other_drafts;
        if !self.composer.is_empty() {
            drafts.insert(self.session.clone(), self.composer.draft());
        }
        cx.send(HubRequest::Unfollow { session: self.session });
        drafts
    }

    #[cfg(test)]
    /// Whether the input field has text: a new request does not take the focus from it.
    pub(crate) fn has_draft(&self) -> bool {
        !self.composer.is_empty()
    }

    pub(crate) fn row(&self) -> &SessionRow {
        &self.row
    }

    pub(crate) fn settings(&self) -> &SessionSettings {
        &self.settings
    }

    pub(crate) fn context_fill(&self) -> Option<ContextFill> {
        self.context
    }

    pub(crate) fn pane(&self) -> &TranscriptPane {
        &self.pane
    }

    pub(crate) fn composer(&self) -> &PromptComposer {
        &self.composer
    }

    pub(crate) fn queue(&self) -> &PromptQueue {
        &self.queue
    }

    pub(crate) fn overlay(&self) -> Option<&SessionOverlay> {
        self.overlay.as_ref()
    }

    /// The part that gets keys if nothing is open above it.
    pub(crate) fn focused_part(&self) -> SessionFocus {
        self.focus
    }

    pub(crate) fn find_text(&self) -> &str {
        &self.find_text
    }

    /// Whether a turn runs, so that a prompt waits or steers.
    pub(crate) fn is_running(&self) -> bool {
        matches!(self.row.state, SessionState::Working | SessionState::Asks | SessionState::Other)
    }

    /// Lays out what is visible, and asks for what is missing.
    fn lay_out(&mut self, cx: &mut UpdateContext<'_>) {
        let (width, height) = self.size;
        self.composer.set_width(width.saturating_sub(MARK_WIDTH));
        match &mut self.overlay {
            Some(SessionOverlay::Line(line)) => line.set_width(width),
            Some(SessionOverlay::Picker(picker)) => picker.set_width(width),
            Some(SessionOverlay::Detail(_)) | None => {}
        }
        let areas = self.areas(Rect::new(0, 0, width, height));
        self.pane.resize(areas.transcript.width, areas.transcript.height);
        let requests = self.pane.layout(cx.now);
        self.send_log_requests(cx, requests);
        self.lay_out_detail(cx);
        if cx.options.is_inline && cx.page == ActivePage::Session {
            let lines = self.pane.take_finished_lines();
            if !lines.is_empty() {
                cx.push_effect(AppEffect::PrintAbove(lines));
            }
        }
    }

    fn send_log_requests(&mut self, cx: &mut UpdateContext<'_>, requests: Vec<HubRequest>) {
        for request in requests {
            let range = match &request {
                HubRequest::ReadLog { range, .. } => Some(*range),
                _ => None,
            };
            let number = cx.send(request);
            if let Some(range) = range {
                self.sent.insert(number, SentRequest::ReadLog(range));
            }
        }
    }
}
