//! Programs that print text for people: every line is said as it comes.

use crate::{Cause, Dialect, Failure, Life, Start, Stop, Turn, provider};
use jackfield_agents::Exit;

pub(crate) fn new() -> Box<dyn Dialect> {
    Box::new(Plain::default())
}

#[derive(Default)]
struct Plain {
    /// Blank lines that are said only if something follows them.
    blank: usize,
    /// The last lines, for the day on which the program fails.
    last: Vec<String>,
    lines: usize,
    drawn: Drawn,
}

/// More lines than this are an answer and not a refusal.
const REFUSAL_LINES_MAX: usize = 12;

impl Dialect for Plain {
    fn life(&self) -> Life {
        Life::Turn
    }

    fn open(&mut self, _start: &Start<'_>, _turn: &mut Turn) {
        *self = Plain::default();
    }

    fn line(&mut self, line: &str, turn: &mut Turn) {
        let line = provider::without_colours(line);
        if line.trim().is_empty() {
            self.blank += 1;
            return self.drawn.end();
        }
        // A warning before the first word is the program's and not the model's.
        if !turn.has_spoken() && line.starts_with("  ⚠ ") {
            return turn.notice(line.trim_start_matches([' ', '⚠']));
        }
        if self.drawn.repeats(&line) {
            return;
        }
        self.keep(line.trim());
        // The newline before a line belongs to it: nobody knows yet whether another one follows.
        let newlines = if turn.has_spoken() { self.blank + 1 } else { 0 };
        self.blank = 0;
        turn.text("", &format!("{}{}", "\n".repeat(newlines), line.trim_end()));
    }

    fn end(&mut self, exit: &Exit, turn: &mut Turn) {
        if exit.code == Some(0) && turn.has_spoken() {
            return match self.refusal() {
                Some(failure) => turn.fail(failure),
                None => turn.done(Stop::EndTurn),
            };
        }
        // What it printed last says why, unless stderr does.
        let mut failure = provider::failure_of_exit(exit, turn);
        if matches!(failure.cause, Cause::Crashed | Cause::Empty) && turn.has_spoken() {
            failure = Failure::from_exit(exit, &self.last, true);
        }
        turn.fail(failure);
    }
}

impl Plain {
    fn keep(&mut self, line: &str) {
        if self.last.len() == REFUSAL_LINES_MAX {
            self.last.remove(0);
        }
        self.last.push(line.to_owned());
        self.lines += 1;
    }

    /// A few lines that ask for a login are no answer, although the program ended well.
    fn refusal(&self) -> Option<Failure> {
        let asks = [
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
        let is_ask = |line: &&String| asks.iter().any(|ask| line.to_lowercase().contains(ask));
        let line = self.last.iter().find(is_ask).filter(|_| self.lines <= REFUSAL_LINES_MAX)?;
        Some(Failure::new(Cause::Auth, line.clone()))
    }
}

/// Paragraphs that were drawn for a terminal, every line filled up with blanks to its width. Programs
/// that draw say the same once more: drawn again when it is complete, or undrawn behind it.
#[derive(Default)]
struct Drawn {
    now: String,
    before: Vec<String>,
}

impl Drawn {
    fn repeats(&mut self, line: &str) -> bool {
        let words = line.split_whitespace().collect::<Vec<_>>().join(" ");
        if !is_drawn(line) {
            let same = !self.now.is_empty() && self.now == words;
            self.end();
            return same;
        }
        if self.now.is_empty() && self.before.contains(&words) {
            return true;
        }
        if !self.now.is_empty() {
            self.now.push(' ');
        }
        self.now.push_str(&words);
        false
    }

    fn end(&mut self) {
        if !self.now.is_empty() {
            self.before.push(std::mem::take(&mut self.now));
        }
    }
}

fn is_drawn(line: &str) -> bool {
    const WIDTH: usize = 80;
    line.chars().count() == WIDTH
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Outcome;
    use crate::turn::Effect;

    fn play(lines: &[&str], code: i32, stderr: &str) -> Turn {
        let (mut plain, mut turn) = (Plain::default(), Turn::default());
        turn.begin();
        for line in lines {
            plain.line(line, &mut turn);
        }
        let exit = Exit { code: Some(code), stderr_tail: stderr.to_owned(), ..Exit::default() };
        plain.end(&exit, &mut turn);
        turn
    }

    fn text(turn: &Turn) -> String {
        let chunks = turn.effects.iter().filter_map(|it| match it {
            Effect::Update(it) => it["content"]["text"].as_str(),
            _ => None,
        });
        chunks.collect()
    }

    fn cause(turn: &Turn) -> Option<Cause> {
        match &turn.outcome {
            Some(Outcome::Failed(failure)) => Some(failure.cause),
            _ => None,
        }
    }

    #[test]
    fn blank_lines_are_said_between_lines_and_not_around_them() {
        let turn = play(&["", "\u{1b}[1ma\u{1b}[0m", "", "", "b", "b", ""], 0, "");
        assert_eq!(text(&turn), "a\n\n\nb\nb");
        assert_eq!(turn.outcome, Some(Outcome::Done(Stop::EndTurn)));
    }

    #[test]
    fn a_good_end_with_a_login_prompt_is_no_answer_but_a_long_answer_may_speak_of_it() {
        let ask = "Please sign in to continue: https://example.org";
        assert_eq!(cause(&play(&["Welcome", ask], 0, "")), Some(Cause::Auth));
        let mut long = vec!["line"; REFUSAL_LINES_MAX];
        long.push(ask);
        assert_eq!(cause(&play(&long, 0, "")), None);
    }

    #[test]
    fn a_bad_end_is_told_by_stderr_or_by_the_last_words() {
        let limit = "HTTP 429: slow down";
        assert_eq!(cause(&play(&[limit], 1, "")), Some(Cause::RateLimited));
        assert_eq!(cause(&play(&[limit], 1, "Error: not logged in")), Some(Cause::Auth));
        assert_eq!(cause(&play(&["half an ans"], 1, "")), Some(Cause::Crashed));
        assert_eq!(cause(&play(&[" "], 0, "")), Some(Cause::Empty));
    }

    #[test]
    fn what_was_drawn_is_said_once() {
        let draw = |line: &str| format!("{line:<80}");
        let (one, two) = (draw("A long"), draw("answer."));
        let turn =
            play(&[&one, &two, "A long answer.", "", &draw("Next"), "--", &draw("Next")], 0, "");
        assert_eq!(text(&turn), "A long\nanswer.\n\nNext\n--");
    }
}
