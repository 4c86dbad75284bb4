//! Words that are streamed, repeated as a finished block, and begun again after a cut: said once.

use crate::Turn;

/// Whether the agent speaks or thinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Voice {
    Text,
    Thought,
}

impl Voice {
    fn say(self, message: &str, text: &str, turn: &mut Turn) {
        match self {
            Voice::Text => turn.text(message, text),
            Voice::Thought => turn.thought(message, text),
        }
    }
}

/// One block of a message, and what an earlier try said of it.
#[derive(Debug)]
struct Block {
    voice: Voice,
    message: String,
    /// Its number in the message while it is streamed.
    index: Option<u64>,
    /// All that this try said.
    text: String,
    /// What was said before the connection was cut, under which message.
    before: Option<(String, String)>,
    /// Whether an earlier try was kept by the program, which then repeats both as the whole.
    retold: bool,
}

impl Block {
    fn new(voice: Voice, message: &str, index: Option<u64>) -> Block {
        let message = message.to_owned();
        Block { voice, message, index, text: String::new(), before: None, retold: false }
    }

    fn piece(&mut self, piece: &str, turn: &mut Turn) {
        self.text.push_str(piece);
        let Some((message, said)) = self.before.take() else {
            self.voice.say(&self.message, piece, turn);
            return;
        };
        if said.starts_with(&self.text) {
            self.before = Some((message, said));
        } else if let Some(new) = self.text.strip_prefix(&said) {
            self.voice.say(&message, new, turn);
            self.message = message;
        } else {
            // Another answer than before: half a sentence joined to it would be neither.
            self.voice.say(&self.message, &self.text, turn);
        }
    }

    fn whole(&mut self, whole: &str, turn: &mut Turn) {
        if let Some(missing) = whole.strip_prefix(self.text.as_str()) {
            let missing = missing.to_owned();
            self.piece(&missing, turn);
        }
    }

    /// Whether a finished block may be this one.
    fn fits(&self, whole: &str) -> bool {
        self.retold || whole.starts_with(&self.text)
    }

    /// The program begins again.
    fn restart(&mut self) {
        if self.before.is_none() && !self.text.is_empty() {
            self.before = Some((self.message.clone(), std::mem::take(&mut self.text)));
        }
        self.text.clear();
        self.retold = true;
    }
}

/// The words of one turn.
#[derive(Debug, Default)]
pub(super) struct Speech {
    /// The message that is being streamed.
    message: String,
    /// Streamed, and not yet repeated as a whole.
    blocks: Vec<Block>,
    /// Cut off: the next block in this voice begins again.
    cut: Vec<Block>,
    /// Whether the agent said anything in this turn.
    pub(super) has_text: bool,
}

impl Speech {
    pub(super) fn message(&mut self, id: &str) {
        id.clone_into(&mut self.message);
    }

    pub(super) fn start(&mut self, index: u64, voice: Voice) {
        self.stop(index);
        let block = self.continued(voice, &self.message.clone(), Some(index));
        self.blocks.push(block);
    }

    pub(super) fn piece(&mut self, index: u64, voice: Voice, piece: &str, turn: &mut Turn) {
        self.has_text |= voice == Voice::Text && !piece.is_empty();
        let open = |block: &Block| block.index == Some(index) && block.voice == voice;
        if !self.blocks.iter().any(open) {
            self.start(index, voice);
        }
        if let Some(block) = self.blocks.iter_mut().find(|block| open(block)) {
            block.piece(piece, turn);
        }
    }

    pub(super) fn stop(&mut self, index: u64) {
        for block in &mut self.blocks {
            block.index.take_if(|it| *it == index);
        }
    }

    /// A finished block. Some programs give it another message id than its pieces had.
    pub(super) fn whole(&mut self, message: &str, voice: Voice, whole: &str, turn: &mut Turn) {
        self.has_text |= voice == Voice::Text && !whole.is_empty();
        let same = |block: &Block| block.voice == voice && block.message == message;
        let like = |block: &Block| block.voice == voice && block.fits(whole);
        let at = self.blocks.iter().position(same).or_else(|| self.blocks.iter().position(like));
        let mut block = match at {
            Some(at) => self.blocks.remove(at),
            None => self.continued(voice, message, None),
        };
        block.whole(whole, turn);
    }

