//! The dialects by name.

use crate::{Dialect, claude, codex, copilot, cursor, gemini, grok, kimi, opencode, pi, plain};

/// Creates a dialect for one session.
pub type DialectFactory = fn() -> Box<dyn Dialect>;

const DIALECTS: &[(&str, DialectFactory)] = &[
    ("amp", claude::new_amp),
    ("claude", claude::new_claude),
    ("codex", codex::new_exec),
    ("codex-app-server", codex::new_app_server),
    ("copilot", copilot::new),
    ("cursor", cursor::new),
    ("gemini", gemini::new),
    ("grok", grok::new),
    ("kimi", kimi::new),
    ("opencode", opencode::new),
    ("pi", pi::new),
    ("plain", plain::new),
    ("qwen", claude::new_qwen),
];

/// Every valid value of a launch variant's `dialect`.
pub fn dialect_names() -> impl Iterator<Item = &'static str> {
    DIALECTS.iter().map(|(name, _)| *name)
}

pub fn find_dialect(name: &str) -> Option<DialectFactory> {
    DIALECTS.iter().find(|(it, _)| *it == name).map(|(_, factory)| *factory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dialect_names_match_the_catalog() {
        assert_eq!(dialect_names().collect::<Vec<_>>(), jackfield_catalog::DIALECTS);
    }
}
