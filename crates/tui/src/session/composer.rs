//! The input field of a session with its history and its menu.

use super::{
    completion::{CompletionKind, CompletionMenu},
    prompt_blocks::build_blocks,
};
use crate::{
    editor::{EditorReply, PromptHistory, TextEditor},
    hub::SessionCommand,
    keymap::EditingKeys,
};
use crossterm::event::KeyEvent;
use serde_json::Value;
use std::collections::BTreeSet;

/// The state of the input field.
#[derive(Debug)]
pub(crate) struct PromptComposer {
    editor: TextEditor,
    history: PromptHistory,
    menu: Option<CompletionMenu>,
    /// The menu was closed for the word at this offset.
    closed_at: Option<usize>,
    /// The paths that were chosen from the menu.
    chosen_paths: BTreeSet<String>,
}

/// A prompt as it was written, to be put back if it cannot be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WrittenPrompt {
    pub(crate) text: String,
    pub(crate) chosen_paths: BTreeSet<String>,
}

/// What a key of the field led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ComposerReply {
    Done,
    /// The files that match this query are needed.
    FindFiles(String),
    EditExternally(String),
    /// The key has no meaning in the field.
    Ignored,
}

impl PromptComposer {
    pub(crate) fn new(keys: EditingKeys) -> PromptComposer {
        PromptComposer {
            editor: TextEditor::new(keys),
            history: PromptHistory::default(),
            menu: None,
            closed_at: None,
            chosen_paths: BTreeSet::new(),
        }
    }

    pub(crate) fn editor(&self) -> &TextEditor {
        &self.editor
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.editor.is_empty()
    }

    /// The menu, if it has entries.
    pub(crate) fn menu(&self) -> Option<&CompletionMenu> {
        self.menu.as_ref().filter(|it| !it.entries().is_empty())
    }

    pub(crate) fn set_width(&mut self, width: u16) {
        self.editor.set_width(width);
    }

    pub(crate) fn on_key(&mut self, key: &KeyEvent, commands: &[SessionCommand]) -> ComposerReply {
        match self.editor.on_key(key) {
            EditorReply::Ignored => ComposerReply::Ignored,
            EditorReply::AtFirstRow => self.show_previous(commands),
            EditorReply::AtLastRow => self.show_next(commands),
            EditorReply::EditExternally => ComposerReply::EditExternally(self.editor.text()),
            EditorReply::Changed => {
                self.history.leave();
                self.update_menu(commands)
            }
            EditorReply::Moved => self.update_menu(commands),
        }
    }

    pub(crate) fn paste(&mut self, text: &str, commands: &[SessionCommand]) -> ComposerReply {
        self.editor.paste(text);
        self.history.leave();
        self.update_menu(commands)
    }

    pub(crate) fn insert_newline(&mut self) {
        self.editor.insert_newline();
        self.menu = None;
    }

    /// Turns a backslash before the cursor at the end of a line into a line break. Returns whether there was one.
    pub(crate) fn continue_line(&mut self) -> bool {
        let (text, at) = (self.editor.edited_text(), self.editor.cursor());
        let is_line_end = text[at..].is_empty() || text[at..].starts_with('\n');
        if !is_line_end || !text[..at].ends_with('\\') {
            return false;
        }
        self.editor.replace_range(at - 1..at, "\n");
        true
    }

    /// Replaces the text, such as with that of an external editor.
    pub(crate) fn set_text(&mut self, text: &str) {
        self.editor.set_text(text.trim_end_matches('\n'));
        self.menu = None;
    }

    /// Empties the field. The text stays in the history.
    pub(crate) fn clear(&mut self) {
        let text = self.editor.take_text();
        self.history.push_sent(&text);
        self.menu = None;
    }

    /// Takes the prompt to send, and its content blocks. `None` if there is nothing but spaces.
    pub(crate) fn take_prompt(&mut self, cwd: &str) -> Option<(WrittenPrompt, Vec<Value>)> {
        if self.editor.text().trim().is_empty() {
            return None;
        }
        let text = self.editor.take_text();
        let chosen_paths = std::mem::take(&mut self.chosen_paths);
        self.menu = None;
        self.history.push_sent(&text);
        let blocks = build_blocks(&text, &chosen_paths, cwd);
        Some((WrittenPrompt { text, chosen_paths }, blocks))
    }

