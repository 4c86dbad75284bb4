//! The dialects by name.

use crate::{Dialect, claude, codex, copilot, cursor, gemini, grok, kimi, opencode, pi, plain};

type Make = fn() -> Box<dyn Dialect>;

const DIALECTS: &[(&str, Make)] = &[
    ("amp", claude::amp),
    ("claude", claude::claude),
    ("codex", codex::exec),
    ("codex-app-server", codex::app_server),
    ("copilot", copilot::new),
    ("cursor", cursor::new),
    ("gemini", gemini::new),
    ("grok", grok::new),
    ("kimi", kimi::new),
    ("opencode", opencode::new),
    ("pi", pi::new),
    ("plain", plain::new),
    ("qwen", claude::qwen),
];

/// Every name a catalogue's `dialect = …` may give.
pub fn names() -> impl Iterator<Item = &'static str> {
    DIALECTS.iter().map(|(name, _)| *name)
}

/// What makes a dialect for one session.
pub fn dialect(name: &str) -> Option<Make> {
    DIALECTS.iter().find(|(it, _)| *it == name).map(|(_, make)| *make)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_catalogue_names_these_and_no_others() {
        assert_eq!(names().collect::<Vec<_>>(), jackfield_catalogue::DIALECTS);
    }
}
