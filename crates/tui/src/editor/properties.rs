//! Properties of the input field under random keys and pasted texts.

use super::TextEditor;
use crate::{keymap::EditingKeys, text::cell_width};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use proptest::prelude::*;
use unicode_segmentation::UnicodeSegmentation as _;

#[derive(Debug, Clone)]
enum EditStep {
    Key(KeyCode, KeyModifiers),
    Paste(String),
    Newline,
    Width(u16),
}

fn any_step() -> impl Strategy<Value = EditStep> {
    let text = prop::sample::select(vec![
        "a",
        "b c",
        "日本",
        "e\u{301}",
        "\u{301}",
        "👨‍👩‍👧",
        "🇩🇪🇫🇷",
        "\t",
        "x\ny",
        "\u{200d}",
        "한글",
        "-",
    ]);
    let char = prop::sample::select(
        "abcdehijlnopuwxyGgrAIoODCsSpPX0^$23 .日\u{301}é".chars().collect::<Vec<_>>(),
    );
    let control = prop::sample::select("abefhpndwukytx_".chars().collect::<Vec<_>>());
    let alt = prop::sample::select("bfdy<>_".chars().collect::<Vec<_>>());
    let named = prop::sample::select(vec![
        KeyCode::Esc,
        KeyCode::Backspace,
        KeyCode::Delete,
        KeyCode::Left,
        KeyCode::Right,
        KeyCode::Up,
        KeyCode::Down,
        KeyCode::Home,
        KeyCode::End,
    ]);
    let key = |modifiers| move |it| EditStep::Key(KeyCode::Char(it), modifiers);
    prop_oneof![
        6 => char.prop_map(key(KeyModifiers::NONE)),
        3 => control.prop_map(key(KeyModifiers::CONTROL)),
        1 => alt.prop_map(key(KeyModifiers::ALT)),
        3 => named.prop_map(|it| EditStep::Key(it, KeyModifiers::NONE)),
        3 => text.prop_map(|it| EditStep::Paste(it.to_owned())),
        1 => Just(EditStep::Paste("long line\n".repeat(30))),
        1 => Just(EditStep::Newline),
        1 => (1u16..30).prop_map(EditStep::Width),
    ]
}

fn apply(editor: &mut TextEditor, step: &EditStep) {
    match step {
        EditStep::Key(code, modifiers) => {
            editor.on_key(&KeyEvent::new(*code, *modifiers));
        }
        EditStep::Paste(text) => editor.paste(text),
        EditStep::Newline => editor.insert_newline(),
        EditStep::Width(width) => editor.set_width(*width),
    }
}

fn check_cursor(editor: &TextEditor, width: u16) {
    let text = editor.edited_text();
    let is_boundary = editor.cursor() == text.len()
        || text.grapheme_indices(true).any(|(index, _)| index == editor.cursor());
    assert!(is_boundary, "{} in {text:?}", editor.cursor());
    let (row, column) = editor.cursor_cell();
    assert!(row < editor.rows().len() && column < usize::from(width), "{row}, {column}");
    for row in editor.rows() {
        assert!(cell_width(&row.text) <= usize::from(width), "{row:?}");
    }
}

fn check_rows_cover_text(editor: &TextEditor) {
    let mut at = 0;
    for row in editor.rows() {
        let gap = &editor.edited_text()[at..row.range.start];
        assert!(gap.is_empty() || gap == "\n", "{gap:?}");
        at = row.range.end;
    }
    assert_eq!(at, editor.edited_text().len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn undo_returns_to_the_first_text_and_redo_to_the_last(
        keys in prop::sample::select(vec![EditingKeys::Emacs, EditingKeys::Vi]),
        steps in prop::collection::vec(any_step(), 0..60),
    ) {
        let mut editor = TextEditor::new(keys);
        for step in &steps {
            apply(&mut editor, step);
        }
        let last = editor.text();
        // What was undone by the steps comes back first.
        while editor.log.redo(&mut editor.buffer) {}
        let newest = editor.text();
        while editor.log.undo(&mut editor.buffer) {}
        prop_assert_eq!(editor.text(), "");
        while editor.log.redo(&mut editor.buffer) {}
        prop_assert_eq!(editor.text(), newest);
        prop_assert!(last.len() < 1_000_000);
    }

    #[test]
    fn cursor_is_on_a_cluster_boundary_and_inside_the_field(
        keys in prop::sample::select(vec![EditingKeys::Emacs, EditingKeys::Vi]),
        steps in prop::collection::vec(any_step(), 0..60),
    ) {
        let mut editor = TextEditor::new(keys);
        let mut width = 80;
        for step in &steps {
            if let EditStep::Width(changed) = step {
                width = *changed;
            }
            apply(&mut editor, step);
            check_cursor(&editor, width);
        }
        check_rows_cover_text(&editor);
    }
}
