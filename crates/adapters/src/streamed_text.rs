//! Deduplicates text that is streamed in deltas and then repeated in full.

/// The text of one message. Programs stream it, repeat it in full when it is complete, and stream
/// its beginning again after a broken connection; a client must receive it once.
#[derive(Debug, Clone, Default)]
pub struct StreamedText {
    text: String,
    /// After a restart: the length of the part of `text` that was repeated so far.
    repeated_len: Option<usize>,
}

impl StreamedText {
    /// Adds a delta. Returns the part of it that is new.
    pub fn push_delta<'a>(&mut self, delta: &'a str) -> &'a str {
        let Some(offset) = self.repeated_len else {
            self.text.push_str(delta);
            return delta;
        };
        let expected = &self.text[offset..];
        let common = common_prefix_len(expected, delta);
        if common == delta.len() {
            // The delta repeats known text, at most up to its end.
            self.repeated_len = (common < expected.len()).then_some(offset + common);
            return "";
        }
        // The delta continues after the known text or diverges from it; in both cases the rest is
        // new.
        self.repeated_len = None;
        let new = &delta[common..];
        if common < expected.len() {
            self.text.truncate(offset + common);
        }
        self.text.push_str(new);
        new
    }

    /// Adds the full text. Returns the part that the deltas lacked; nothing if they contradict it.
    pub fn push_full<'a>(&mut self, full: &'a str) -> &'a str {
        self.repeated_len = None;
        match full.strip_prefix(self.text.as_str()) {
            Some(missing) => {
                self.text.push_str(missing);
                missing
            }
            None => "",
        }
    }

    /// The program will stream the text again from its beginning.
    pub fn restart(&mut self) {
        self.repeated_len = (!self.text.is_empty()).then_some(0);
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }
}

/// The length of the common prefix, in whole characters.
fn common_prefix_len(left: &str, right: &str) -> usize {
    let pairs = left.chars().zip(right.chars());
    pairs.take_while(|(one, other)| one == other).map(|(one, _)| one.len_utf8()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_deltas_are_all_new() {
        let mut text = StreamedText::default();
        assert_eq!([text.push_delta("ha"), text.push_delta("ha")], ["ha", "ha"]);
        assert_eq!(text.push_full("haha"), "");
        assert_eq!(text.push_full("haha!"), "!");
    }

    #[test]
    fn restarted_message_is_returned_once() {
        let mut text = StreamedText::default();
        text.push_delta("Hello from");
        text.restart();
        assert_eq!(
            ["Hel", "lo fr", "om the", " end"].map(|delta| text.push_delta(delta)),
            ["", "", " the", " end"]
        );
        assert_eq!(text.as_str(), "Hello from the end");
        assert_eq!(text.push_full("Hello from the end"), "");
    }

    #[test]
    fn restarted_message_that_diverges_is_new_from_there() {
        let mut text = StreamedText::default();
        text.push_delta("Grüße an uns");
        text.restart();
        assert_eq!([text.push_delta("Grüß Gott"), text.push_delta("!")], [" Gott", "!"]);
        assert_eq!(text.as_str(), "Grüß Gott!");
    }

    #[test]
    fn deltas_after_an_exact_repetition_are_new() {
        let mut text = StreamedText::default();
        text.push_delta("ab");
        text.restart();
        assert_eq!([text.push_delta("ab"), text.push_delta("ab")], ["", "ab"]);
    }
}
