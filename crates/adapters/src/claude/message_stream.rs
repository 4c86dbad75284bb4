//! Text that is streamed, repeated as a complete block, and restarted after an interruption is sent
//! once.

use crate::AdapterTurn;

/// Whether a block is text or a thought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BlockKind {
    Text,
    Thought,
}

impl BlockKind {
    fn send(self, message: &str, text: &str, turn: &mut AdapterTurn) {
        match self {
            BlockKind::Text => turn.send_text(message, text),
            BlockKind::Thought => turn.send_thought(message, text),
        }
    }
}

/// One block of a message, and the text that an earlier attempt has sent.
#[derive(Debug)]
struct StreamedBlock {
    kind: BlockKind,
    message: String,
    /// Its index in the message while it is streamed.
    index: Option<u64>,
    /// The text of this attempt.
    text: String,
    /// The message id and the text that were sent before the interruption.
    earlier: Option<(String, String)>,
    /// Whether the complete block will contain the text of the earlier attempt, too.
    includes_earlier: bool,
}

impl StreamedBlock {
    fn new(kind: BlockKind, message: &str, index: Option<u64>) -> StreamedBlock {
        let message = message.to_owned();
        StreamedBlock {
            kind,
            message,
            index,
            text: String::new(),
            earlier: None,
            includes_earlier: false,
        }
    }

    fn push_delta(&mut self, delta: &str, turn: &mut AdapterTurn) {
        self.text.push_str(delta);
        let Some((message, sent)) = self.earlier.take() else {
            self.kind.send(&self.message, delta, turn);
            return;
        };
        if sent.starts_with(&self.text) {
            self.earlier = Some((message, sent));
        } else if let Some(new) = self.text.strip_prefix(&sent) {
            self.kind.send(&message, new, turn);
            self.message = message;
        } else {
            // The answer differs from the earlier attempt, so it is sent as a separate message.
            self.kind.send(&self.message, &self.text, turn);
        }
    }

    fn push_full(&mut self, full: &str, turn: &mut AdapterTurn) {
        if let Some(missing) = full.strip_prefix(self.text.as_str()) {
            let missing = missing.to_owned();
            self.push_delta(&missing, turn);
        }
    }

    /// Whether a complete block can be the repetition of this one.
    fn matches_full(&self, full: &str) -> bool {
        self.includes_earlier || full.starts_with(&self.text)
    }

    /// The program streams the block again from its beginning.
    fn restart(&mut self) {
        if self.earlier.is_none() && !self.text.is_empty() {
            self.earlier = Some((self.message.clone(), std::mem::take(&mut self.text)));
        }
        self.text.clear();
        self.includes_earlier = true;
    }
}

/// The text and thoughts of one turn.
#[derive(Debug, Default)]
pub(super) struct MessageStream {
    /// The id of the message that is being streamed.
    message: String,
    /// Streamed blocks that were not yet repeated as complete blocks.
    blocks: Vec<StreamedBlock>,
    /// Interrupted blocks: the next block of the same kind repeats them.
    interrupted: Vec<StreamedBlock>,
    /// Whether the agent has sent text in this turn.
    pub(super) has_text: bool,
}

impl MessageStream {
    pub(super) fn start_message(&mut self, id: &str) {
        id.clone_into(&mut self.message);
    }

    pub(super) fn start_block(&mut self, index: u64, kind: BlockKind) {
        self.end_block(index);
        let block = self.next_block(kind, &self.message.clone(), Some(index));
        self.blocks.push(block);
    }

    pub(super) fn push_delta(
        &mut self,
        index: u64,
        kind: BlockKind,
        delta: &str,
        turn: &mut AdapterTurn,
    ) {
        self.has_text |= kind == BlockKind::Text && !delta.is_empty();
        let open = |block: &StreamedBlock| block.index == Some(index) && block.kind == kind;
        if !self.blocks.iter().any(open) {
            self.start_block(index, kind);
        }
        if let Some(block) = self.blocks.iter_mut().find(|block| open(block)) {
            block.push_delta(delta, turn);
        }
    }

    pub(super) fn end_block(&mut self, index: u64) {
        for block in &mut self.blocks {
            block.index.take_if(|it| *it == index);
        }
    }

