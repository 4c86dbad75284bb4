//! Programs that print human-readable text: it is sent as text of the agent, as it comes.

use crate::{
    AdapterTurn, Dialect, FailureCause, ProgramLifetime, StartContext, StopReason, TurnFailure,
    colors, provider,
};
use jackfield_agents::AgentExit;

pub(crate) fn new() -> Box<dyn Dialect> {
    Box::new(PlainDialect::default())
}

#[derive(Default)]
struct PlainDialect {
    /// The beginning of an escape sequence.
    escape: String,
    /// The current line, and how many bytes of it were sent.
    line: String,
    sent: usize,
    /// The program rendered its text for a terminal, so each line is checked before it is sent.
    is_rendered: bool,
    /// The last lines, which may explain a failure.
    last_lines: Vec<String>,
    line_count: usize,
    paragraphs: TerminalParagraphs,
}

/// An output with more lines than this is an answer and not a login prompt.
const LOGIN_PROMPT_LINES_MAX: usize = 12;

impl Dialect for PlainDialect {
    fn lifetime(&self) -> ProgramLifetime {
        ProgramLifetime::PerTurn
    }

    fn on_start(&mut self, _start: &StartContext<'_>, _turn: &mut AdapterTurn) {
        *self = PlainDialect::default();
    }

    fn prints_text(&self) -> bool {
        true
    }

    fn on_output(&mut self, text: &str, turn: &mut AdapterTurn) {
        let text = self.strip_colors(text);
        for piece in text.split_inclusive('\n') {
            if let Some(rest) = piece.strip_suffix('\n') {
                self.line.push_str(rest);
                self.end_line("\n", turn);
            } else {
                self.line.push_str(piece);
                self.send_part(turn);
            }
        }
    }

    fn on_line(&mut self, line: &str, turn: &mut AdapterTurn) {
        self.on_output(&format!("{line}\n"), turn);
    }

    fn on_exit(&mut self, exit: &AgentExit, turn: &mut AdapterTurn) {
        self.end_line("", turn);
        if exit.code == Some(0) && turn.has_output() {
            return match self.login_failure() {
                Some(failure) => turn.fail(failure),
                None => turn.complete(StopReason::EndTurn),
            };
        }
        // If stderr does not explain the failure, the last lines of stdout may.
        let mut failure = provider::failure_from_exit(exit, turn);
        if matches!(failure.cause, FailureCause::Crashed | FailureCause::Empty) && turn.has_output()
        {
            failure = TurnFailure::from_exit(exit, &self.last_lines, true);
        }
        turn.fail(failure);
    }
}

impl PlainDialect {
    /// Removes escape sequences. An incomplete one at the end waits for the next text.
    fn strip_colors(&mut self, text: &str) -> String {
        let mut text = std::mem::take(&mut self.escape) + text;
        if let Some(at) = text.rfind('\u{1b}') {
            let mut rest = text[at + 1..].chars();
            let is_complete =
                rest.next().is_some_and(|it| it != '[' || rest.any(|it| ('@'..='~').contains(&it)));
            if !is_complete {
                self.escape = text.split_off(at);
            }
        }
        colors::strip_colors(&text)
    }

    /// Sends the new part of a line that has not ended, unless the whole line decides what it is.
    fn send_part(&mut self, turn: &mut AdapterTurn) {
        let may_be_warning = !turn.has_output() && self.line.starts_with([' ', '⚠']);
        let is_blank = !turn.has_output() && self.line.trim().is_empty();
        if !self.is_rendered && !may_be_warning && !is_blank {
            turn.send_text("", &self.line[self.sent..]);
            self.sent = self.line.len();
        }
    }

    fn end_line(&mut self, newline: &str, turn: &mut AdapterTurn) {
        let (line, sent) = (std::mem::take(&mut self.line), std::mem::take(&mut self.sent));
        if line.trim().is_empty() {
            self.paragraphs.end_paragraph();
            if turn.has_output() {
                turn.send_text("", &format!("{}{newline}", &line[sent..]));
            }
            return;
        }
        // A warning before the first text comes from the program and not from the model.
        if !turn.has_output() && line.starts_with("  ⚠ ") {
            return turn.send_notice(line.trim_start_matches([' ', '⚠']));
        }
        self.is_rendered |= is_padded(&line);
        if self.paragraphs.is_repetition(&line) && sent == 0 {
            return;
        }
        self.remember_line(line.trim());
        // The padding of a rendered line is not part of the text.
        let text = if is_padded(&line) { line.trim_end() } else { &line };
        turn.send_text("", &format!("{}{newline}", text.get(sent..).unwrap_or_default()));
    }

    fn remember_line(&mut self, line: &str) {
        if self.last_lines.len() == LOGIN_PROMPT_LINES_MAX {
            self.last_lines.remove(0);
        }
        self.last_lines.push(line.to_owned());
        self.line_count += 1;
    }

