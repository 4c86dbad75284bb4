//! An ask has at most one winner, and the agent hears exactly one answer.

use super::hold;
use crate::hub_sim::peek;
use bytes::Bytes;
use jackfield_events::{AgentSessionId, EventBody, UserAnswered, UserAsked};
use jackfield_hub::{AgentId, ConnId, SessionId};
use std::collections::BTreeMap;

/// Everything asked in this world.
#[derive(Debug, Default)]
pub(in crate::hub_sim) struct Asks {
    all: BTreeMap<u64, Ask>,
    /// What clients answered: which ask each choice was for.
    choices: BTreeMap<u64, u64>,
    /// The asks of each log, by session and number.
    numbered: BTreeMap<(SessionId, u64), u64>,
}

#[derive(Debug)]
struct Ask {
    agent: AgentId,
    theirs: AgentSessionId,
    what: What,
    answered: bool,
    /// What the log says the answer is.
    settled: Option<Bytes>,
}

/// What an agent asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::hub_sim) enum What {
    /// Of one client, and not written down.
    Passing,
    Form,
    Permission,
    /// A permission that a rule speaks of.
    Ruled,
}

impl Asks {
    pub(in crate::hub_sim) fn on_asked(
        &mut self,
        mark: u64,
        agent: AgentId,
        theirs: &AgentSessionId,
        what: What,
    ) {
        let theirs = theirs.clone();
        let ask = Ask { agent, theirs, what, answered: false, settled: None };
        self.all.insert(mark, ask);
    }

    /// A client chooses; `ask` is the mark of what it was asked.
    pub(in crate::hub_sim) fn on_choice(&mut self, choice: u64, ask: u64) {
        self.choices.insert(choice, ask);
    }

    /// Processes and their asks are gone.
    pub(in crate::hub_sim) fn on_agent_gone(&mut self, agent: AgentId) {
        for ask in self.all.values_mut().filter(|it| it.agent == agent) {
            ask.answered = true;
        }
    }

    pub(in crate::hub_sim) fn on_landed(
        &mut self,
        session: &SessionId,
        body: &EventBody,
    ) -> Option<Ended> {
        match body {
            EventBody::Asked(UserAsked { ask, frame, .. }) => {
                let mark = peek::mark(frame.bytes())?;
                self.numbered.insert((session.clone(), *ask), mark);
                None
            }
            EventBody::Answered(UserAnswered { ask, by, answer, .. }) => {
                let mark = *self.numbered.get(&(session.clone(), *ask))?;
                let answer = answer.bytes();
                self.an_answer_was_given_to_that_ask(mark, answer);
                let fact = self.all.get_mut(&mark)?;
                rules_answer_and_nobody_else(fact, by, answer);
                an_error_permits_and_denies_nothing(fact, answer);
                fact.settled = Some(answer.clone());
                Some(match by.as_ref() {
                    _ if peek::contains(answer, "\"void\"") => Ended::Void,
                    "policy" => Ended::Ruled,
                    _ => Ended::Chosen,
                })
            }
            _ => None,
        }
    }

    fn an_answer_was_given_to_that_ask(&self, mark: u64, answer: &Bytes) {
        let choice = peek::choice(answer);
        let given_to = choice.map(|it| self.choices.get(&it).copied());
        hold("an_answer_was_given_to_that_ask", given_to.is_none_or(|it| it == Some(mark)), || {
            format!("ask {mark} was answered with {answer:?}, which was said to {given_to:?}")
        });
    }

    /// The hub answers an agent's ask.
    pub(in crate::hub_sim) fn the_agent_hears_one_answer(
        &mut self,
        agent: AgentId,
        id: &str,
        text: &Bytes,
    ) {
        let mark = peek::number_after(id.as_bytes(), "q-").unwrap_or(0);
        let ask = self.all.get_mut(&mark).filter(|it| it.agent == agent && !it.answered);
        hold("the_agent_hears_one_answer", ask.is_some(), || {
            format!("{agent} heard {text:?} and waits for no answer under {id}")
        });
        let ask = ask.expect("held above");
        ask.answered = true;
        let journaled = ask.what != What::Passing;
        let settled = ask.settled.clone();
        self.an_answer_was_given_to_that_ask(mark, text);
        // What is refused at once, because no client can answer it or too much waits, is not in the log.
        let refused = ["method_not_found", "overloaded"].iter().any(|it| peek::contains(text, it));
        if journaled && !refused {
            an_answer_is_written_before_it_is_heard(agent, settled.as_ref(), text);
        }
    }

