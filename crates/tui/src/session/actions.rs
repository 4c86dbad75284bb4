//! Does what keys ask for in a session.

use super::{
    ChoicePicker, DetailContent, DetailPage, LinePrompt, LinePurpose, SentRequest, SessionFocus,
    SessionOverlay, SessionView,
    pickers::{CANCEL_VALUE, PickerPurpose},
};
use crate::{
    editor::TextEditor,
    hub::{HubRequest, PromptDelivery, SettingValue},
    keymap::KeyAction,
    page::{AppEffect, PageChange, UpdateContext},
};

impl SessionView {
    pub(super) fn run_action(&mut self, cx: &mut UpdateContext<'_>, action: KeyAction) {
        match action {
            KeyAction::SendPrompt => self.on_enter(cx),
            KeyAction::SteerPrompt => self.send_prompt(cx, PromptDelivery::Steer),
            KeyAction::InsertNewline => self.composer.insert_newline(),
            KeyAction::EditExternally => {
                cx.push_effect(AppEffect::EditExternally(self.composer.editor().text()));
            }
            KeyAction::HistoryPrevious => {
                let reply = self.composer.show_previous(&self.settings.commands);
                self.apply_reply(cx, reply);
            }
            KeyAction::HistoryNext => {
                let reply = self.composer.show_next(&self.settings.commands);
                self.apply_reply(cx, reply);
            }
            KeyAction::FocusComposer => self.focus = SessionFocus::Composer,
            KeyAction::Complete | KeyAction::FocusTranscript => {
                self.focus = SessionFocus::Transcript;
            }
            KeyAction::FocusQueue if self.queue.is_empty() => cx.show_notice("No prompts wait"),
            KeyAction::FocusQueue => self.focus = SessionFocus::Queue,
            KeyAction::CancelTurn => self.on_cancel(cx),
            KeyAction::GoBack => self.go_back(cx),
            KeyAction::RenameSession => {
                let name = self.row.display_title();
                let name = if name == self.session { String::new() } else { name.to_owned() };
                self.open_line(LinePurpose::Rename, &name);
            }
            KeyAction::FindText => self.open_line(LinePurpose::Find, ""),
            _ if self.focus == SessionFocus::Queue => self.run_queue_action(cx, action),
            _ if self.run_setting_action(cx, action) => {}
            _ => self.run_transcript_action(cx, action),
        }
    }

    fn run_transcript_action(&mut self, cx: &mut UpdateContext<'_>, action: KeyAction) {
        match action {
            KeyAction::MoveDown => self.pane.scroll_lines(1),
            KeyAction::MoveUp => self.pane.scroll_lines(-1),
            KeyAction::MovePageDown => self.pane.scroll_pages(1),
            KeyAction::MovePageUp => self.pane.scroll_pages(-1),
            KeyAction::MoveFirst => self.pane.scroll_to_start(),
            KeyAction::MoveLast => self.pane.scroll_to_end(),
            KeyAction::NextItem => self.pane.select_next(),
            KeyAction::PreviousItem => self.pane.select_previous(),
            KeyAction::ToggleItem => self.pane.toggle_item(),
            KeyAction::ToggleAllItems => self.pane.toggle_all_items(),
            KeyAction::FindNext => self.pane.find_next(),
            KeyAction::FindPrevious => self.pane.find_previous(),
            KeyAction::ShowDetail => {
                if self.pane.selected_item().is_none() {
                    self.pane.select_previous();
                }
                if self.pane.selected_item().is_some() {
                    let page = DetailPage::new(DetailContent::Item);
                    self.overlay = Some(SessionOverlay::Detail(page));
                }
            }
            KeyAction::ShowClients => {
                let page = DetailPage::new(DetailContent::Clients);
                self.overlay = Some(SessionOverlay::Detail(page));
            }
            KeyAction::CopyItem => {
                let text = self.pane.selected_text().or_else(|| self.pane.last_message_text());
                copy_text(cx, text, "the item");
            }
            KeyAction::CopyLastMessage => {
                copy_text(cx, self.pane.last_message_text(), "the last message");
            }
            KeyAction::CopyCode => copy_text(cx, self.pane.selected_code(), "the code"),
            KeyAction::ForkFromItem => self.fork_session(cx),
            KeyAction::PrintTranscript => {
                let lines = self.pane.plain_lines(self.size.0);
                cx.push_effect(AppEffect::PrintToScrollback(lines));
            }
            _ => {}
        }
    }

