//! Each ask has at most one answer, and the agent receives exactly one response.

use super::check_invariant;
use crate::hub_sim::markers;
use bytes::Bytes;
use jackfield_events::{AgentSessionId, EventBody, UserAnswered, UserAsked};
use jackfield_hub::{AgentId, ConnId, SessionId};
use std::collections::BTreeMap;

/// Tracks all asks of a run.
#[derive(Debug, Default)]
pub(in crate::hub_sim) struct AskTracker {
    all: BTreeMap<u64, AskRecord>,
    /// The answers of clients: the ask that each choice was meant for.
    choices: BTreeMap<u64, u64>,
    /// The asks in each log, by session and number.
    numbered: BTreeMap<(SessionId, u64), u64>,
}

#[derive(Debug)]
struct AskRecord {
    agent: AgentId,
    agent_session: AgentSessionId,
    what: AskKind,
    answered: bool,
    /// The answer in the log.
    settled: Option<Bytes>,
}

/// The kind of an ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::hub_sim) enum AskKind {
    /// Sent to one client and not logged.
    Passing,
    Form,
    Permission,
    /// A permission request that a rule answers.
    Ruled,
}

impl AskTracker {
    pub(in crate::hub_sim) fn on_ask(
        &mut self,
        mark: u64,
        agent: AgentId,
        agent_session: &AgentSessionId,
        what: AskKind,
    ) {
        let agent_session = agent_session.clone();
        let ask = AskRecord { agent, agent_session, what, answered: false, settled: None };
        self.all.insert(mark, ask);
    }

    /// A client answers the ask with this mark.
    pub(in crate::hub_sim) fn on_choice(&mut self, choice: u64, ask: u64) {
        self.choices.insert(choice, ask);
    }

    /// The process has exited, and with it its asks.
    pub(in crate::hub_sim) fn on_agent_gone(&mut self, agent: AgentId) {
        for ask in self.all.values_mut().filter(|it| it.agent == agent) {
            ask.answered = true;
        }
    }

    pub(in crate::hub_sim) fn on_durable(
        &mut self,
        session: &SessionId,
        body: &EventBody,
    ) -> Option<AskOutcome> {
        match body {
            EventBody::Asked(UserAsked { ask, frame, .. }) => {
                let mark = markers::find_mark(frame.bytes())?;
                self.numbered.insert((session.clone(), *ask), mark);
                None
            }
            EventBody::Answered(UserAnswered { ask, by, answer, .. }) => {
                let mark = *self.numbered.get(&(session.clone(), *ask))?;
                let answer = answer.bytes();
                self.answer_belongs_to_its_ask(mark, answer);
                let fact = self.all.get_mut(&mark)?;
                rules_answer_the_asks_they_cover(fact, by, answer);
                error_is_not_a_permission_answer(fact, answer);
                fact.settled = Some(answer.clone());
                Some(match by.as_ref() {
                    _ if markers::contains(answer, "\"void\"") => AskOutcome::Void,
                    "policy" => AskOutcome::Ruled,
                    _ => AskOutcome::Chosen,
                })
            }
            _ => None,
        }
    }

    fn answer_belongs_to_its_ask(&self, mark: u64, answer: &Bytes) {
        let choice = markers::find_choice(answer);
        let given_to = choice.map(|it| self.choices.get(&it).copied());
        check_invariant(
            "answer_belongs_to_its_ask",
            given_to.is_none_or(|it| it == Some(mark)),
            || format!("ask {mark} was answered with {answer:?}, which was sent to {given_to:?}"),
        );
    }

    /// The hub answers an agent's ask.
    pub(in crate::hub_sim) fn agent_receives_one_response_per_ask(
        &mut self,
        agent: AgentId,
        id: &str,
        text: &Bytes,
    ) {
        let mark = markers::number_after(id.as_bytes(), "q-").unwrap_or(0);
        let ask = self.all.get_mut(&mark).filter(|it| it.agent == agent && !it.answered);
        check_invariant("agent_receives_one_response_per_ask", ask.is_some(), || {
            format!("{agent} received {text:?} and has no open ask with id {id}")
        });
        let ask = ask.expect("checked above");
        ask.answered = true;
        let journaled = ask.what != AskKind::Passing;
        let settled = ask.settled.clone();
        self.answer_belongs_to_its_ask(mark, text);
        // An ask that is refused at once, because no client supports it or too many are open, is not in the log.
        let refused =
            ["method_not_found", "overloaded"].iter().any(|it| markers::contains(text, it));
        if journaled && !refused {
            answer_is_logged_before_it_is_sent(agent, settled.as_ref(), text);
        }
    }