    /// A complete block. Some programs give it another message id than its deltas.
    pub(super) fn push_full(
        &mut self,
        message: &str,
        kind: BlockKind,
        full: &str,
        turn: &mut AdapterTurn,
    ) {
        self.has_text |= kind == BlockKind::Text && !full.is_empty();
        let same = |block: &StreamedBlock| block.kind == kind && block.message == message;
        let like = |block: &StreamedBlock| block.kind == kind && block.matches_full(full);
        let at = self.blocks.iter().position(same).or_else(|| self.blocks.iter().position(like));
        let mut block = match at {
            Some(at) => self.blocks.remove(at),
            None => self.next_block(kind, message, None),
        };
        block.push_full(full, turn);
    }

    /// The stream was interrupted; the program sends the message again under another id.
    pub(super) fn interrupt(&mut self) {
        self.interrupted.append(&mut self.blocks);
    }

    /// The stream was interrupted; the program repeats the beginning in the same block.
    pub(super) fn restart(&mut self) {
        self.blocks.iter_mut().for_each(StreamedBlock::restart);
    }

    /// The message is complete, so no interrupted block will be repeated.
    pub(super) fn on_message_complete(&mut self) {
        self.interrupted.clear();
    }

    fn next_block(&mut self, kind: BlockKind, message: &str, index: Option<u64>) -> StreamedBlock {
        let Some(at) = self.interrupted.iter().position(|block| block.kind == kind) else {
            return StreamedBlock::new(kind, message, index);
        };
        let mut block = self.interrupted.remove(at);
        block.restart();
        StreamedBlock { message: message.to_owned(), index, includes_earlier: false, ..block }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turn_effect::TurnEffect;

    fn sent_chunks(turn: &AdapterTurn) -> Vec<(String, String)> {
        let chunks = turn.effects.iter().filter_map(|effect| match effect {
            TurnEffect::SendUpdate(update) => Some((
                update["messageId"].as_str().unwrap_or_default().to_owned(),
                update["content"]["text"].as_str()?.to_owned(),
            )),
            _ => None,
        });
        chunks.collect()
    }

    fn pairs(sent: &[(&str, &str)]) -> Vec<(String, String)> {
        sent.iter().map(|(id, text)| ((*id).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn retry_under_another_id_continues_the_first_message() {
        let (mut messages, mut turn) = (MessageStream::default(), AdapterTurn::default());
        messages.start_message("a");
        messages.push_delta(0, BlockKind::Text, "Hello from", &mut turn);
        messages.interrupt();
        messages.start_message("b");
        messages.start_block(0, BlockKind::Text);
        messages.push_delta(0, BlockKind::Text, "Hello", &mut turn);
        messages.interrupt();
        messages.push_full("c", BlockKind::Text, "Hello from me", &mut turn);
        assert_eq!(sent_chunks(&turn), pairs(&[("a", "Hello from"), ("a", " me")]));
    }

    #[test]
    fn retry_with_another_answer_is_a_separate_message() {
        let (mut messages, mut turn) = (MessageStream::default(), AdapterTurn::default());
        messages.start_message("a");
        messages.push_delta(0, BlockKind::Text, "I look", &mut turn);
        messages.interrupt();
        messages.start_message("b");
        messages.push_delta(0, BlockKind::Text, "I ", &mut turn);
        messages.push_delta(0, BlockKind::Text, "think", &mut turn);
        messages.push_full("b", BlockKind::Text, "I think", &mut turn);
        assert_eq!(sent_chunks(&turn), pairs(&[("a", "I look"), ("b", "I think")]));
    }

    #[test]
    fn two_blocks_of_a_message_are_both_sent_once() {
        let (mut messages, mut turn) = (MessageStream::default(), AdapterTurn::default());
        messages.start_message("a");
        for (index, word) in [(0, "one"), (1, "two")] {
            messages.start_block(index, BlockKind::Text);
            messages.push_delta(index, BlockKind::Text, word, &mut turn);
            messages.end_block(index);
        }
        messages.push_full("a", BlockKind::Text, "one", &mut turn);
        messages.push_full("a", BlockKind::Text, "two", &mut turn);
        messages.push_full("a", BlockKind::Text, "three", &mut turn);
        assert_eq!(sent_chunks(&turn), pairs(&[("a", "one"), ("a", "two"), ("a", "three")]));
    }

    #[test]
    fn complete_block_that_was_not_streamed_is_sent() {
        let (mut messages, mut turn) = (MessageStream::default(), AdapterTurn::default());
        messages.start_message("a");
        messages.push_delta(0, BlockKind::Text, "left open", &mut turn);
        messages.push_full("b", BlockKind::Text, "new", &mut turn);
        assert_eq!(sent_chunks(&turn), pairs(&[("a", "left open"), ("b", "new")]));
    }
}
