//! Word motions.

use super::TextBuffer;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClusterClass {
    Space,
    Alphanumeric,
    Punctuation,
}

fn classify(cluster: &str) -> ClusterClass {
    match cluster.chars().next() {
        Some(it) if it.is_whitespace() => ClusterClass::Space,
        Some(it) if it.is_alphanumeric() || it == '_' => ClusterClass::Alphanumeric,
        _ => ClusterClass::Punctuation,
    }
}

impl TextBuffer {
    /// The end of the word at or after the cursor, as emacs counts words.
    pub(crate) fn emacs_word_end(&self, from: usize) -> usize {
        let is_word = |class| class == ClusterClass::Alphanumeric;
        let word = self.skip_forward(from, |it| !is_word(it));
        self.skip_forward(word, is_word)
    }

    /// The start of the word before the cursor, as emacs counts words.
    pub(crate) fn emacs_word_start(&self, from: usize) -> usize {
        let is_word = |class| class == ClusterClass::Alphanumeric;
        let word = self.skip_backward(from, |it| !is_word(it));
        self.skip_backward(word, is_word)
    }

    /// The start of the text between spaces before the cursor, as Ctrl-W of a shell deletes it.
    pub(crate) fn spaced_word_start(&self, from: usize) -> usize {
        let word = self.skip_backward(from, |it| it == ClusterClass::Space);
        self.skip_backward(word, |it| it != ClusterClass::Space)
    }

    /// The start of the next word, as `w` of vi.
    pub(crate) fn vi_next_word(&self, from: usize) -> usize {
        let class = classify(self.cluster_at(from));
        let after = self.skip_forward(from, |it| it == class && it != ClusterClass::Space);
        self.skip_forward(after, |it| it == ClusterClass::Space)
    }

    /// The start of the word before, as `b` of vi.
    pub(crate) fn vi_previous_word(&self, from: usize) -> usize {
        let word = self.skip_backward(from, |it| it == ClusterClass::Space);
        if word == 0 {
            return 0;
        }
        let class = classify(self.cluster_at(self.previous_boundary(word)));
        self.skip_backward(word, |it| it == class)
    }

    /// The last cluster of the word at or after the cursor, as `e` of vi.
    pub(crate) fn vi_word_end(&self, from: usize) -> usize {
        let next = self.next_boundary(from);
        let word = self.skip_forward(next, |it| it == ClusterClass::Space);
        if word >= self.text().len() {
            return self.previous_boundary(self.text().len());
        }
        let class = classify(self.cluster_at(word));
        self.previous_boundary(self.skip_forward(word, |it| it == class))
    }

    /// The end of the run of one class at the cursor, as `cw` of vi deletes it.
    pub(crate) fn vi_run_end(&self, from: usize) -> usize {
        let class = classify(self.cluster_at(from));
        self.skip_forward(from, |it| it == class)
    }

    fn skip_forward(&self, from: usize, matches: impl Fn(ClusterClass) -> bool) -> usize {
        let mut at = from;
        while at < self.text().len() && matches(classify(self.cluster_at(at))) {
            at = self.next_boundary(at);
        }
        at
    }

    fn skip_backward(&self, from: usize, matches: impl Fn(ClusterClass) -> bool) -> usize {
        let mut at = from;
        while at > 0 {
            let before = self.previous_boundary(at);
            if !matches(classify(self.cluster_at(before))) {
                break;
            }
            at = before;
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer(text: &str) -> TextBuffer {
        let mut buffer = TextBuffer::default();
        buffer.replace(0..0, text);
        buffer
    }

    #[test]
    fn words_of_vi_end_at_punctuation() {
        let buffer = buffer("foo.bar  baz");
        let next: Vec<_> = [0, 3, 4, 9].map(|it| buffer.vi_next_word(it)).into();
        assert_eq!(next, [3, 4, 9, 12]);
        let ends: Vec<_> = [0, 2, 3, 6].map(|it| buffer.vi_word_end(it)).into();
        assert_eq!(ends, [2, 3, 6, 11]);
        let previous: Vec<_> = [12, 9, 4, 3].map(|it| buffer.vi_previous_word(it)).into();
        assert_eq!(previous, [9, 4, 3, 0]);
    }

    #[test]
    fn words_of_emacs_skip_punctuation() {
        let buffer = buffer("a-b, naïve");
        assert_eq!([0, 1, 3].map(|it| buffer.emacs_word_end(it)), [1, 3, 11]);
        assert_eq!([11, 5, 3].map(|it| buffer.emacs_word_start(it)), [5, 2, 2]);
        assert_eq!(buffer.spaced_word_start(4), 0);
    }
}
