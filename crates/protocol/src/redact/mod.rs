//! Taking secrets out of text that is kept or shown: lists, logs, exports, reports. What agents and
//! clients say to each other is never touched.
//!
//! [`text`] does it for a whole text, [`PieceRedactor`] for one that comes in pieces, [`json`] for a value.
//! A secret is known by its shape (`shapes`, `keys`), by the name it is given (`names`), by the command
//! or the file that it stands in (`context`), or because an agent was started with it ([`SecretRedactor`]).
//!
//! The scanner reads a text once and keeps one word of it, at most 16 KiB. `corpus` lists what is
//! recognized and what must stay as it is.
//!
//! **Invariant:** it does not matter how a text is cut into pieces.

mod context;
mod json;
mod keys;
mod lead;
mod names;
mod pieces;
mod scanner;
mod search;
mod shapes;
mod value;

pub use json::{argv, json};
pub use names::{is_secret_name, is_secret_variable};
pub use pieces::PieceRedactor;

use std::borrow::Cow;

/// What stands where a secret stood.
pub const HIDDEN: &str = "***";

/// Shorter values are words like `true`, and hiding them would hide half the text.
const VALUE_BYTES_MIN: usize = 6;

/// The same text without secrets.
pub fn text(text: &str) -> Cow<'_, str> {
    let mut scanner = scanner::SecretScanner::default();
    let mut runs = Vec::new();
    text.chars().for_each(|c| scanner.feed(c, &mut runs));
    scanner.finish(&mut runs);
    if runs.iter().all(|run| !run.hidden) {
        return Cow::Borrowed(text);
    }
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    let mut before = false;
    for run in runs {
        match (run.hidden, before) {
            (false, _) => out.push_str(&text[at..at + run.bytes]),
            (true, false) => out.push_str(HIDDEN),
            (true, true) => {}
        }
        (before, at) = (run.hidden, at + run.bytes);
    }
    Cow::Owned(out)
}

/// Redacts the secrets that one agent was given, and texts that look like a secret.
#[derive(Clone, Default)]
pub struct SecretRedactor {
    /// Longest first, so that a value which contains another is hidden whole.
    values: Vec<String>,
}

impl SecretRedactor {
    pub fn new(env: &[(String, String)]) -> SecretRedactor {
        let mut values: Vec<String> = env
            .iter()
            .filter(|(name, _)| is_secret_variable(name))
            // A key file in a variable may be printed line by line.
            .flat_map(|(_, value)| value.lines().map(str::trim))
            .filter(|value| VALUE_BYTES_MIN <= value.len())
            .map(str::to_owned)
            .collect();
        values.sort_unstable_by_key(|value| std::cmp::Reverse(value.len()));
        values.dedup();
        SecretRedactor { values }
    }

    pub fn redact(&self, it: &str) -> String {
        let mut known = it.to_owned();
        for value in &self.values {
            if known.contains(value) {
                known = known.replace(value, HIDDEN);
            }
        }
        text(&known).into_owned()
    }
}

#[cfg(test)]
mod corpus;
#[cfg(test)]
mod tests;