    /// The failure of a program that exited successfully after it only printed a login prompt.
    fn login_failure(&self) -> Option<TurnFailure> {
        let patterns = [
            "not logged in",
            "please log in",
            "please login",
            "please sign in",
            "login required",
            "authentication required",
            "sign in to continue",
            "to authenticate",
            "authorize the application",
            "run /login",
        ];
        if LOGIN_PROMPT_LINES_MAX < self.line_count {
            return None;
        }
        let is_login_prompt =
            |line: &&String| patterns.iter().any(|it| line.to_lowercase().contains(it));
        let line = self.last_lines.iter().find(is_login_prompt)?;
        Some(TurnFailure::new(FailureCause::Auth, line.clone()))
    }
}

/// Paragraphs that a program rendered for a terminal, with every line padded to its width. Such
/// programs repeat a paragraph: rendered again when it is complete, or as plain text after it.
#[derive(Default)]
struct TerminalParagraphs {
    current: String,
    earlier: Vec<String>,
}

impl TerminalParagraphs {
    fn is_repetition(&mut self, line: &str) -> bool {
        let text = line.split_whitespace().collect::<Vec<_>>().join(" ");
        if !is_padded(line) {
            let is_same = !self.current.is_empty() && self.current == text;
            self.end_paragraph();
            return is_same;
        }
        if self.current.is_empty() && self.earlier.contains(&text) {
            return true;
        }
        if !self.current.is_empty() {
            self.current.push(' ');
        }
        self.current.push_str(&text);
        false
    }

    fn end_paragraph(&mut self) {
        if !self.current.is_empty() {
            self.earlier.push(std::mem::take(&mut self.current));
        }
    }
}

fn is_padded(line: &str) -> bool {
    const WIDTH: usize = 80;
    line.chars().count() == WIDTH
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::AdapterTurnOutcome;
    use crate::turn_effect::TurnEffect;

    fn play_lines(lines: &[&str], code: i32, stderr: &str) -> AdapterTurn {
        let (mut plain, mut turn) = (PlainDialect::default(), AdapterTurn::default());
        turn.begin();
        for line in lines {
            plain.on_line(line, &mut turn);
        }
        let exit =
            AgentExit { code: Some(code), stderr_tail: stderr.to_owned(), ..AgentExit::default() };
        plain.on_exit(&exit, &mut turn);
        turn
    }

    fn text(turn: &AdapterTurn) -> String {
        let chunks = turn.effects.iter().filter_map(|it| match it {
            TurnEffect::SendUpdate(it) => it["content"]["text"].as_str(),
            _ => None,
        });
        chunks.collect()
    }

    fn cause(turn: &AdapterTurn) -> Option<FailureCause> {
        match &turn.outcome {
            Some(AdapterTurnOutcome::Failed(failure)) => Some(failure.cause),
            _ => None,
        }
    }

    #[test]
    fn white_space_after_the_first_text_is_kept() {
        let turn = play_lines(&["", "\u{1b}[1ma\u{1b}[0m", "", "", "b ", "b", ""], 0, "");
        assert_eq!(text(&turn), "a\n\n\nb \nb\n\n");
        assert_eq!(turn.outcome, Some(AdapterTurnOutcome::Completed(StopReason::EndTurn)));
    }

    #[test]
    fn text_is_sent_as_it_comes_and_escapes_may_be_split() {
        let (mut plain, mut turn) = (PlainDialect::default(), AdapterTurn::default());
        turn.begin();
        let mut chunks = Vec::new();
        for chunk in ["\n", "Hel", "lo\u{1b}[3", "1m, ", "you\u{1b}", "[0m.\nB", "ye"] {
            plain.on_output(chunk, &mut turn);
            chunks.push(text(&turn));
            turn.effects.clear();
        }
        assert_eq!(chunks, ["", "Hel", "lo", ", ", "you", ".\nB", "ye"]);
    }

    #[test]
    fn short_output_with_a_login_prompt_is_a_failure() {
        let login_prompt = "Please sign in to continue: https://example.org";
        assert_eq!(cause(&play_lines(&["Welcome", login_prompt], 0, "")), Some(FailureCause::Auth));
        let mut long = vec!["line"; LOGIN_PROMPT_LINES_MAX];
        long.push(login_prompt);
        assert_eq!(cause(&play_lines(&long, 0, "")), None);
    }

    #[test]
    fn failure_is_classified_by_stderr_or_the_last_lines() {
        let limit = "HTTP 429: slow down";
        assert_eq!(cause(&play_lines(&[limit], 1, "")), Some(FailureCause::RateLimited));
        assert_eq!(
            cause(&play_lines(&[limit], 1, "Error: not logged in")),
            Some(FailureCause::Auth)
        );
        assert_eq!(cause(&play_lines(&["half an ans"], 1, "")), Some(FailureCause::Crashed));
        assert_eq!(cause(&play_lines(&[" "], 0, "")), Some(FailureCause::Empty));
    }

    #[test]
    fn rendered_paragraph_is_sent_once() {
        let pad = |line: &str| format!("{line:<80}");
        let (one, two) = (pad("A long"), pad("answer."));
        let turn = play_lines(
            &[&one, &two, "A long answer.", "", &pad("Next"), "--", &pad("Next")],
            0,
            "",
        );
        assert_eq!(text(&turn), "A long\nanswer.\n\nNext\n--\n");
    }
}
