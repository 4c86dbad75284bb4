//! Keys of the input field.

use super::{EditorReply, TextEditor};
use crate::keymap::{EditingKeys, KeyChord};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Types keys: `<ctrl-a>` is a chord, everything else a character.
fn type_keys(editor: &mut TextEditor, keys: &str) -> EditorReply {
    let mut reply = EditorReply::Ignored;
    let mut rest = keys;
    while let Some(char) = rest.chars().next() {
        let named = rest.strip_prefix('<').and_then(|it| it.split_once('>'));
        let chord = named.and_then(|(name, after)| Some((KeyChord::parse(name)?, after)));
        let char_key = KeyEvent::new(KeyCode::Char(char), KeyModifiers::NONE);
        let (key, after) = chord.map_or((char_key, &rest[char.len_utf8()..]), |(chord, after)| {
            (chord.to_event(), after)
        });
        reply = editor.on_key(&key);
        rest = after;
    }
    reply
}

fn edit(keys: EditingKeys, text: &str, typed: &str) -> String {
    let mut editor = TextEditor::new(keys);
    editor.paste(text);
    type_keys(&mut editor, typed);
    let (text, cursor) = (editor.edited_text(), editor.cursor());
    format!("{}|{}", &text[..cursor], &text[cursor..])
}

#[test]
fn emacs_keys_edit_the_text() {
    for (text, typed, expected) in [
        ("", "héllo 日本", "héllo 日本|"),
        ("one two three", "<alt-b><alt-b><alt-d>", "one | three"),
        ("one two", "<ctrl-w><ctrl-w><ctrl-y>", "one two|"),
        ("one two", "<ctrl-w><ctrl-a><ctrl-k><ctrl-y><alt-y>", "two|"),
        ("one\ntwo", "<ctrl-u><backspace>", "one|"),
        ("one\ntwo", "<up><ctrl-k>", "one|two"),
        ("xy", "<ctrl-t>", "yx|"),
        ("word", " more words<ctrl-_><ctrl-7>", "word |"),
        ("word", " x<ctrl-_><ctrl-_><alt-_>", "word |"),
        ("ab\ncdef\ng", "<up><up>", "a|b\ncdef\ng"),
        ("abcd\ne\nfghi", "<up><up>", "abcd|\ne\nfghi"),
        ("abc", "<home><ctrl-d><right><ctrl-h>", "|c"),
        ("a b", "<alt-<>x", "x|a b"),
    ] {
        assert_eq!(edit(EditingKeys::Emacs, text, typed), expected, "{typed}");
    }
}

#[test]
fn vi_keys_edit_the_text() {
    for (text, typed, expected) in [
        ("one two", "<esc>0x", "|ne two"),
        ("one two three", "<esc>0dw", "|two three"),
        ("one two three", "<esc>02dw", "|three"),
        ("one two", "<esc>0cwnew<esc>", "ne|w two"),
        ("one two", "<esc>bD", "one| "),
        ("a\nb\nc", "<esc>ggdd", "|b\nc"),
        ("a\nb\nc", "<esc>dd", "a\n|b"),
        ("a\nb\nc", "<esc>ggyyGp", "a\nb\nc\n|a"),
        ("a\nb", "<esc>ggyyP", "|a\na\nb"),
        ("a\nb\nc\nd", "<esc>ggdj", "|c\nd"),
        ("a\nb\nc\nd", "<esc>ggdG", "|"),
        ("xy", "<esc>0xp", "y|x"),
        ("ab", "<esc>oc<esc>", "ab\n|c"),
        ("ab", "<esc>Oc<esc>", "|c\nab"),
        ("  ab", "<esc>Ix", "  x|ab"),
        ("ab", "<esc>0Ax", "abx|"),
        ("ab", "<esc>0ax", "ax|b"),
        ("ab", "<esc>oc d e<esc>u", "a|b"),
        ("ab", "<esc>0xu", "|ab"),
        ("ab", "<esc>0xxuu<ctrl-r>", "|b"),
        ("foo.bar", "<esc>0eex", "foo|bar"),
        ("one two", "<esc>0wyep$p", "one ttwowotw|o"),
        ("abc", "<esc>0rx", "|xbc"),
        ("a b", "<esc>ccx", "x|"),
    ] {
        assert_eq!(edit(EditingKeys::Vi, text, typed), expected, "{typed} in {text:?}");
    }
}

#[test]
fn motion_beyond_the_first_or_last_row_is_reported() {
    let mut editor = TextEditor::new(EditingKeys::Emacs);
    editor.paste("a\nb");
    assert_eq!(type_keys(&mut editor, "<down>"), EditorReply::AtLastRow);
    assert_eq!(type_keys(&mut editor, "<up>"), EditorReply::Moved);
    assert_eq!(type_keys(&mut editor, "<up>"), EditorReply::AtFirstRow);
    assert_eq!(type_keys(&mut editor, "<ctrl-x><ctrl-e>"), EditorReply::EditExternally);
}

#[test]
fn pasted_lines_are_one_edit() {
    let mut editor = TextEditor::new(EditingKeys::Emacs);
    type_keys(&mut editor, "see ");
    editor.paste(&"line\r\n".repeat(120));
    assert_eq!(editor.rows()[0].text, "see [pasted 120 lines]");
    assert_eq!(editor.text(), format!("see {}", "line\n".repeat(120)));
    type_keys(&mut editor, "<backspace>");
    assert_eq!(editor.text(), "see ");
    type_keys(&mut editor, "<ctrl-_>");
    assert_eq!(editor.take_text().len(), 4 + 120 * 5);
    assert!(editor.is_empty());
}

#[test]
fn single_line_has_no_line_break() {
    let mut editor = TextEditor::single_line("old\nname");
    editor.paste("\nx");
    editor.insert_newline();
    assert_eq!(editor.text(), "old name x ");
}