    fn run_queue_action(&mut self, cx: &mut UpdateContext<'_>, action: KeyAction) {
        let index = self.queue.selected_index();
        let session = self.session.clone();
        let Some(selected) = self.queue.selected_prompt() else { return };
        let (prompt, is_held) = (selected.number, selected.is_held);
        match action {
            KeyAction::MoveDown => self.queue.select_index(index + 1),
            KeyAction::MoveUp => self.queue.select_index(index.saturating_sub(1)),
            KeyAction::MoveFirst | KeyAction::MovePageUp => self.queue.select_index(0),
            KeyAction::MoveLast | KeyAction::MovePageDown => self.queue.select_index(usize::MAX),
            KeyAction::MovePromptUp | KeyAction::MovePromptDown => {
                let planned = self.queue.plan_move(action == KeyAction::MovePromptDown);
                if let Some((prompt, before)) = planned {
                    let request = HubRequest::MovePrompt { session, prompt, before };
                    self.send_request(cx, request, "move the prompt");
                }
            }
            KeyAction::WithdrawPrompt => {
                let request = HubRequest::WithdrawPrompt { session, prompt };
                self.send_request(cx, request, "withdraw the prompt");
            }
            KeyAction::EditPrompt => {
                let text = selected.text.clone();
                let request = HubRequest::WithdrawPrompt { session, prompt };
                self.send_request(cx, request, "withdraw the prompt");
                self.composer.set_text(&text);
                self.focus = SessionFocus::Composer;
            }
            KeyAction::RunHeldPrompt | KeyAction::Accept if is_held => {
                let request = HubRequest::RunHeldPrompt { session, prompt };
                self.send_request(cx, request, "run the prompt");
            }
            KeyAction::RunHeldPrompt | KeyAction::Accept => {
                cx.show_notice("The prompt runs when the turn ends");
            }
            _ => {}
        }
    }

    /// Returns whether the action is about a setting of the agent.
    fn run_setting_action(&mut self, cx: &mut UpdateContext<'_>, action: KeyAction) -> bool {
        let (purpose, title, offer) = match action {
            KeyAction::NextMode => {
                self.choose_next_mode(cx);
                return true;
            }
            KeyAction::PickMode => (PickerPurpose::Mode, "Mode", &self.settings.mode),
            KeyAction::PickModel => (PickerPurpose::Model, "Model", &self.settings.model),
            KeyAction::PickReasoning => {
                (PickerPurpose::Reasoning, "Reasoning effort", &self.settings.reasoning)
            }
            _ => return false,
        };
        match offer.as_ref().filter(|it| !it.choices.is_empty()) {
            Some(offer) => {
                let picker = ChoicePicker::for_setting(purpose, title, offer);
                self.overlay = Some(SessionOverlay::Picker(picker));
            }
            None => {
                cx.show_notice(format!("The agent offers no choice of {}", title.to_lowercase()));
            }
        }
        true
    }

    fn choose_next_mode(&mut self, cx: &mut UpdateContext<'_>) {
        let Some(offer) = self.settings.mode.as_ref().filter(|it| it.choices.len() > 1) else {
            return cx.show_notice("The agent offers no choice of mode");
        };
        let current = offer.choices.iter().position(|it| Some(&it.value) == offer.current.as_ref());
        let next = current.map_or(0, |it| (it + 1) % offer.choices.len());
        let value = offer.choices[next].value.clone();
        self.change_setting(cx, PickerPurpose::Mode, value);
    }

    /// Enter: a line break after a backslash, else the prompt is sent.
    fn on_enter(&mut self, cx: &mut UpdateContext<'_>) {
        if !self.composer.continue_line() {
            self.send_prompt(cx, PromptDelivery::Queue);
        }
    }

    fn send_prompt(&mut self, cx: &mut UpdateContext<'_>, delivery: PromptDelivery) {
        let Some((written, blocks)) = self.composer.take_prompt(&self.row.cwd) else { return };
        let request = HubRequest::Prompt { session: self.session.clone(), blocks, delivery };
        let number = cx.send(request);
        self.sent.insert(number, SentRequest::Prompt(written));
        self.pane.scroll_to_end();
    }

    /// Clears the input field, else cancels the turn; asks first if that withdraws prompts.
    fn on_cancel(&mut self, cx: &mut UpdateContext<'_>) {
        if self.focus == SessionFocus::Composer && !self.composer.is_empty() {
            return self.composer.clear();
        }
        match self.queue.withdrawn_by_cancel() {
            _ if !self.is_running() => {
                let key = cx.keymap.key_label(self.focus(), KeyAction::Quit);
                let hint = key.map(|it| format!("; {it} ends the program")).unwrap_or_default();
                cx.show_notice(format!("No turn is running{hint}"));
            }
            0 => self.cancel_turn(cx),
            count => self.overlay = Some(SessionOverlay::Picker(ChoicePicker::for_cancel(count))),
        }
    }

