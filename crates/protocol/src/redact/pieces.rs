//! A text that comes in pieces: a secret that is split over them is hidden in all of them.

use super::{
    HIDDEN,
    scanner::{ScannedRun, SecretScanner},
};
use std::collections::VecDeque;

/// Redacts a text that arrives in pieces. Returns the same pieces in order, each as soon as nothing in
/// it can be the beginning of a secret: mostly with the next space.
#[derive(Debug, Default)]
pub struct PieceRedactor {
    scanner: SecretScanner,
    waiting: VecDeque<RedactedPiece>,
    /// The last byte decided on was hidden.
    in_hidden: bool,
}

#[derive(Debug)]
struct RedactedPiece {
    text: String,
    decided: usize,
    out: String,
}

impl PieceRedactor {
    /// The next piece; returns what may be shown now.
    pub fn push(&mut self, piece: &str) -> Vec<String> {
        self.waiting.push_back(RedactedPiece {
            text: piece.to_owned(),
            decided: 0,
            out: String::with_capacity(piece.len()),
        });
        let mut runs = Vec::new();
        piece.chars().for_each(|c| self.scanner.feed(c, &mut runs));
        self.decide(&runs)
    }

    /// There are no more: what waited.
    pub fn finish(&mut self) -> Vec<String> {
        let mut runs = Vec::new();
        self.scanner.finish(&mut runs);
        let shown = self.decide(&runs);
        self.in_hidden = false;
        shown
    }

    /// Something else comes before the next piece: returns what more text cannot make a secret of. The
    /// next piece goes on with the same word all the same.
    pub fn pause(&mut self) -> Vec<String> {
        let mut runs = Vec::new();
        self.scanner.pause(&mut runs);
        self.decide(&runs)
    }

    /// There is no room to wait any longer: a word that may become a secret is hidden, up to its end.
    pub fn give_up(&mut self) -> Vec<String> {
        let mut runs = Vec::new();
        self.scanner.give_up(&mut runs);
        self.decide(&runs)
    }

    fn decide(&mut self, runs: &[ScannedRun]) -> Vec<String> {
        let mut shown = self.take_decided();
        for run in runs {
            let mut bytes = run.bytes;
            while 0 < bytes {
                let piece = self.waiting.front_mut().expect("what is decided on was pushed");
                let taken = bytes.min(piece.text.len() - piece.decided);
                match (run.hidden, self.in_hidden) {
                    (false, _) => {
                        let from = piece.decided;
                        piece.out.push_str(&piece.text[from..from + taken]);
                    }
                    (true, false) => piece.out.push_str(HIDDEN),
                    (true, true) => {}
                }
                piece.decided += taken;
                bytes -= taken;
                self.in_hidden = run.hidden;
                shown.append(&mut self.take_decided());
            }
        }
        shown
    }

    fn take_decided(&mut self) -> Vec<String> {
        let mut shown = Vec::new();
        while let Some(piece) = self.waiting.pop_front_if(|it| it.decided == it.text.len()) {
            shown.push(piece.out);
        }
        shown
    }
}
