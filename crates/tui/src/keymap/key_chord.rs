//! One key with its modifiers, as `config.toml` and the help write it: `ctrl-c`, `alt-enter`, `G`, `f1`.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::fmt;

/// A key with modifiers, in one form for all terminals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct KeyChord {
    code: KeyCode,
    modifiers: KeyModifiers,
}

const NAMED_KEYS: &[(&str, KeyCode)] = &[
    ("enter", KeyCode::Enter),
    ("esc", KeyCode::Esc),
    ("tab", KeyCode::Tab),
    ("space", KeyCode::Char(' ')),
    ("backspace", KeyCode::Backspace),
    ("delete", KeyCode::Delete),
    ("insert", KeyCode::Insert),
    ("up", KeyCode::Up),
    ("down", KeyCode::Down),
    ("left", KeyCode::Left),
    ("right", KeyCode::Right),
    ("home", KeyCode::Home),
    ("end", KeyCode::End),
    ("pageup", KeyCode::PageUp),
    ("pagedown", KeyCode::PageDown),
];
const MODIFIERS: &[(&str, KeyModifiers)] = &[
    ("ctrl-", KeyModifiers::CONTROL),
    ("alt-", KeyModifiers::ALT),
    ("shift-", KeyModifiers::SHIFT),
];

impl KeyChord {
    /// Parses text such as `ctrl-c`.
    pub(crate) fn parse(text: &str) -> Option<KeyChord> {
        let mut rest = text;
        let mut modifiers = KeyModifiers::NONE;
        while let Some((prefix, modifier)) = MODIFIERS
            .iter()
            .find(|(prefix, _)| rest.starts_with(prefix) && rest.len() > prefix.len())
        {
            rest = &rest[prefix.len()..];
            modifiers |= *modifier;
        }
        Some(KeyChord::normalize(parse_code(rest)?, modifiers))
    }

    pub(crate) fn of_event(key: &KeyEvent) -> KeyChord {
        KeyChord::normalize(key.code, key.modifiers)
    }

    /// The event of a terminal for this key.
    #[cfg(test)]
    pub(crate) fn to_event(self) -> KeyEvent {
        KeyEvent::new(self.code, self.modifiers)
    }

    /// Whether the key types a character.
    pub(crate) fn is_text(self) -> bool {
        matches!(self.code, KeyCode::Char(_))
            && !self.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT)
    }

    /// Terminals report Shift with characters, or only the character that results.
    fn normalize(code: KeyCode, modifiers: KeyModifiers) -> KeyChord {
        let modifiers =
            modifiers & (KeyModifiers::CONTROL | KeyModifiers::ALT | KeyModifiers::SHIFT);
        let without_shift = modifiers - KeyModifiers::SHIFT;
        match code {
            KeyCode::BackTab => {
                KeyChord { code: KeyCode::Tab, modifiers: modifiers | KeyModifiers::SHIFT }
            }
            KeyCode::Char(it) if modifiers.contains(KeyModifiers::CONTROL) => {
                KeyChord { code: KeyCode::Char(it.to_ascii_lowercase()), modifiers }
            }
            KeyCode::Char(it) if modifiers.contains(KeyModifiers::SHIFT) => {
                KeyChord { code: KeyCode::Char(it.to_ascii_uppercase()), modifiers: without_shift }
            }
            code => KeyChord { code, modifiers },
        }
    }
}

fn parse_code(text: &str) -> Option<KeyCode> {
    if let Some((_, code)) = NAMED_KEYS.iter().find(|(name, _)| *name == text) {
        return Some(*code);
    }
    let mut chars = text.chars();
    if let (Some(char), None) = (chars.next(), chars.next()) {
        return (!char.is_control() && !char.is_whitespace()).then_some(KeyCode::Char(char));
    }
    let number: u8 = text.strip_prefix('f')?.parse().ok()?;
    (1..=24).contains(&number).then_some(KeyCode::F(number))
}

impl fmt::Display for KeyChord {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (prefix, modifier) in MODIFIERS {
            if self.modifiers.contains(*modifier) {
                formatter.write_str(prefix)?;
            }
        }
        if let Some((name, _)) = NAMED_KEYS.iter().find(|(_, code)| *code == self.code) {
            return formatter.write_str(name);
        }
        match self.code {
            KeyCode::Char(char) => write!(formatter, "{char}"),
            KeyCode::F(number) => write!(formatter, "f{number}"),
            code => write!(formatter, "{code:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chord_is_printed_as_it_is_parsed() {
        for text in ["ctrl-c", "alt-enter", "ctrl-alt-x", "shift-tab", "G", "f12", "-", "ctrl--"] {
            assert_eq!(KeyChord::parse(text).unwrap().to_string(), text);
        }
        for text in ["", "ctrl-", "hyper-x", "f0", "f25", "entr", "ctrl-\u{7}"] {
            assert_eq!(KeyChord::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn shift_of_a_character_is_part_of_the_character() {
        let expected = KeyChord::parse("G").unwrap();
        for (char, modifiers) in
            [('G', KeyModifiers::NONE), ('G', KeyModifiers::SHIFT), ('g', KeyModifiers::SHIFT)]
        {
            let key = KeyEvent::new(KeyCode::Char(char), modifiers);
            assert_eq!(KeyChord::of_event(&key), expected);
        }
        let back_tab = KeyEvent::new(KeyCode::BackTab, KeyModifiers::SHIFT);
        assert_eq!(KeyChord::of_event(&back_tab), KeyChord::parse("shift-tab").unwrap());
    }
}
