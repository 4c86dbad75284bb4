//! Where asks meet the policy: what a rule answers by itself, what an Always teaches, what happens
//! to an ask that nobody answers, and what an agent did without asking.

use super::{
    Session,
    approval::approval_facts,
    ask::{Ask, voided},
    calls::Call as Told,
    turn::Turn,
};
use crate::{AgentId, Hub, SessionId, timer::Timer};
use jackfield_events::{EventBody, RawJson, RuleLearned, UnaskedCall, UserAnswered};
use jackfield_policy::{self as policy, PolicyDecision, Rule, RuleEffect, ToolCallFacts};
use jackfield_protocol::{Frame, redact};
use serde_json::{Value, json};

/// What becomes of an ask that nobody has answered for so long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AskRule {
    pub after_ms: u64,
    pub then: Unanswered,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unanswered {
    /// It is refused, and the turn goes on.
    Deny,
    /// It is withdrawn, and the turn is cancelled.
    Fail,
}

/// Kinds of tools that change something: doing these without asking is worth a look.
const CHANGES: [&str; 4] = ["edit", "delete", "move", "execute"];

impl Hub {
    /// What the rules say to a permission request.
    pub(super) fn judge(&self, id: &SessionId, params: &Value) -> PolicyDecision {
        let session = &self.sessions[id];
        let call = self.call(session, params);
        let mut decision = self.cx.config.policies.evaluate_call(learned(session), &call);
        if told_before(session, params).is_some_and(|it| it.cut)
            && decision.effect == Some(RuleEffect::Allow)
        {
            // What is not known of it cannot be allowed.
            decision.effect = Some(RuleEffect::Ask);
            decision.why.push_str("; but it was told at such length that a person is asked");
        }
        decision
    }

    /// What a permission request is about, for people.
    pub(super) fn facts(&self, id: &SessionId, ask: &Frame, decision: &PolicyDecision) -> RawJson {
        let call = self.call(&self.sessions[id], &params_of(ask));
        let mut facts = approval_facts(&call, decision);
        redact::json(&mut facts);
        RawJson::trusted(facts.to_string())
    }

    /// A decision as the log has it: nothing if there are no rules.
    pub(super) fn spoken(&self, decision: &PolicyDecision) -> Option<RawJson> {
        if decision.effect.is_none() && self.cx.config.policies.is_empty() {
            return None;
        }
        Some(RawJson::trusted(decision.to_json().to_string()))
    }

    /// The facts of a permission request, with what was said about its tool call before.
    pub(super) fn call(&self, session: &Session, params: &Value) -> ToolCallFacts {
        let (agent, cwd) = (&session.summary().agent, &session.summary().cwd);
        let known = told_before(session, params).map(Told::as_json);
        ToolCallFacts::from_request(
            agent,
            cwd,
            self.cx.config.policies.home.as_deref(),
            params,
            known.as_ref(),
        )
    }

    /// Whether the answer is for ever. If so the agent hears the one for this once, and the rest is
    /// a rule of ours: its own permanent grants nobody could look up or take back.
    pub(super) fn take_always(
        &mut self,
        id: &SessionId,
        number: u64,
        ask: &Ask,
        result: &str,
    ) -> Option<String> {
        let mut result: Value = serde_json::from_str(result).ok()?;
        let params = params_of(&ask.frame);
        let options = params["options"].as_array()?;
        let chosen = &result["outcome"]["optionId"];
        let kind = options.iter().find(|it| it["optionId"] == *chosen)?["kind"].as_str()?;
        let (effect, once) = match kind {
            "allow_always" => (RuleEffect::Allow, "allow_once"),
            "reject_always" => (RuleEffect::Deny, "reject_once"),
            _ => return None,
        };
        let session = self.sessions.get(id)?;
        let rule = policy::learn_rule(&self.call(session, &params), effect);
        if let Some(rule) = rule {
            let rule = serde_json::to_string(&rule).expect("a rule is plain data");
            self.append(
                id,
                EventBody::Learned(RuleLearned { ask: number, rule: RawJson::trusted(rule) }),
            );
        }
        let once = options.iter().find(|it| it["kind"] == once)?["optionId"].clone();
        result["outcome"]["optionId"] = once;
        Some(result.to_string())
    }

    /// An ask waits for a person: for how long is the session's to say.
    pub(super) fn limit_ask(&mut self, id: &SessionId, number: u64) {
        if let Some(rule) = self.ask_rule(id) {
            let at = self.cx.now.plus(rule.after_ms);
            self.cx.timers.set(at, Timer::AskRule(id.clone(), number));
        }
    }

    fn ask_rule(&self, id: &SessionId) -> Option<AskRule> {
        let params = self.sessions.get(id)?.summary().params.as_str();
        let params: Value = serde_json::from_str(params).unwrap_or_default();
        let own = params.pointer("/_meta/jackfield/asks").and_then(AskRule::of);
        own.or(self.cx.config.ask_rule)
    }

