//! `grok --output-format streaming-json`: deltas of text and thoughts, one `end` event, one process
//! per turn. It does not report tool calls.

use crate::usage_total::{TurnUsageTotal, read_usage};
use crate::{
    AdapterTurn, Dialect, ProgramLifetime, StartContext, StopReason, known_tools, provider,
};
use jackfield_agents::AgentExit;
use serde_json::Value;

pub(crate) fn new() -> Box<dyn Dialect> {
    Box::new(GrokDialect::default())
}

#[derive(Default)]
struct GrokDialect {
    /// The limit of model requests per turn is reached; the `end` event follows.
    is_exhausted: bool,
}

impl Dialect for GrokDialect {
    fn lifetime(&self) -> ProgramLifetime {
        ProgramLifetime::PerTurn
    }

    fn on_start(&mut self, _start: &StartContext<'_>, _turn: &mut AdapterTurn) {
        *self = GrokDialect::default();
    }

    fn on_line(&mut self, line: &str, turn: &mut AdapterTurn) {
        let Some(event) = turn.parse_object(line) else { return };
        match (event["type"].as_str(), event["data"].as_str()) {
            (Some("text"), Some(text)) => turn.send_text("", text),
            (Some("thought"), Some(text)) => turn.send_thought("", text),
            (Some("end"), _) => self.on_end_event(&event, turn),
            (Some("max_turns_reached"), _) => self.is_exhausted = true,
            (Some("error"), _) => {
                let message = known_tools::first_text(&event, &["message", "error", "data"]);
                turn.fail(provider::parse_failure(message.unwrap_or("unknown error"), None));
            }
            _ => turn.report_unmapped(&event),
        }
    }

    fn on_exit(&mut self, exit: &AgentExit, turn: &mut AdapterTurn) {
        if self.is_exhausted {
            return turn.complete(StopReason::MaxTurnRequests);
        }
        let failure = provider::failure_from_exit(exit, turn);
        turn.fail(failure);
    }
}

impl GrokDialect {
    fn on_end_event(&mut self, event: &Value, turn: &mut AdapterTurn) {
        if let Some(id) = event["sessionId"].as_str() {
            turn.set_agent_session_id(id);
        }
        if let Some(usage) = read_usage(&event["usage"]) {
            TurnUsageTotal::default().add_request(usage, event["total_cost_usd"].as_f64(), turn);
        }
        turn.complete(match event["stopReason"].as_str() {
            _ if self.is_exhausted => StopReason::MaxTurnRequests,
            Some("MaxTokens" | "max_tokens") => StopReason::MaxTokens,
            Some("MaxTurnRequests" | "max_turn_requests") => StopReason::MaxTurnRequests,
            Some("Refusal" | "refusal") => StopReason::Refusal,
            Some("Cancelled" | "cancelled") => StopReason::Cancelled,
            _ => StopReason::EndTurn,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FailureCause;
    use crate::outcome::AdapterTurnOutcome;

    fn outcome(lines: &[&str]) -> Option<AdapterTurnOutcome> {
        let (mut grok, mut turn) = (GrokDialect::default(), AdapterTurn::default());
        turn.begin();
        for line in lines {
            grok.on_line(line, &mut turn);
        }
        grok.on_exit(&AgentExit { code: Some(0), ..AgentExit::default() }, &mut turn);
        turn.outcome
    }

    #[test]
    fn stop_reason_is_mapped_and_exit_without_end_event_fails() {
        let stop = |why: &str| outcome(&[&format!(r#"{{"type":"end","stopReason":"{why}"}}"#)]);
        assert_eq!(stop("MaxTokens"), Some(AdapterTurnOutcome::Completed(StopReason::MaxTokens)));
        assert_eq!(stop("EndTurn"), Some(AdapterTurnOutcome::Completed(StopReason::EndTurn)));
        let text = r#"{"type":"text","data":"Hel"}"#;
        let Some(AdapterTurnOutcome::Failed(cut)) = outcome(&[text]) else { panic!() };
        assert_eq!(cut.cause, FailureCause::Crashed);
        let limit = r#"{"type":"max_turns_reached"}"#;
        assert_eq!(
            outcome(&[limit]),
            Some(AdapterTurnOutcome::Completed(StopReason::MaxTurnRequests))
        );
    }
}
