//! Requests to the user and the policy: requests that a rule answers, rules that an Always answer adds, requests that
//! nobody answers in time, and tool calls that the agent did not ask about.

use super::{
    Session,
    approval::approval_facts,
    ask::{RequestOrigin, UserRequest, voided},
    calls::Call,
    turn::Turn,
};
use crate::{
    AgentId,
    agent::Agents,
    config::{AskRule, Config, Unanswered},
    context::HubContext,
    parts::HubParts,
    timer::HubTimer,
};
use jackfield_events::{EventBody, RawJson, RuleLearned, UnaskedCall, UserAnswered};
use jackfield_policy::{self as policy, PolicyDecision, Rule, RuleEffect, ToolCallFacts};
use jackfield_protocol::{Fault, Frame, redact, visible};
use serde_json::{Value, json};

/// Kinds of tools that change something.
const CHANGES: [&str; 4] = ["edit", "delete", "move", "execute"];

impl Agents {
    /// Why no rule can be enforced with this agent, or in this mode of it.
    pub(super) fn why_policy_is_unenforced(
        &self,
        cx: &HubContext,
        agent: Option<AgentId>,
        name: &str,
        mode: Option<&str>,
    ) -> Option<String> {
        if agent.and_then(|it| self.processes.get(&it)).is_some_and(|it| it.never_asks) {
            return Some(format!("{name} never asks before it acts: policy is not enforced"));
        }
        cx.config.policies.describe_unenforced_mode(name, mode?)
    }

    /// Why rules are not enforced in this session, as far as it is known.
    pub(crate) fn find_unenforced_policy(
        &self,
        cx: &HubContext,
        session: &Session,
    ) -> Option<String> {
        let state = session.summary();
        let mode = state.mode();
        if let Some(why) =
            self.why_policy_is_unenforced(cx, session.agent, &state.agent, mode.as_deref())
        {
            return Some(why);
        }
        let unasked: Value = serde_json::from_str(state.unasked.as_ref()?.as_str()).ok()?;
        let what = unasked["title"].as_str().unwrap_or("a tool");
        Some(format!("{} ran `{what}` without asking: policy is not enforced", state.agent))
    }
}

impl Session {
    /// The facts of a permission request, with what the agent reported about its tool call before.
    pub(super) fn read_tool_call(&self, config: &Config, params: &Value) -> ToolCallFacts {
        let (agent, cwd) = (&self.summary().agent, &self.summary().cwd);
        let known = find_reported_call(self, params).map(Call::as_json);
        let home = config.policies.home.as_deref();
        ToolCallFacts::from_request(agent, cwd, home, params, known.as_ref())
    }

    /// The decision of the rules about a permission request.
    pub(crate) fn judge_tool_call(&self, cx: &HubContext, params: &Value) -> PolicyDecision {
        let call = self.read_tool_call(&cx.config, params);
        let mut decision = cx.config.policies.evaluate_call(learned(self), &call);
        if find_reported_call(self, params).is_some_and(|it| it.cut)
            && decision.effect == Some(RuleEffect::Allow)
        {
            // A call with unknown parts cannot be allowed.
            decision.effect = Some(RuleEffect::Ask);
            decision.why.push_str("; but it was told at such length that a person is asked");
        }
        decision
    }

    /// The facts of a permission request for people.
    pub(super) fn describe_tool_call(
        &self,
        cx: &HubContext,
        ask: &Frame,
        origin: &RequestOrigin,
        decision: &PolicyDecision,
    ) -> RawJson {
        let call = self.read_tool_call(&cx.config, &ask.params_value());
        let mut facts = approval_facts(&call, decision);
        if matches!(origin, RequestOrigin::NetworkProxy) {
            facts["always"] = KEPT_HOST_ANSWERS.into();
        }
        redact::json(&mut facts);
        RawJson::trusted(facts.to_string())
    }

    /// Whether the answer is permanent. Then the agent gets the answer for one time, and the hub keeps the rule: a permanent
    /// grant of an agent could not be listed or revoked.
    pub(super) fn accept_always_answer(
        &mut self,
        cx: &mut HubContext,
        number: u64,
        ask: &UserRequest,
        result: &str,
    ) -> Option<String> {
        let mut result: Value = serde_json::from_str(result).ok()?;
        let params = ask.frame.params_value();
        let options = params["options"].as_array()?;
        let chosen = &result["outcome"]["optionId"];
        let kind = options.iter().find(|it| it["optionId"] == *chosen)?["kind"].as_str()?;
        let (effect, once) = match kind {
            "allow_always" => (RuleEffect::Allow, "allow_once"),
            "reject_always" => (RuleEffect::Deny, "reject_once"),
            _ => return None,
        };
        let rule = policy::learn_rule(&self.read_tool_call(&cx.config, &params), effect);
        if let Some(rule) = rule {
            let rule = serde_json::to_string(&rule).expect("a rule is plain data");
            self.append_event(
                cx,
                EventBody::Learned(RuleLearned { ask: number, rule: RawJson::trusted(rule) }),
            );
        }
        let once = options.iter().find(|it| it["kind"] == once)?["optionId"].clone();
        result["outcome"]["optionId"] = once;
        Some(result.to_string())
    }

