//! The inbox: open requests of agents to the user. One is shown in full and can be answered.
//!
//! **Invariant:** an answer is sent only by a key that was typed while the request had the focus, after it was drawn
//! and then no key was typed for [`guard::QUIET_MS`].

mod answer;
mod call_details;
mod form;
mod form_fields;
mod guard;
#[cfg(test)]
mod guard_tests;
mod keys;
mod option_keys;
mod request_text;
#[cfg(test)]
mod tests;

use crate::{
    hub::{AnsweredRequest, HubUpdate, LogPage, OpenRequest, RequestNumber},
    keymap::KeyContext,
    page::{AppEffect, AppInput, UpdateContext},
};
use answer::SentAnswer;
use call_details::CallDetails;
pub(crate) use form::RequestForm;
pub(crate) use form_fields::{FieldValue, FormField};
use guard::AnswerGuard;
pub(crate) use option_keys::{AnswerChoice, answer_choices};
use ratatui::text::Line;
pub(crate) use request_text::describe_kind;
use request_text::{describe_request, form_lines, request_lines};

/// On a smaller page, requests cannot be read and are not answered.
const PAGE_SIZE_MIN: (u16, u16) = (24, 6);

/// The session and the number of a request.
pub(crate) type RequestKey = (String, u64);

fn key_of(request: &OpenRequest) -> RequestKey {
    (request.session_id.clone(), request.number)
}

/// The state of the inbox.
#[derive(Debug, Default)]
pub(crate) struct InboxState {
    /// Open requests, the oldest first.
    requests: Vec<OpenRequest>,
    shown: Option<RequestKey>,
    has_focus: bool,
    guard: AnswerGuard,
    /// The key that is handled may answer the request.
    is_key_allowed: bool,
    choices: Vec<AnswerChoice>,
    form: Option<RequestForm>,
    details: Option<CallDetails>,
    details_request: Option<RequestNumber>,
    sent: Option<SentAnswer>,
    /// How the last request was closed, or why an answer failed.
    closed: Option<String>,
    size: (u16, u16),
    lines: Vec<Line<'static>>,
    top: usize,
}

impl InboxState {
    pub(crate) fn update(&mut self, cx: &mut UpdateContext<'_>, input: &AppInput) {
        match input {
            AppInput::Hub(update) => self.on_hub_update(cx, update),
            AppInput::Key(key) => self.on_key(cx, key),
            AppInput::Paste(text) if self.is_key_allowed => self.on_paste(text),
            AppInput::Mouse(mouse) => self.on_mouse(*mouse),
            AppInput::Resize { width, height } => {
                self.size = (*width, *height);
                self.lay_out(cx);
            }
            AppInput::SyntaxLoaded(_) => self.lay_out(cx),
            _ => {}
        }
    }

    /// A key or pasted text arrived, for this page or another one.
    pub(crate) fn on_typed(&mut self, cx: &mut UpdateContext<'_>) {
        let was_open = self.guard.is_open(cx.now);
        self.is_key_allowed = self.guard.on_typed(cx.now);
        if !was_open && self.has_focus {
            cx.push_effect(AppEffect::WakeAt(cx.now.plus(guard::QUIET_MS)));
        }
    }

    /// The frame is on the terminal.
    pub(crate) fn on_drawn(&mut self, cx: &mut UpdateContext<'_>) {
        let is_visible = self.has_focus && self.shown.is_some() && self.is_readable();
        if is_visible && let Some(open_at) = self.guard.on_drawn(cx.now) {
            cx.push_effect(AppEffect::WakeAt(open_at));
        }
    }

    pub(crate) fn on_focus(&mut self, cx: &mut UpdateContext<'_>, has_focus: bool) {
        if self.has_focus == has_focus {
            return;
        }
        self.has_focus = has_focus;
        self.is_key_allowed = false;
        self.guard.reset();
        if has_focus {
            self.show_first(cx);
        } else {
            self.closed = None;
            self.shown = None;
        }
    }

    /// Shows the oldest request if none is shown.
    fn show_first(&mut self, cx: &mut UpdateContext<'_>) {
        if self.has_focus && self.shown.is_none() {
            self.show(cx, 0);
        }
    }

    fn show(&mut self, cx: &mut UpdateContext<'_>, index: usize) {
        self.guard.reset();
        self.is_key_allowed = false;
        self.top = 0;
        (self.details, self.details_request) = (None, None);
        self.shown = self.requests.get(index).map(key_of);
        self.prepare_shown(cx);
        let loading = self.shown_request().and_then(CallDetails::load);
        if let Some((details, read)) = loading {
            self.details = Some(details);
            self.details_request = Some(cx.send(read));
        }
        self.lay_out(cx);
    }

    /// Makes the choices or the form of the shown request.
    fn prepare_shown(&mut self, cx: &UpdateContext<'_>) {
        let Some(request) = self.shown_request() else {
            self.choices.clear();
            self.form = None;
            return;
        };
        let form = request.is_form().then(|| RequestForm::new(request));
        let choices = match form {
            Some(_) => Vec::new(),
            None => answer_choices(&request.options, cx.keymap),
        };
        (self.form, self.choices) = (form, choices);
    }

    fn lay_out(&mut self, cx: &UpdateContext<'_>) {
        let width = self.size.0.saturating_sub(2).max(1);
        let details = self.details.as_ref();
        self.lines = match self.shown_request() {
            None => Vec::new(),
            Some(it) if it.is_form() => form_lines(it, width, cx.theme),
            Some(it) => request_lines(it, details, width, cx.theme),
        };
        self.scroll(0);
    }