    /// The number and the mark of the latest ask in a session.
    pub(in crate::hub_sim) fn latest(&self, session: &SessionId) -> Option<(u64, u64)> {
        let all = self.numbered.range((session.clone(), 0)..=(session.clone(), u64::MAX));
        all.last().map(|((_, number), &mark)| (*number, mark))
    }

    /// An answer that the hub accepts is in the log.
    pub(in crate::hub_sim) fn accepted_answer_is_logged(&self, choice: u64) {
        let mark = self.choices.get(&choice);
        let settled = mark.and_then(|it| self.all.get(it)).and_then(|it| it.settled.as_ref());
        let same = settled.is_some_and(|it| markers::find_choice(it) == Some(choice));
        check_invariant("accepted_answer_is_logged", same, || {
            format!("choice {choice} to ask {mark:?} was accepted, but the log has {settled:?}")
        });
    }

    /// Whether the log has an answer.
    pub(in crate::hub_sim) fn is_settled(&self, mark: u64) -> bool {
        self.all.get(&mark).is_some_and(|it| it.settled.is_some())
    }

    /// Unanswered asks of running agents: the mark, the agent, and the agent's session id.
    pub(in crate::hub_sim) fn open(&self) -> impl Iterator<Item = (u64, AgentId, &AgentSessionId)> {
        let open = self.all.iter().filter(|(_, it)| !it.answered);
        open.map(|(&mark, it)| (mark, it.agent, &it.agent_session))
    }

    /// The session in which an ask was sent.
    pub(in crate::hub_sim) fn agent_session(&self, mark: u64) -> Option<&AgentSessionId> {
        self.all.get(&mark).map(|it| &it.agent_session)
    }

    /// A client is only asked what an agent asked.
    pub(in crate::hub_sim) fn client_asks_come_from_agents(
        &self,
        conn: ConnId,
        text: &Bytes,
    ) -> u64 {
        let mark = markers::find_mark(text).filter(|it| self.all.contains_key(it));
        check_invariant("client_asks_come_from_agents", mark.is_some(), || {
            format!("{conn} was asked {text:?}")
        });
        let mark = mark.expect("checked above");
        check_invariant(
            "rules_answer_the_asks_they_cover",
            self.all[&mark].what != AskKind::Ruled,
            || format!("{conn} was asked {text:?}, which a rule answers"),
        );
        mark
    }
}

/// How an ask ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::hub_sim) enum AskOutcome {
    Chosen,
    Ruled,
    Void,
}

/// Rules answer the asks that they cover, and users answer the others.
fn rules_answer_the_asks_they_cover(ask: &AskRecord, by: &str, answer: &Bytes) {
    let (void, rule) = (markers::contains(answer, "\"void\""), by == "policy");
    check_invariant(
        "rules_answer_the_asks_they_cover",
        void || rule == (ask.what == AskKind::Ruled),
        || format!("{ask:?} was answered by {by} with {answer:?}"),
    );
}

/// The error of a client that cannot ask its user is not an answer.
fn error_is_not_a_permission_answer(ask: &AskRecord, answer: &Bytes) {
    let error = answer.starts_with(b"{\"error\"");
    let permission = matches!(ask.what, AskKind::Permission | AskKind::Ruled);
    check_invariant("error_is_not_a_permission_answer", !(permission && error), || {
        format!("a permission request was answered with {answer:?}")
    });
}

fn answer_is_logged_before_it_is_sent(agent: AgentId, settled: Option<&Bytes>, text: &Bytes) {
    let same = settled.is_some_and(|it| markers::find_choice(it) == markers::find_choice(text));
    check_invariant("answer_is_logged_before_it_is_sent", same, || {
        format!("{agent} received {text:?}, but the log has {settled:?}")
    });
}
