//! Copies text with OSC 52: the terminal that the user sits at sets its clipboard, also over SSH.

use base64::{Engine as _, engine::general_purpose::STANDARD};

/// Longer texts are refused: terminals ignore them.
const TEXT_BYTES_MAX: usize = 512 * 1024;
/// GNU screen forwards no longer parts.
const SCREEN_PART_BYTES: usize = 512;

/// A program between the interface and the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TerminalMultiplexer {
    None,
    Tmux,
    Screen,
}

impl TerminalMultiplexer {
    /// Reads `TMUX` and `STY` through `env`.
    pub(super) fn detect(env: impl Fn(&str) -> Option<String>) -> TerminalMultiplexer {
        let is_set = |name: &str| env(name).is_some_and(|it| !it.is_empty());
        if is_set("TMUX") {
            TerminalMultiplexer::Tmux
        } else if is_set("STY") {
            TerminalMultiplexer::Screen
        } else {
            TerminalMultiplexer::None
        }
    }

    /// The sequence that copies the text; `None` if it is too long.
    pub(super) fn copy_sequence(self, text: &str) -> Option<Vec<u8>> {
        if TEXT_BYTES_MAX < text.len() {
            return None;
        }
        let sequence = format!("\x1b]52;c;{}\x07", STANDARD.encode(text));
        Some(match self {
            TerminalMultiplexer::None => sequence.into_bytes(),
            // tmux handles it itself with `set-clipboard on`, and forwards it with `allow-passthrough on`.
            TerminalMultiplexer::Tmux => {
                let escaped = sequence.replace('\x1b', "\x1b\x1b");
                format!("{sequence}\x1bPtmux;{escaped}\x1b\\").into_bytes()
            }
            TerminalMultiplexer::Screen => {
                let mut parts = Vec::new();
                for part in sequence.as_bytes().chunks(SCREEN_PART_BYTES) {
                    parts.extend_from_slice(b"\x1bP");
                    parts.extend_from_slice(part);
                    parts.extend_from_slice(b"\x1b\\");
                }
                parts
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copied(multiplexer: TerminalMultiplexer, text: &str) -> String {
        String::from_utf8(multiplexer.copy_sequence(text).unwrap()).unwrap()
    }

    #[test]
    fn sequence_reaches_the_terminal_through_multiplexers() {
        let plain = "\x1b]52;c;w6QKYg==\x07";
        assert_eq!(copied(TerminalMultiplexer::None, "ä\nb"), plain);
        assert_eq!(
            copied(TerminalMultiplexer::Tmux, "ä\nb"),
            format!("{plain}\x1bPtmux;\x1b{plain}\x1b\\")
        );
        assert_eq!(copied(TerminalMultiplexer::Screen, "ä\nb"), format!("\x1bP{plain}\x1b\\"));
        let long = copied(TerminalMultiplexer::Screen, &"x".repeat(900));
        assert_eq!(long.matches("\x1bP").count(), 3);
    }

    #[test]
    fn text_that_is_too_long_is_refused() {
        let text = "x".repeat(TEXT_BYTES_MAX + 1);
        assert_eq!(TerminalMultiplexer::None.copy_sequence(&text), None);
    }

    #[test]
    fn multiplexer_is_found_in_the_environment() {
        let detect = |name: &'static str| {
            TerminalMultiplexer::detect(move |it| (it == name).then(|| "x".to_owned()))
        };
        assert_eq!(detect("TMUX"), TerminalMultiplexer::Tmux);
        assert_eq!(detect("STY"), TerminalMultiplexer::Screen);
        assert_eq!(detect("TERM"), TerminalMultiplexer::None);
    }
}
