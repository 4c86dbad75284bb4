//! The menu of the input field: commands of the agent after `/`, files after `@`.

use crate::{editor::TextEditor, hub::SessionCommand, text::sanitize_line};
use std::ops::Range;

/// Entries for the word before the cursor.
#[derive(Debug)]
pub(crate) struct CompletionMenu {
    kind: CompletionKind,
    /// The word in the text of the field, with its first character.
    range: Range<usize>,
    query: String,
    entries: Vec<CompletionEntry>,
    selected: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CompletionKind {
    Command,
    File,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CompletionEntry {
    /// A command without `/`, or a path.
    pub(crate) name: String,
    pub(crate) description: String,
}

const ENTRIES_MAX: usize = 50;

impl CompletionMenu {
    /// The menu for the word before the cursor. That of files is empty until the files arrive.
    pub(crate) fn find(editor: &TextEditor, commands: &[SessionCommand]) -> Option<CompletionMenu> {
        let before = &editor.edited_text()[..editor.cursor()];
        let start = before
            .rfind(char::is_whitespace)
            .map_or(0, |it| it + before[it..].chars().next().map_or(0, char::len_utf8));
        let (range, word) = (start..before.len(), &before[start..]);
        if let Some(query) = word.strip_prefix('/').filter(|_| start == 0) {
            let entries = match_commands(query, commands);
            let (kind, query) = (CompletionKind::Command, query.to_owned());
            let has_entries = !entries.is_empty();
            return has_entries.then_some(CompletionMenu {
                kind,
                range,
                query,
                entries,
                selected: 0,
            });
        }
        let query = word.strip_prefix('@')?.to_owned();
        let (kind, entries) = (CompletionKind::File, Vec::new());
        Some(CompletionMenu { kind, range, query, entries, selected: 0 })
    }

    pub(crate) fn kind(&self) -> CompletionKind {
        self.kind
    }

    pub(crate) fn query(&self) -> &str {
        &self.query
    }

    pub(crate) fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    pub(crate) fn entries(&self) -> &[CompletionEntry] {
        &self.entries
    }

    pub(crate) fn selected(&self) -> usize {
        self.selected
    }

    pub(crate) fn selected_entry(&self) -> Option<&CompletionEntry> {
        self.entries.get(self.selected)
    }

    /// Shows files, and keeps those of the query before until then.
    pub(crate) fn set_files(&mut self, paths: &[String]) {
        let entry = |it: &String| CompletionEntry { name: it.clone(), description: String::new() };
        self.entries = paths.iter().take(ENTRIES_MAX).map(entry).collect();
        self.selected = 0;
    }

    /// Takes the files of the menu before, which are shown until those of this query arrive.
    pub(crate) fn keep_files(&mut self, before: &mut CompletionMenu) {
        if self.kind == CompletionKind::File && before.kind == CompletionKind::File {
            self.entries = std::mem::take(&mut before.entries);
        }
    }

    /// Selects the next entry, or the one before; after the last the first.
    pub(crate) fn select(&mut self, is_next: bool) {
        let count = self.entries.len().max(1);
        self.selected = (self.selected + if is_next { 1 } else { count - 1 }) % count;
    }
}

/// Commands that start with the typed text come first.
fn match_commands(typed: &str, commands: &[SessionCommand]) -> Vec<CompletionEntry> {
    let typed = typed.to_lowercase();
    let starts = |it: &&SessionCommand| it.name.to_lowercase().starts_with(&typed);
    let (starting, others): (Vec<_>, Vec<_>) = commands.iter().partition(starts);
    let containing = others.into_iter().filter(|it| it.name.to_lowercase().contains(&typed));
    let entries = starting.into_iter().chain(containing).take(ENTRIES_MAX);
    entries
        .map(|it| CompletionEntry {
            name: it.name.clone(),
            description: sanitize_line(&it.description).into_owned(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keymap::EditingKeys;

    fn menu(text: &str) -> Option<CompletionMenu> {
        let commands = ["review", "web-review", "plan"]
            .map(|name| SessionCommand { name: name.to_owned(), description: String::new() });
        let mut editor = TextEditor::new(EditingKeys::Emacs);
        editor.paste(text);
        CompletionMenu::find(&editor, &commands)
    }

    #[test]
    fn commands_match_at_the_start_of_the_prompt() {
        let names =
            |it: CompletionMenu| it.entries.iter().map(|it| it.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(menu("/REV").unwrap()), ["review", "web-review"]);
        assert_eq!(names(menu("/").unwrap()).len(), 3);
        assert!(menu("/x").is_none() && menu("/review now").is_none() && menu("a /rev").is_none());
    }

    #[test]
    fn files_match_after_a_space() {
        let files = menu("see @src/m").unwrap();
        assert_eq!(
            (files.kind, files.query.as_str(), files.range),
            (CompletionKind::File, "src/m", 4..10)
        );
        assert!(menu("me@example").is_none() && menu("@a b").is_none());
    }
}