    /// Puts back a prompt that was not sent, before what was written since.
    pub(crate) fn restore_prompt(&mut self, prompt: WrittenPrompt) {
        let text = if self.editor.is_empty() {
            prompt.text
        } else {
            format!("{}\n{}", prompt.text, self.editor.text())
        };
        self.editor.set_text(&text);
        self.chosen_paths.extend(prompt.chosen_paths);
    }

    /// The text and the chosen paths, to be kept while another session is open.
    pub(crate) fn draft(&self) -> WrittenPrompt {
        WrittenPrompt { text: self.editor.text(), chosen_paths: self.chosen_paths.clone() }
    }

    pub(crate) fn add_logged_prompt(&mut self, seq: u64, text: String) {
        self.history.add_logged(seq, text);
    }

    pub(crate) fn show_previous(&mut self, commands: &[SessionCommand]) -> ComposerReply {
        let text = self.history.previous(&self.editor.text()).map(str::to_owned);
        self.show_prompt(text, commands)
    }

    pub(crate) fn show_next(&mut self, commands: &[SessionCommand]) -> ComposerReply {
        let text = self.history.next(&self.editor.text()).map(str::to_owned);
        self.show_prompt(text, commands)
    }

    pub(crate) fn select_entry(&mut self, is_next: bool) {
        if let Some(menu) = &mut self.menu {
            menu.select(is_next);
        }
    }

    /// Whether the word before the cursor is the selected entry already.
    pub(crate) fn is_completed(&self) -> bool {
        self.menu()
            .and_then(CompletionMenu::selected_entry)
            .is_some_and(|it| self.menu().is_some_and(|menu| menu.query() == it.name))
    }

    /// Inserts the selected entry. Returns whether there was one.
    pub(crate) fn complete(&mut self) -> bool {
        let Some(menu) = self.menu.take() else { return false };
        let Some(entry) = menu.selected_entry() else { return false };
        let text = match menu.kind() {
            CompletionKind::Command => format!("/{} ", entry.name),
            CompletionKind::File => {
                self.chosen_paths.insert(entry.name.clone());
                format!("@{} ", entry.name)
            }
        };
        self.editor.replace_range(menu.range(), &text);
        true
    }

    /// Closes the menu until another word is written.
    pub(crate) fn close_menu(&mut self) {
        self.closed_at = self.menu.take().map(|it| it.range().start);
    }

    /// Shows the files of a query, unless another one was typed since.
    pub(crate) fn on_files(&mut self, query: &str, paths: &[String]) {
        let menu = self.menu.as_mut();
        if let Some(menu) =
            menu.filter(|it| it.kind() == CompletionKind::File && it.query() == query)
        {
            menu.set_files(paths);
        }
    }

    fn show_prompt(&mut self, text: Option<String>, commands: &[SessionCommand]) -> ComposerReply {
        if let Some(text) = text {
            self.editor.set_text(&text);
            self.menu = None;
            self.closed_at =
                CompletionMenu::find(&self.editor, commands).map(|it| it.range().start);
        }
        ComposerReply::Done
    }

    fn update_menu(&mut self, commands: &[SessionCommand]) -> ComposerReply {
        let mut before = self.menu.take();
        let Some(mut menu) = CompletionMenu::find(&self.editor, commands) else {
            self.closed_at = None;
            return ComposerReply::Done;
        };
        if self.closed_at == Some(menu.range().start) {
            return ComposerReply::Done;
        }
        self.closed_at = None;
        let is_same = before
            .as_ref()
            .is_some_and(|it| it.query() == menu.query() && it.kind() == menu.kind());
        if let Some(before) = before.take_if(|_| is_same) {
            self.menu = Some(before);
            return ComposerReply::Done;
        }
        if let Some(before) = &mut before {
            menu.keep_files(before);
        }
        let reply = match menu.kind() {
            CompletionKind::File => ComposerReply::FindFiles(menu.query().to_owned()),
            CompletionKind::Command => ComposerReply::Done,
        };
        self.menu = Some(menu);
        reply
    }
}