    /// Ends the turn if the answer of a client requires it, because no option allows the request.
    pub(super) fn fail_unapproved_turn(
        &mut self,
        parts: &mut HubParts,
        ask: &UserRequest,
        answer: &Frame,
    ) {
        let answer: Value =
            serde_json::from_str(answer.result().unwrap_or("{}")).unwrap_or_default();
        let Some(why) = policy::turn_failure(&answer) else { return };
        let (params, why) = (ask.frame.params_value(), why.to_owned());
        let call = &params["toolCall"];
        let reported = || find_reported_call(self, &params)?.text("title");
        let title = call["title"].as_str().or_else(reported).or(call["toolCallId"].as_str());
        let mut title = Value::from(title.unwrap_or("a tool"));
        redact::json(&mut title);
        let request = visible::line(title.as_str().unwrap_or_default()).into_owned();
        self.fail_turn(parts, Fault::NotApproved { request, why });
    }

    /// Sets the deadline of a request, which the session may choose.
    pub(super) fn schedule_unanswered_rule(&mut self, cx: &mut HubContext, number: u64) {
        if let Some(rule) = self.find_unanswered_rule(cx) {
            let at = cx.now.plus(rule.after_ms);
            cx.timers.set(at, HubTimer::AskRule(self.id.clone(), number));
        }
    }

    fn find_unanswered_rule(&self, cx: &HubContext) -> Option<AskRule> {
        let params = self.summary().params.as_str();
        let params: Value = serde_json::from_str(params).unwrap_or_default();
        let own = params.pointer("/_meta/jackfield/asks").and_then(AskRule::of);
        own.or(cx.config.ask_rule)
    }

    /// A tool call has ended. If a rule requires asking or denies it and nobody was asked, that is logged once per turn.
    pub(crate) fn note_tool_call(&mut self, cx: &mut HubContext, frame: &Frame) {
        let now = cx.now;
        let Some(call) = self.calls.on_update(frame, now) else { return };
        let done = call.text("status") == Some("completed");
        let changes = call.text("kind").is_none_or(|it| CHANGES.contains(&it));
        let Some(name) = call.text("toolCallId").filter(|_| done && changes) else { return };
        let secret = |it: &Turn| !it.unasked && !it.asked.contains(name);
        if !self.turn.as_ref().is_some_and(secret) {
            return;
        }
        let params = json!({ "toolCall": call.as_json() });
        let decision = cx
            .config
            .policies
            .evaluate_call(learned(self), &self.read_tool_call(&cx.config, &params));
        if !matches!(decision.effect, Some(RuleEffect::Ask | RuleEffect::Deny)) {
            return;
        }
        let mode = self.summary().mode();
        let call = json!({
            "toolCallId": params["toolCall"]["toolCallId"],
            "title": params["toolCall"]["title"],
            "mode": mode,
            "decision": decision.to_json(),
        });
        self.append_event(
            cx,
            EventBody::Unasked(UnaskedCall { call: RawJson::trusted(call.to_string()) }),
        );
        if let Some(turn) = &mut self.turn {
            turn.unasked = true;
        }
    }

    pub(crate) fn on_user_request_timeout(&mut self, parts: &mut HubParts, number: u64) {
        let Some(rule) = self.find_unanswered_rule(&parts.cx) else { return };
        let Some(ask) = self.asks.remove(&number) else { return };
        let why = format!("nobody answered for {} s", rule.after_ms.div_ceil(1000));
        self.remember_closed_request(&parts.cx, number, why.as_str().into());
        let refusal = refusal(&ask);
        match rule.then {
            Unanswered::Deny => {
                let answer = RawJson::trusted(format!(r#"{{"result":{refusal}}}"#));
                let by = format!("jackfield: {why}").into();
                self.append_event(
                    &mut parts.cx,
                    EventBody::Answered(UserAnswered { ask: number, by, answer, peer: None }),
                );
            }
            Unanswered::Fail => {
                self.append_event(&mut parts.cx, voided(number, &why));
            }
        }
        self.deliver_answer(parts, &ask, &Frame::result_for(&ask.agent_request_id, &refusal));
        if rule.then == Unanswered::Fail {
            self.cancel_turn(parts);
        }
    }
}

/// What permanent answers about a host do.
const KEPT_HOST_ANSWERS: &str = "keeps the answer for all agents with this sandbox profile until `jackfield sandbox \
    forget` removes it, or only until this agent ends";

/// The rules that were added in this session.
fn learned(session: &Session) -> Vec<Rule> {
    let rule = |it: &RawJson| serde_json::from_str(it.as_str()).ok();
    session.summary().rules.iter().filter_map(rule).collect()
}

/// The answer of a rule, which is always one of the options of the agent.
pub(super) fn answer_of(decision: &PolicyDecision, ask: &Frame) -> Option<String> {
    let effect = decision.effect?;
    let params = ask.params_value();
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

/// The answer that denies the request.
fn refusal(ask: &UserRequest) -> String {
    if !ask.is_permission() {
        return r#"{"action":"decline"}"#.to_owned();
    }
    let params = ask.frame.params_value();
    let option = policy::select_option(&params, RuleEffect::Deny, policy::GrantDuration::Once);
    option.map_or_else(|| CANCELLED.to_owned(), selected)
}

/// What the agent has reported about the tool call of a request before.
fn find_reported_call<'a>(session: &'a Session, params: &Value) -> Option<&'a Call> {
    session.calls.get(params["toolCall"]["toolCallId"].as_str()?)
}
