//! Text that comes in pieces and then again as a whole: what of it is new.

/// The text of one message. Programs stream it, repeat it as a whole when it is finished, and stream
/// its beginning again after a connection was cut; a reader should see it once.
#[derive(Debug, Clone, Default)]
pub struct Said {
    text: String,
    /// How much of `text` a program that began again has repeated so far.
    again: Option<usize>,
}

impl Said {
    /// One more piece. Returns what of it was not said before.
    pub fn piece<'a>(&mut self, piece: &'a str) -> &'a str {
        let Some(at) = self.again else {
            self.text.push_str(piece);
            return piece;
        };
        let left = &self.text[at..];
        let same = common(left, piece);
        if same == piece.len() {
            // Still inside what was said, or just at its end.
            self.again = (same < left.len()).then_some(at + same);
            return "";
        }
        // It goes on where it stopped, or it goes another way: either way the rest is new.
        self.again = None;
        let new = &piece[same..];
        if same < left.len() {
            self.text.truncate(at + same);
        }
        self.text.push_str(new);
        new
    }

    /// All of it. Returns what is missing; nothing if the whole contradicts the pieces.
    pub fn whole<'a>(&mut self, whole: &'a str) -> &'a str {
        self.again = None;
        match whole.strip_prefix(self.text.as_str()) {
            Some(missing) => {
                self.text.push_str(missing);
                missing
            }
            None => "",
        }
    }

    /// The program will say it all again.
    pub fn restart(&mut self) {
        self.again = (!self.text.is_empty()).then_some(0);
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }
}

/// The length of what both begin with, at a character's boundary.
fn common(left: &str, right: &str) -> usize {
    let pairs = left.chars().zip(right.chars());
    pairs.take_while(|(one, other)| one == other).map(|(one, _)| one.len_utf8()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_that_look_alike_are_all_said() {
        let mut said = Said::default();
        assert_eq!([said.piece("ha"), said.piece("ha")], ["ha", "ha"]);
        assert_eq!(said.whole("haha"), "");
        assert_eq!(said.whole("haha!"), "!");
    }

    #[test]
    fn a_message_that_begins_again_is_said_once() {
        let mut said = Said::default();
        said.piece("Hello from");
        said.restart();
        assert_eq!(
            [said.piece("Hel"), said.piece("lo fr"), said.piece("om the"), said.piece(" end")],
            ["", "", " the", " end"]
        );
        assert_eq!(said.as_str(), "Hello from the end");
        assert_eq!(said.whole("Hello from the end"), "");
    }

    #[test]
    fn a_second_try_that_goes_another_way_is_told_from_there_on() {
        let mut said = Said::default();
        said.piece("Grüße an uns");
        said.restart();
        assert_eq!([said.piece("Grüß Gott"), said.piece("!")], [" Gott", "!"]);
        assert_eq!(said.as_str(), "Grüß Gott!");
    }

    #[test]
    fn a_second_try_that_repeats_exactly_goes_on_behind_it() {
        let mut said = Said::default();
        said.piece("ab");
        said.restart();
        assert_eq!([said.piece("ab"), said.piece("ab")], ["", "ab"]);
    }
}
