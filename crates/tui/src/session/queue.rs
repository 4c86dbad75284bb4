//! The prompts that wait in a session.

use crate::hub::QueuedPrompt;

/// The queue, and the selected prompt in it.
#[derive(Debug, Default)]
pub(crate) struct PromptQueue {
    prompts: Vec<QueuedPrompt>,
    /// The number of the selected prompt.
    selected: Option<u64>,
}

impl PromptQueue {
    pub(crate) fn prompts(&self) -> &[QueuedPrompt] {
        &self.prompts
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.prompts.is_empty()
    }

    /// Replaces the prompts. The selection stays, or goes to the prompt at the same place.
    pub(crate) fn set_prompts(&mut self, prompts: Vec<QueuedPrompt>) {
        let index = self.selected_index();
        self.prompts = prompts;
        if self.prompts.iter().all(|it| Some(it.number) != self.selected) {
            let index = index.min(self.prompts.len().saturating_sub(1));
            self.selected = self.prompts.get(index).map(|it| it.number);
        }
    }

    /// The place of the selected prompt; 0 if there is none.
    pub(crate) fn selected_index(&self) -> usize {
        self.prompts.iter().position(|it| Some(it.number) == self.selected).unwrap_or(0)
    }

    pub(crate) fn selected_prompt(&self) -> Option<&QueuedPrompt> {
        self.prompts.get(self.selected_index())
    }

    pub(crate) fn select_index(&mut self, index: usize) {
        let index = index.min(self.prompts.len().saturating_sub(1));
        self.selected = self.prompts.get(index).map(|it| it.number);
    }

    /// How many prompts a cancel of the turn withdraws. Held ones stay, because they do not run by themselves.
    pub(crate) fn withdrawn_by_cancel(&self) -> usize {
        self.prompts.iter().filter(|it| !it.is_held).count()
    }

    /// The move of the selected prompt by one place: its number, and the prompt that will follow it.
    /// Held prompts have no place.
    pub(crate) fn plan_move(&self, is_down: bool) -> Option<(u64, Option<u64>)> {
        let selected = self.selected_prompt()?.number;
        let movable: Vec<u64> =
            self.prompts.iter().filter(|it| !it.is_held).map(|it| it.number).collect();
        let index = movable.iter().position(|it| *it == selected)?;
        let before = if is_down {
            movable.get(index + 1)?;
            movable.get(index + 2).copied()
        } else {
            Some(movable[index.checked_sub(1)?])
        };
        Some((selected, before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(prompts: &[(u64, bool)]) -> PromptQueue {
        let mut queue = PromptQueue::default();
        let prompt = |&(number, is_held): &(u64, bool)| QueuedPrompt {
            number,
            by: "cli".to_owned(),
            text: format!("prompt {number}"),
            is_held,
        };
        queue.set_prompts(prompts.iter().map(prompt).collect());
        queue
    }

    #[test]
    fn prompt_is_moved_by_one_place() {
        let mut queue = queue(&[(1, false), (2, false), (3, false), (4, true)]);
        assert_eq!(queue.plan_move(false), None);
        assert_eq!(queue.plan_move(true), Some((1, Some(3))));
        queue.select_index(1);
        assert_eq!(queue.plan_move(true), Some((2, None)));
        assert_eq!(queue.plan_move(false), Some((2, Some(1))));
        queue.select_index(3);
        assert_eq!(queue.plan_move(false), None);
        assert_eq!(queue.withdrawn_by_cancel(), 3);
    }

    #[test]
    fn selection_goes_to_the_next_prompt_when_its_prompt_has_started() {
        let mut queue = queue(&[(1, false), (2, false), (3, false)]);
        queue.select_index(1);
        let rest = queue.prompts.iter().filter(|it| it.number != 2).cloned().collect();
        queue.set_prompts(rest);
        assert_eq!(queue.selected_prompt().map(|it| it.number), Some(3));
    }
}
