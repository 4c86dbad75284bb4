//! Earlier prompts, which the arrow keys show in the input field.

/// The prompts of a session in the order of its log, and which of them is shown.
#[derive(Debug, Default)]
pub(crate) struct PromptHistory {
    /// The newest is the last.
    prompts: Vec<HistoryPrompt>,
    /// The shown prompt; `None` while the user's own text is shown.
    shown: Option<usize>,
    /// The text before the first step back.
    draft: String,
}

#[derive(Debug)]
struct HistoryPrompt {
    /// The event of the prompt; `None` for a prompt that was sent from here and is not in the log yet.
    seq: Option<u64>,
    text: String,
}

/// More than a user goes through with a key press for each prompt.
const PROMPTS_MAX: usize = 500;

impl PromptHistory {
    /// Adds a prompt that was sent from here.
    pub(crate) fn push_sent(&mut self, text: &str) {
        self.shown = None;
        self.draft.clear();
        if !text.trim().is_empty() {
            self.prompts.push(HistoryPrompt { seq: None, text: text.to_owned() });
            self.drop_oldest();
        }
    }

    /// Adds a prompt of the log. Pages of the log arrive in any order, and more than once.
    pub(crate) fn add_logged(&mut self, seq: u64, text: String) {
        if text.trim().is_empty() || self.prompts.iter().any(|it| it.seq == Some(seq)) {
            return;
        }
        if let Some(sent) = self.prompts.iter_mut().find(|it| it.seq.is_none() && it.text == text) {
            sent.seq = Some(seq);
            return;
        }
        let is_later = |it: &HistoryPrompt| it.seq.is_none_or(|it| it > seq);
        let index = self.prompts.iter().position(is_later).unwrap_or(self.prompts.len());
        self.prompts.insert(index, HistoryPrompt { seq: Some(seq), text });
        self.shown = self.shown.map(|it| if it >= index { it + 1 } else { it });
        self.drop_oldest();
    }

    /// The prompt before the shown one. `current` is kept as the draft at the first step.
    pub(crate) fn previous(&mut self, current: &str) -> Option<&str> {
        let mut index = self.shown.unwrap_or(self.prompts.len()).checked_sub(1)?;
        // A prompt that was sent several times is shown once.
        while self.prompts[index].text == current {
            index = index.checked_sub(1)?;
        }
        if self.shown.is_none() {
            current.clone_into(&mut self.draft);
        }
        self.shown = Some(index);
        Some(&self.prompts[index].text)
    }

    /// The prompt after the shown one, or the draft after the newest.
    pub(crate) fn next(&mut self, current: &str) -> Option<&str> {
        let mut index = self.shown? + 1;
        while self.prompts.get(index).is_some_and(|it| it.text == current) {
            index += 1;
        }
        self.shown = (index < self.prompts.len()).then_some(index);
        Some(self.shown.map_or(self.draft.as_str(), |it| &self.prompts[it].text))
    }

    /// The text was edited: it is the draft from now on.
    pub(crate) fn leave(&mut self) {
        self.shown = None;
    }

    fn drop_oldest(&mut self) {
        if self.prompts.len() > PROMPTS_MAX {
            self.prompts.remove(0);
            self.shown = self.shown.and_then(|it| it.checked_sub(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draft_returns_after_the_newest_prompt() {
        let mut history = PromptHistory::default();
        history.add_logged(7, "two".to_owned());
        history.add_logged(3, "one".to_owned());
        history.push_sent("three");
        history.push_sent("three");
        assert_eq!(history.next("draft"), None);
        assert_eq!(history.previous("draft"), Some("three"));
        assert_eq!(history.previous("three"), Some("two"));
        history.add_logged(1, "zero".to_owned());
        assert_eq!(history.previous("two"), Some("one"));
        assert_eq!(history.previous("one"), Some("zero"));
        assert_eq!(history.previous("zero"), None);
        assert_eq!(history.next("zero"), Some("one"));
        assert_eq!(history.next("one"), Some("two"));
        assert_eq!(history.next("two"), Some("three"));
        assert_eq!(history.next("three"), Some("draft"));
        assert_eq!(history.next("draft"), None);
    }

    #[test]
    fn prompt_of_the_log_is_kept_once() {
        let mut history = PromptHistory::default();
        history.push_sent("sent");
        history.add_logged(9, "sent".to_owned());
        history.add_logged(9, "sent".to_owned());
        history.add_logged(5, "older".to_owned());
        assert_eq!(history.previous(""), Some("sent"));
        assert_eq!(history.previous("sent"), Some("older"));
        assert_eq!(history.previous("older"), None);
    }
}
