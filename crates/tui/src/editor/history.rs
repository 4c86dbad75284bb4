//! Earlier prompts, which the arrow keys show in the input field.

/// The prompts of a session, and which of them is shown.
#[derive(Debug, Default)]
pub(crate) struct PromptHistory {
    /// The newest is the last.
    prompts: Vec<String>,
    /// The shown prompt; `None` while the user's own text is shown.
    shown: Option<usize>,
    /// The text before the first step back.
    draft: String,
}

/// More than a user goes through with a key press for each prompt.
const PROMPTS_MAX: usize = 500;

impl PromptHistory {
    /// Adds the newest prompt. A prompt that equals the one before is kept once.
    pub(crate) fn push(&mut self, prompt: &str) {
        self.shown = None;
        self.draft.clear();
        if prompt.trim().is_empty() || self.prompts.last().is_some_and(|it| it == prompt) {
            return;
        }
        if self.prompts.len() == PROMPTS_MAX {
            self.prompts.remove(0);
        }
        self.prompts.push(prompt.to_owned());
    }

    /// Puts prompts before all others, as older pages of the transcript are loaded.
    pub(crate) fn prepend(&mut self, prompts: Vec<String>) {
        let free = PROMPTS_MAX.saturating_sub(self.prompts.len());
        let skipped = prompts.len().saturating_sub(free);
        let count = prompts.len() - skipped;
        self.prompts.splice(0..0, prompts.into_iter().skip(skipped));
        self.shown = self.shown.map(|it| it + count);
    }

    /// The prompt before the shown one. `current` is kept as the draft at the first step.
    pub(crate) fn previous(&mut self, current: &str) -> Option<&str> {
        let index = self.shown.unwrap_or(self.prompts.len()).checked_sub(1)?;
        if self.shown.is_none() {
            current.clone_into(&mut self.draft);
        }
        self.shown = Some(index);
        Some(&self.prompts[index])
    }

    /// The prompt after the shown one, or the draft after the newest.
    pub(crate) fn next(&mut self) -> Option<&str> {
        let index = self.shown? + 1;
        self.shown = (index < self.prompts.len()).then_some(index);
        Some(self.shown.map_or(self.draft.as_str(), |it| &self.prompts[it]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draft_returns_after_the_newest_prompt() {
        let mut history = PromptHistory::default();
        history.push("one");
        history.push("two");
        history.push("two");
        assert_eq!(history.next(), None);
        assert_eq!(history.previous("draft"), Some("two"));
        assert_eq!(history.previous("two"), Some("one"));
        assert_eq!(history.previous("one"), None);
        history.prepend(vec!["zero".to_owned()]);
        assert_eq!(history.previous("one"), Some("zero"));
        assert_eq!(history.next(), Some("one"));
        assert_eq!(history.next(), Some("two"));
        assert_eq!(history.next(), Some("draft"));
        assert_eq!(history.next(), None);
    }
}
