//! `grok --output-format streaming-json`: pieces of text and thought, one end, one program for each
//! turn. Its tools are not told.

use crate::tally::{Tally, usage_of};
use crate::{Dialect, Life, Start, Stop, Turn, kinds, provider};
use jackfield_agents::Exit;
use serde_json::Value;

pub(crate) fn new() -> Box<dyn Dialect> {
    Box::new(Grok::default())
}

#[derive(Default)]
struct Grok {
    /// It may make no more requests in this turn; the end follows.
    exhausted: bool,
}

impl Dialect for Grok {
    fn life(&self) -> Life {
        Life::Turn
    }

    fn open(&mut self, _start: &Start<'_>, _turn: &mut Turn) {
        *self = Grok::default();
    }

    fn line(&mut self, line: &str, turn: &mut Turn) {
        let Some(event) = turn.object(line) else { return };
        match (event["type"].as_str(), event["data"].as_str()) {
            (Some("text"), Some(text)) => turn.text("", text),
            (Some("thought"), Some(text)) => turn.thought("", text),
            (Some("end"), _) => self.on_end(&event, turn),
            (Some("max_turns_reached"), _) => self.exhausted = true,
            (Some("error"), _) => {
                let words = kinds::text_of(&event, &["message", "error", "data"]);
                turn.fail(provider::failure(words.unwrap_or("an error without words"), None));
            }
            _ => turn.unmapped(&event),
        }
    }

    fn end(&mut self, exit: &Exit, turn: &mut Turn) {
        if self.exhausted {
            return turn.done(Stop::MaxTurnRequests);
        }
        let failure = provider::failure_of_exit(exit, turn);
        turn.fail(failure);
    }
}

impl Grok {
    fn on_end(&mut self, event: &Value, turn: &mut Turn) {
        if let Some(id) = event["sessionId"].as_str() {
            turn.native(id);
        }
        if let Some(usage) = usage_of(&event["usage"]) {
            Tally::default().add(usage, event["total_cost_usd"].as_f64(), turn);
        }
        turn.done(match event["stopReason"].as_str() {
            _ if self.exhausted => Stop::MaxTurnRequests,
            Some("MaxTokens" | "max_tokens") => Stop::MaxTokens,
            Some("MaxTurnRequests" | "max_turn_requests") => Stop::MaxTurnRequests,
            Some("Refusal" | "refusal") => Stop::Refusal,
            Some("Cancelled" | "cancelled") => Stop::Cancelled,
            _ => Stop::EndTurn,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cause;
    use crate::outcome::Outcome;

    fn outcome(lines: &[&str]) -> Option<Outcome> {
        let (mut grok, mut turn) = (Grok::default(), Turn::default());
        turn.begin();
        for line in lines {
            grok.line(line, &mut turn);
        }
        grok.end(&Exit { code: Some(0), ..Exit::default() }, &mut turn);
        turn.outcome
    }

    #[test]
    fn the_end_says_why_and_an_end_without_one_failed() {
        let stop = |why: &str| outcome(&[&format!(r#"{{"type":"end","stopReason":"{why}"}}"#)]);
        assert_eq!(stop("MaxTokens"), Some(Outcome::Done(Stop::MaxTokens)));
        assert_eq!(stop("EndTurn"), Some(Outcome::Done(Stop::EndTurn)));
        let text = r#"{"type":"text","data":"Hel"}"#;
        let Some(Outcome::Failed(cut)) = outcome(&[text]) else { panic!() };
        assert_eq!(cut.cause, Cause::Crashed);
        let limit = r#"{"type":"max_turns_reached"}"#;
        assert_eq!(outcome(&[limit]), Some(Outcome::Done(Stop::MaxTurnRequests)));
    }
}
