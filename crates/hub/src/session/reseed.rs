//! A session that its agent has lost: its events are read from the journal, and the next prompt carries a digest of
//! them. The log has only the prompt of the user.

use super::{Session, digest::ConversationDigest, restore_state::Step};
use crate::{
    AgentId, Output, Seq, Time, agent::PendingRequest, context::HubContext, limits, log::Effect,
    parts::HubParts, timer::HubTimer,
};
use jackfield_events::{RawJson, RestoreStep, SessionEvent, TurnOutcome};
use jackfield_protocol::{Frame, Splice, acp::Method};
use serde_json::{json, value::RawValue};
use std::collections::BTreeMap;

/// The state of reading the journal.
#[derive(Debug)]
pub(super) struct LogRecall {
    digest: ConversationDigest,
    after: Seq,
    upto: Seq,
    /// Events are read from here on.
    start: Seq,
    /// Events that are not durable yet.
    held: Vec<SessionEvent>,
    /// The running turn is not part of the digest.
    running: u64,
    /// When to read again, if the journal was behind.
    again_at: Option<Time>,
}

impl LogRecall {
    pub(super) fn is_due(&self, now: Time) -> bool {
        self.again_at.is_some_and(|at| at <= now)
    }
}

impl Session {
    pub(super) fn continue_recall(&mut self, cx: &mut HubContext) {
        let Some(restoring) = self.restoring() else { return };
        let Step::Recalling(it) = &mut restoring.step else { return };
        it.again_at = None;
        let after = it.after;
        cx.outputs.push_back(Output::Recall { session: self.id.clone(), after });
    }

    /// The prompt as the agent gets it: after the digest, if there is one.
    pub(super) fn with_digest(&mut self, turn: u64, prompt: &Frame) -> Frame {
        let history = &mut self.restore_history;
        if let Some(trial) = &mut history.trial {
            trial.prompt = Some((turn, prompt.clone()));
        }
        match &history.digest {
            Some(digest) => with_digest(prompt, digest),
            None => prompt.clone(),
        }
    }

    /// Starts to read the journal, or continues if there is nothing to read.
    pub(super) fn begin_recall(&mut self, parts: &mut HubParts, agent: AgentId) {
        let running = self.turn.as_ref().map_or(u64::MAX, |it| it.number);
        if self.summary().turns == 0 || running == 1 {
            return self.restore_settings(parts, agent);
        }
        let upto = self.log.durable();
        let recalling = LogRecall {
            digest: ConversationDigest::default(),
            after: Seq(0),
            upto,
            start: Seq(upto.0.saturating_sub(limits::DIGEST_EVENTS_MAX)),
            held: self.log.pending_events().cloned().collect(),
            running,
            again_at: None,
        };
        if let Some(restoring) = self.restoring() {
            restoring.step = Step::Recalling(recalling);
        }
        self.continue_recall(&mut parts.cx);
    }

    pub(crate) fn on_recalled(
        &mut self,
        parts: &mut HubParts,
        after: Seq,
        events: &[SessionEvent],
    ) {
        let now = parts.cx.now;
        let Some(agent) = self.agent else { return };
        let Some(restoring) = self.restoring() else { return };
        let Step::Recalling(it) = &mut restoring.step else { return };
        if it.after != after || it.again_at.is_some() {
            return; // The answer to an older question.
        }
        for event in events.iter().filter(|event| event.seq <= it.upto) {
            it.digest.take(event, it.running);
            it.after = event.seq;
        }
        if it.after < it.start {
            it.digest.skip();
            it.after = it.start;
        } else if it.after == after && it.after < it.upto {
            let at = now.plus(limits::APPEND_RETRY_MS);
            it.again_at = Some(at);
            return parts.cx.timers.set(at, HubTimer::Restore(self.id.clone()));
        }
        if it.after < it.upto {
            return self.continue_recall(&mut parts.cx);
        }
        let mut digest = std::mem::take(&mut it.digest);
        it.held.iter().for_each(|event| digest.take(event, it.running));
        if let Some(found) = &mut restoring.found {
            found.digest = digest.into_text();
        }
        self.restore_settings(parts, agent);
    }

