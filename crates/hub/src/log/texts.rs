//! Texts that many sessions have in common, kept once. What an agent offers with a session is a few
//! kilobytes, and the same for all of its sessions.

use bytes::Bytes;
use jackfield_events::{RawJson, SessionSummary};
use std::collections::BTreeSet;

#[derive(Debug, Default)]
pub struct Texts {
    shared: BTreeSet<Bytes>,
    /// How many are worth looking through for those that nobody has any more.
    sweep_at: usize,
}

/// Shorter ones cost less than a place here.
const SHARED_BYTES_MIN: usize = 64;

/// So few are never worth a look.
const SWEEP_MIN: usize = 256;

impl Texts {
    /// The large texts of a session that will be kept for long.
    pub fn share_all(&mut self, state: &mut SessionSummary) {
        self.share(&mut state.params);
        self.share(&mut state.setup);
        for option in state.config.values_mut() {
            self.share(option);
        }
        state.argv.shrink_to_fit();
    }

    fn share(&mut self, json: &mut RawJson) {
        if json.bytes().len() < SHARED_BYTES_MIN {
            return;
        }
        if let Some(known) = self.shared.get(json.bytes()) {
            *json = RawJson::trusted(known.clone());
            return;
        }
        // A copy: the text may be a small part of a large line that would stay with it.
        let text = Bytes::copy_from_slice(json.bytes());
        *json = RawJson::trusted(text.clone());
        self.shared.insert(text);
        if self.sweep_at.max(SWEEP_MIN) < self.shared.len() {
            self.shared.retain(|it| !it.is_unique());
            self.sweep_at = 2 * self.shared.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(setup: &str) -> SessionSummary {
        SessionSummary { setup: RawJson::trusted(setup.to_owned()), ..SessionSummary::default() }
    }

    #[test]
    fn equal_texts_are_kept_once_and_stay_equal() {
        let mut texts = Texts::default();
        let offer = format!("\"{}\"", "x".repeat(5_000));
        let mut states = [state(&offer), state(&offer), state("1")];
        for state in &mut states {
            texts.share_all(state);
        }
        let [one, two, small] = states;
        assert_eq!(one.setup.as_str(), offer);
        assert_eq!(one.setup.bytes().as_ptr(), two.setup.bytes().as_ptr());
        assert_eq!(small.setup.as_str(), "1");
        assert_eq!(texts.shared.len(), 1);
    }

    #[test]
    fn texts_that_nobody_has_are_forgotten_in_time() {
        let mut texts = Texts::default();
        for number in 0..10 * SWEEP_MIN {
            texts.share_all(&mut state(&format!("\"{number:0>100}\"")));
        }
        assert!(texts.shared.len() <= SWEEP_MIN + 1, "{}", texts.shared.len());
    }
}