    /// The latest ask of a session and its mark.
    pub(in crate::hub_sim) fn latest(&self, session: &SessionId) -> Option<(u64, u64)> {
        let all = self.numbered.range((session.clone(), 0)..=(session.clone(), u64::MAX));
        all.last().map(|((_, number), &mark)| (*number, mark))
    }

    /// Who is told that its answer counts finds it in the log.
    pub(in crate::hub_sim) fn an_answer_that_counts_is_in_the_log(&self, choice: u64) {
        let mark = self.choices.get(&choice);
        let settled = mark.and_then(|it| self.all.get(it)).and_then(|it| it.settled.as_ref());
        let same = settled.is_some_and(|it| peek::choice(it) == Some(choice));
        hold("an_answer_that_counts_is_in_the_log", same, || {
            format!("choice {choice} to ask {mark:?} was accepted, but the log says {settled:?}")
        });
    }

    /// Whether the log has an answer.
    pub(in crate::hub_sim) fn is_settled(&self, mark: u64) -> bool {
        self.all.get(&mark).is_some_and(|it| it.settled.is_some())
    }

    /// Asks of running agents that nobody answered: their marks, and the agents' names for their
    /// sessions.
    pub(in crate::hub_sim) fn open(&self) -> impl Iterator<Item = (u64, AgentId, &AgentSessionId)> {
        let open = self.all.iter().filter(|(_, it)| !it.answered);
        open.map(|(&mark, it)| (mark, it.agent, &it.theirs))
    }

    /// In which session an ask was asked.
    pub(in crate::hub_sim) fn theirs(&self, mark: u64) -> Option<&AgentSessionId> {
        self.all.get(&mark).map(|it| &it.theirs)
    }

    /// Only what an agent asked is asked of a client.
    pub(in crate::hub_sim) fn a_client_is_asked_what_an_agent_asked(
        &self,
        conn: ConnId,
        text: &Bytes,
    ) -> u64 {
        let mark = peek::mark(text).filter(|it| self.all.contains_key(it));
        hold("a_client_is_asked_what_an_agent_asked", mark.is_some(), || {
            format!("{conn} was asked {text:?}")
        });
        let mark = mark.expect("held above");
        hold("rules_answer_before_people_do", self.all[&mark].what != What::Ruled, || {
            format!("{conn} was asked {text:?}, which a rule answers")
        });
        mark
    }
}

/// How an ask ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::hub_sim) enum Ended {
    Chosen,
    Ruled,
    Void,
}

/// What a rule speaks of is answered by it, and what none speaks of by people.
fn rules_answer_and_nobody_else(ask: &Ask, by: &str, answer: &Bytes) {
    let (void, rule) = (peek::contains(answer, "\"void\""), by == "policy");
    hold("rules_answer_before_people_do", void || rule == (ask.what == What::Ruled), || {
        format!("{ask:?} was answered by {by} with {answer:?}")
    });
}

/// A client that cannot ask its user has not answered for it.
fn an_error_permits_and_denies_nothing(ask: &Ask, answer: &Bytes) {
    let error = answer.starts_with(b"{\"error\"");
    let permission = matches!(ask.what, What::Permission | What::Ruled);
    hold("an_error_permits_and_denies_nothing", !(permission && error), || {
        format!("a permission was settled with {answer:?}")
    });
}

fn an_answer_is_written_before_it_is_heard(agent: AgentId, settled: Option<&Bytes>, text: &Bytes) {
    let same = settled.is_some_and(|it| peek::choice(it) == peek::choice(text));
    hold("an_answer_is_written_before_it_is_heard", same, || {
        format!("{agent} heard {text:?}, but the log says {settled:?}")
    });
}