    pub(crate) fn on_ask_unanswered(&mut self, id: &SessionId, number: u64) {
        let Some(rule) = self.ask_rule(id) else { return };
        let Some(session) = self.sessions.get_mut(id) else { return };
        let Some(ask) = session.asks.remove(&number) else { return };
        let why = format!("nobody answered for {} s", rule.after_ms.div_ceil(1000));
        self.remember_settled(id, number, why.as_str().into());
        let refusal = refusal(&ask);
        match rule.then {
            Unanswered::Deny => {
                let answer = RawJson::trusted(format!(r#"{{"result":{refusal}}}"#));
                let by = format!("jackfield: {why}").into();
                self.append(
                    id,
                    EventBody::Answered(UserAnswered { ask: number, by, answer, peer: None }),
                );
            }
            Unanswered::Fail => drop(self.append(id, voided(number, &why))),
        }
        self.answer_agent(id, &ask, &Frame::result_for(&ask.theirs, &refusal));
        if rule.then == Unanswered::Fail {
            self.cancel_turn(id);
        }
    }

    /// A tool call has been carried out: if a rule wanted it asked or denied and nobody was asked,
    /// that is written down, once a turn.
    pub(crate) fn look_at(&mut self, id: &SessionId, frame: &Frame) {
        let now = self.cx.now;
        let Some(session) = self.sessions.get_mut(id) else { return };
        let Some(told) = session.calls.on_update(frame, now) else { return };
        let done = told.text("status") == Some("completed");
        let changes = told.text("kind").is_none_or(|it| CHANGES.contains(&it));
        let Some(name) = told.text("toolCallId").filter(|_| done && changes) else { return };
        let secret = |it: &Turn| !it.unasked && !it.asked.contains(name);
        if !session.turn.as_ref().is_some_and(secret) {
            return;
        }
        let params = json!({ "toolCall": told.as_json() });
        let session = &self.sessions[id];
        let decision =
            self.cx.config.policies.evaluate_call(learned(session), &self.call(session, &params));
        if !matches!(decision.effect, Some(RuleEffect::Ask | RuleEffect::Deny)) {
            return;
        }
        let mode = session.summary().mode();
        let call = json!({
            "toolCallId": params["toolCall"]["toolCallId"],
            "title": params["toolCall"]["title"],
            "mode": mode,
            "decision": decision.to_json(),
        });
        self.append(
            id,
            EventBody::Unasked(UnaskedCall { call: RawJson::trusted(call.to_string()) }),
        );
        if let Some(turn) = self.sessions.get_mut(id).and_then(|it| it.turn.as_mut()) {
            turn.unasked = true;
        }
    }

    /// Why no rule can be enforced by this agent, or in this mode of it.
    pub(super) fn why_unenforced(
        &self,
        agent: Option<AgentId>,
        name: &str,
        mode: Option<&str>,
    ) -> Option<String> {
        if agent.and_then(|it| self.agents.get(&it)).is_some_and(|it| it.never_asks) {
            return Some(format!("{name} never asks before it acts: policy is not enforced"));
        }
        self.cx.config.policies.describe_unenforced_mode(name, mode?)
    }

    /// Why rules are not heard in this session, as far as is known.
    pub(crate) fn unheard(&self, session: &Session) -> Option<String> {
        let state = &session.summary();
        let mode = state.mode();
        if let Some(why) = self.why_unenforced(session.agent, &state.agent, mode.as_deref()) {
            return Some(why);
        }
        let unasked: Value = serde_json::from_str(state.unasked.as_ref()?.as_str()).ok()?;
        let what = unasked["title"].as_str().unwrap_or("a tool");
        Some(format!("{} ran `{what}` without asking: policy is not enforced", state.agent))
    }
}

impl AskRule {
    /// As a client says it with `session/new`: `{"after": SECONDS, "do": "deny" | "fail"}`.
    fn of(value: &Value) -> Option<AskRule> {
        let then = match value["do"].as_str()? {
            "deny" => Unanswered::Deny,
            "fail" => Unanswered::Fail,
            _ => return None,
        };
        Some(AskRule { after_ms: value["after"].as_u64()?.saturating_mul(1000), then })
    }
}

/// The rules that were learned in this session.
fn learned(session: &Session) -> Vec<Rule> {
    let rule = |it: &RawJson| serde_json::from_str(it.as_str()).ok();
    session.summary().rules.iter().filter_map(rule).collect()
}

/// The answer a rule gives by itself, if it gives one: always among what the agent offers.
pub(super) fn answer_of(decision: &PolicyDecision, ask: &Frame) -> Option<String> {
    let effect = decision.effect?;
    let params = params_of(ask);
    match (policy::select_option(&params, effect, decision.grant), effect) {
        (Some(option), _) => Some(selected(option)),
        (None, RuleEffect::Deny) => Some(CANCELLED.to_owned()),
        (None, RuleEffect::Allow | RuleEffect::Ask) => None,
    }
}

const CANCELLED: &str = r#"{"outcome":{"outcome":"cancelled"}}"#;

fn selected(option: &str) -> String {
    json!({ "outcome": { "outcome": "selected", "optionId": option } }).to_string()
}

/// A no in the words of the ask.
fn refusal(ask: &Ask) -> String {
    if !ask.is_permission() {
        return r#"{"action":"decline"}"#.to_owned();
    }
    let params = params_of(&ask.frame);
    let option = policy::select_option(&params, RuleEffect::Deny, policy::GrantDuration::Once);
    option.map_or_else(|| CANCELLED.to_owned(), selected)
}

/// What the agent has said about the tool call of a request before.
fn told_before<'a>(session: &'a Session, params: &Value) -> Option<&'a Told> {
    session.calls.get(params["toolCall"]["toolCallId"].as_str()?)
}

pub(super) fn params_of(ask: &Frame) -> Value {
    serde_json::from_str(ask.params().unwrap_or("{}")).unwrap_or_default()
}