    fn on_hub_update(&mut self, cx: &mut UpdateContext<'_>, update: &HubUpdate) {
        match update {
            HubUpdate::Lists { requests, .. } => self.replace_requests(cx, requests),
            HubUpdate::Changes { requests, answered, removed, .. } => {
                for it in requests {
                    self.insert(cx, it.clone());
                }
                for it in answered {
                    self.on_answered(cx, it);
                }
                for session in removed {
                    self.close_where(cx, |it| it.session_id == *session, "The session was deleted");
                }
                self.show_first(cx);
            }
            HubUpdate::LogPage(page) => self.on_page(cx, page),
            HubUpdate::Outcome { number, result } => {
                if self.details_request == Some(*number) && result.is_err() {
                    self.details.iter_mut().for_each(CallDetails::stop);
                }
                self.on_outcome(cx, *number, result);
            }
            _ => {}
        }
    }

    /// Whether the inbox asked for this page of a log.
    pub(crate) fn awaits(&self, page: &LogPage) -> bool {
        self.details.as_ref().is_some_and(|it| it.awaits(page))
    }

    fn on_page(&mut self, cx: &mut UpdateContext<'_>, page: &LogPage) {
        if !self.awaits(page) {
            return;
        }
        let Some(details) = &mut self.details else { return };
        if let Some(before) = details.on_page(page) {
            self.details_request = Some(cx.send(before));
        }
        self.lay_out(cx);
    }

    fn insert(&mut self, cx: &mut UpdateContext<'_>, request: OpenRequest) {
        let key = key_of(&request);
        let Some(index) = self.requests.iter().position(|it| key_of(it) == key) else {
            let after = self.requests.partition_point(|it| it.since <= request.since);
            self.requests.insert(after, request);
            return;
        };
        if self.requests[index] != request {
            self.requests[index] = request;
            // What the user has read is no longer what would be answered.
            if self.shown.as_ref() == Some(&key) {
                self.show(cx, index);
            }
        }
    }

    fn replace_requests(&mut self, cx: &mut UpdateContext<'_>, requests: &[OpenRequest]) {
        let is_gone = |it: &OpenRequest| !requests.iter().any(|new| key_of(new) == key_of(it));
        self.close_where(cx, is_gone, "Answered while the connection was lost");
        for it in requests {
            self.insert(cx, it.clone());
        }
        self.show_first(cx);
    }

    /// Removes requests. If the shown one is among them, the next is shown.
    fn close_where(
        &mut self,
        cx: &mut UpdateContext<'_>,
        is_closed: impl Fn(&OpenRequest) -> bool,
        why: &str,
    ) {
        let shown = self.shown_index();
        if let Some(request) = self.shown_request().filter(|it| is_closed(it)) {
            self.closed = Some(format!("{why} ({})", describe_request(request)));
            self.shown = None;
        }
        self.requests.retain(|it| !is_closed(it));
        if let Some(index) = shown.filter(|_| self.shown.is_none()) {
            self.show(cx, index.min(self.requests.len().saturating_sub(1)));
        }
    }

    /// What the keys mean.
    pub(crate) fn key_context(&self) -> KeyContext {
        if self.form.is_some() { KeyContext::Picker } else { KeyContext::Inbox }
    }

    pub(crate) fn requests(&self) -> &[OpenRequest] {
        &self.requests
    }

    pub(crate) fn has_requests(&self) -> bool {
        !self.requests.is_empty()
    }

    /// The first open request in a few words, and the number of all.
    pub(crate) fn first_request(&self) -> Option<(String, usize)> {
        self.requests.first().map(|it| (describe_request(it), self.requests.len()))
    }

    pub(crate) fn shown_index(&self) -> Option<usize> {
        let shown = self.shown.as_ref()?;
        self.requests.iter().position(|it| key_of(it) == *shown)
    }

    pub(crate) fn shown_request(&self) -> Option<&OpenRequest> {
        self.shown_index().map(|it| &self.requests[it])
    }

    pub(crate) fn form(&self) -> Option<&RequestForm> {
        self.form.as_ref()
    }

    pub(crate) fn choices(&self) -> &[AnswerChoice] {
        &self.choices
    }

    /// The positions of the options that share a line, for each line.
    pub(crate) fn option_rows(&self) -> Vec<std::ops::Range<usize>> {
        let width = usize::from(self.size.0.saturating_sub(2));
        let mut rows: Vec<std::ops::Range<usize>> = Vec::new();
        let mut room = 0;
        for (index, choice) in self.choices.iter().enumerate() {
            let cells = choice.cell_width();
            match rows.last_mut() {
                Some(row) if cells <= room => row.end = index + 1,
                _ => {
                    room = width;
                    rows.push(index..index + 1);
                }
            }
            room = room.saturating_sub(cells);
        }
        rows
    }

    /// How the last request was closed.
    pub(crate) fn closed(&self) -> Option<&str> {
        self.closed.as_deref()
    }

    /// The lines of the shown request, and the first visible one.
    pub(crate) fn lines(&self) -> (&[Line<'static>], usize) {
        (&self.lines, self.top)
    }

    pub(crate) fn is_loading_details(&self) -> bool {
        self.details.as_ref().is_some_and(CallDetails::is_loading)
    }
}