    /// The events cannot be read, so the agent would answer without the conversation.
    pub(crate) fn on_recall_failed(&mut self, parts: &mut HubParts, why: &str) {
        let Some(restoring) = self.restoring() else { return };
        if !matches!(restoring.step, Step::Recalling(_)) {
            return;
        }
        let why = format!("the journal could not be read: {why}");
        restoring.tried.push(json!({ "restore": RestoreStep::Reseeded.as_str(), "why": why }));
        self.abandon_restore(parts);
    }

    /// Sends a prompt again that was refused because the agent had no session for it.
    pub(super) fn send_prompt_again(
        &mut self,
        parts: &mut HubParts,
        agent: AgentId,
        number: u64,
        prompt: &Frame,
    ) {
        let Some(turn) = self.turn.as_mut().filter(|it| it.number == number) else { return };
        if turn.is_cancelled() {
            let cancelled = RawJson::trusted(r#"{"stopReason":"cancelled"}"#);
            return self.end_turn(parts, number, TurnOutcome::Stopped(cancelled));
        }
        let Some(process) = parts.agents.processes.get_mut(&agent) else { return };
        turn.hub_id = process.expect(PendingRequest::Prompt(self.id.clone(), number));
        let hub_id = turn.hub_id;
        self.mark_agent_used(parts, true);
        self.send_prompt(parts, agent, number, hub_id, prompt);
    }

    /// Sends a prompt as request `hub_id`, with a digest of the conversation if the agent does not have it.
    pub(super) fn send_prompt(
        &mut self,
        parts: &mut HubParts,
        agent: AgentId,
        turn: u64,
        hub_id: u64,
        prompt: &Frame,
    ) {
        let hub_id = hub_id.to_string();
        let agent_session_id = self.summary().agent_session.clone();
        let splice =
            Splice { id: Some(&hub_id), session_id: Some(&agent_session_id), request_id: None };
        let text = self.with_digest(turn, prompt).spliced(splice).bytes().clone();
        self.run_after_log(parts, Effect::ToAgent { agent, text });
    }
}

/// Inserts a text block before the blocks of the user, which are not changed.
fn with_digest(prompt: &Frame, digest: &str) -> Frame {
    let params: Result<BTreeMap<String, &RawValue>, _> =
        serde_json::from_str(prompt.params().unwrap_or("{}"));
    let Ok(mut params) = params else { return prompt.clone() };
    let blocks = params.get("prompt").and_then(|it| serde_json::from_str(it.get()).ok());
    let blocks: Vec<&RawValue> = blocks.unwrap_or_default();
    let block = json!({ "type": "text", "text": digest }).to_string();
    let all: Vec<&str> = std::iter::once(&*block).chain(blocks.iter().map(|it| it.get())).collect();
    let all = format!("[{}]", all.join(","));
    let Ok(all) = serde_json::from_str::<&RawValue>(&all) else { return prompt.clone() };
    params.insert("prompt".to_owned(), all);
    let params = serde_json::to_string(&params).expect("plain data serializes");
    Frame::request(prompt.id().unwrap_or("0"), Method::SessionPrompt.name(), &params)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn a_digest_stands_before_the_users_own_blocks() {
        let prompt = r#"{"id":1,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"go 1.0"}],"_meta":{"n":1.50}}}"#;
        let prompt = with_digest(&Frame::parse_str(prompt).unwrap(), "so far");
        let params: Value = serde_json::from_str(prompt.params().unwrap()).unwrap();
        let expected =
            json!([{ "type": "text", "text": "so far" }, { "type": "text", "text": "go 1.0" }]);
        assert_eq!(params["prompt"], expected);
        assert!(prompt.text().contains(r#""_meta":{"n":1.50}"#));
        assert_eq!(prompt.session_id().as_deref(), Some("s"));
    }
}