    /// The stream was cut; the program sends the whole message again, under another id.
    pub(super) fn cut(&mut self) {
        self.cut.append(&mut self.blocks);
    }

    /// The stream was cut; the program goes on in the same block with its beginning.
    pub(super) fn restart(&mut self) {
        self.blocks.iter_mut().for_each(Block::restart);
    }

    /// The message came through: nothing of it will be repeated.
    pub(super) fn arrived(&mut self) {
        self.cut.clear();
    }

    fn continued(&mut self, voice: Voice, message: &str, index: Option<u64>) -> Block {
        let Some(at) = self.cut.iter().position(|block| block.voice == voice) else {
            return Block::new(voice, message, index);
        };
        let mut block = self.cut.remove(at);
        block.restart();
        Block { message: message.to_owned(), index, retold: false, ..block }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turn::Effect;

    fn said(turn: &Turn) -> Vec<(String, String)> {
        let chunks = turn.effects.iter().filter_map(|effect| match effect {
            Effect::Update(update) => Some((
                update["messageId"].as_str().unwrap_or_default().to_owned(),
                update["content"]["text"].as_str()?.to_owned(),
            )),
            _ => None,
        });
        chunks.collect()
    }

    fn pairs(said: &[(&str, &str)]) -> Vec<(String, String)> {
        said.iter().map(|(id, text)| ((*id).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn a_second_try_under_another_id_goes_on_in_the_first_message() {
        let (mut speech, mut turn) = (Speech::default(), Turn::default());
        speech.message("a");
        speech.piece(0, Voice::Text, "Hello from", &mut turn);
        speech.cut();
        speech.message("b");
        speech.start(0, Voice::Text);
        speech.piece(0, Voice::Text, "Hello", &mut turn);
        speech.cut();
        speech.whole("c", Voice::Text, "Hello from me", &mut turn);
        assert_eq!(said(&turn), pairs(&[("a", "Hello from"), ("a", " me")]));
    }

    #[test]
    fn a_second_try_with_another_answer_is_a_message_of_its_own() {
        let (mut speech, mut turn) = (Speech::default(), Turn::default());
        speech.message("a");
        speech.piece(0, Voice::Text, "I look", &mut turn);
        speech.cut();
        speech.message("b");
        speech.piece(0, Voice::Text, "I ", &mut turn);
        speech.piece(0, Voice::Text, "think", &mut turn);
        speech.whole("b", Voice::Text, "I think", &mut turn);
        assert_eq!(said(&turn), pairs(&[("a", "I look"), ("b", "I think")]));
    }

    #[test]
    fn two_blocks_of_a_message_are_both_said_once() {
        let (mut speech, mut turn) = (Speech::default(), Turn::default());
        speech.message("a");
        for (index, word) in [(0, "one"), (1, "two")] {
            speech.start(index, Voice::Text);
            speech.piece(index, Voice::Text, word, &mut turn);
            speech.stop(index);
        }
        speech.whole("a", Voice::Text, "one", &mut turn);
        speech.whole("a", Voice::Text, "two", &mut turn);
        speech.whole("a", Voice::Text, "three", &mut turn);
        assert_eq!(said(&turn), pairs(&[("a", "one"), ("a", "two"), ("a", "three")]));
    }

    #[test]
    fn a_finished_block_that_was_not_streamed_is_not_taken_for_another() {
        let (mut speech, mut turn) = (Speech::default(), Turn::default());
        speech.message("a");
        speech.piece(0, Voice::Text, "left open", &mut turn);
        speech.whole("b", Voice::Text, "new", &mut turn);
        assert_eq!(said(&turn), pairs(&[("a", "left open"), ("b", "new")]));
    }
}