    fn cancel_turn(&mut self, cx: &mut UpdateContext<'_>) {
        let request = HubRequest::Cancel { session: self.session.clone() };
        self.send_request(cx, request, "cancel the turn");
        cx.show_notice("Canceling the turn");
    }

    fn fork_session(&mut self, cx: &mut UpdateContext<'_>) {
        let at = self.pane.selected_seq();
        let request = HubRequest::ForkSession { session: self.session.clone(), at };
        let number = cx.send(request);
        self.sent.insert(number, SentRequest::Fork);
        cx.show_notice("Forking the session");
    }

    fn go_back(&mut self, cx: &mut UpdateContext<'_>) {
        match self.focus {
            SessionFocus::Queue => self.focus = SessionFocus::Composer,
            _ if self.pane.find_status().is_some() => self.pane.cancel_find(),
            _ if self.pane.selected_item().is_some() => self.pane.clear_selection(),
            _ => cx.change_page(PageChange::Board),
        }
    }

    fn open_line(&mut self, purpose: LinePurpose, text: &str) {
        let editor = TextEditor::single_line(text);
        self.overlay = Some(SessionOverlay::Line(LinePrompt { purpose, editor }));
    }

    pub(super) fn close_overlay(&mut self) {
        let closed = self.overlay.take();
        if let Some(SessionOverlay::Line(LinePrompt { purpose: LinePurpose::Find, .. })) = closed {
            self.pane.cancel_find();
        }
    }

    pub(super) fn accept_line(&mut self, cx: &mut UpdateContext<'_>) {
        let Some(SessionOverlay::Line(line)) = self.overlay.take() else { return };
        let text = line.editor.text();
        match line.purpose {
            LinePurpose::Find if text.is_empty() => self.pane.cancel_find(),
            LinePurpose::Find => {
                self.pane.find_text(&text);
                self.find_text = text;
                self.focus = SessionFocus::Transcript;
            }
            LinePurpose::Rename => {
                let name = text.trim().to_owned();
                let request = HubRequest::RenameSession { session: self.session.clone(), name };
                self.send_request(cx, request, "rename the session");
            }
        }
    }

    pub(super) fn accept_choice(&mut self, cx: &mut UpdateContext<'_>) {
        let Some(SessionOverlay::Picker(picker)) = self.overlay.take() else { return };
        let Some(choice) = picker.selected_choice() else { return };
        match picker.purpose() {
            PickerPurpose::CancelTurn if choice.value == CANCEL_VALUE => self.cancel_turn(cx),
            PickerPurpose::CancelTurn => {}
            purpose => self.change_setting(cx, purpose, choice.value.clone()),
        }
    }

    fn change_setting(
        &mut self,
        cx: &mut UpdateContext<'_>,
        purpose: PickerPurpose,
        value: String,
    ) {
        let (value, verb) = match purpose {
            PickerPurpose::Mode => (SettingValue::Mode(value), "change the mode"),
            PickerPurpose::Model => (SettingValue::Model(value), "change the model"),
            PickerPurpose::Reasoning => {
                (SettingValue::Reasoning(value), "change the reasoning effort")
            }
            PickerPurpose::CancelTurn => return,
        };
        let request = HubRequest::ChangeSetting { session: self.session.clone(), value };
        self.send_request(cx, request, verb);
    }

    fn send_request(
        &mut self,
        cx: &mut UpdateContext<'_>,
        request: HubRequest,
        purpose: &'static str,
    ) {
        let number = cx.send(request);
        self.sent.insert(number, SentRequest::Other(purpose));
    }

    pub(super) fn leave_empty_queue(&mut self) {
        if self.focus == SessionFocus::Queue && self.queue.is_empty() {
            self.focus = SessionFocus::Composer;
        }
    }
}

fn copy_text(cx: &mut UpdateContext<'_>, text: Option<String>, object: &str) {
    match text.filter(|it| !it.is_empty()) {
        Some(text) => {
            cx.push_effect(AppEffect::Copy(text));
            cx.show_notice(format!("Copied {object}"));
        }
        None => cx.show_notice(format!("There is nothing to copy for {object}")),
    }
}
