//! Questions to the user about hosts that no rule names.

use crate::limits::{ANSWERS_MAX, QUESTIONS_MAX};
use crate::proxy_report::{AllowReason, RefusalReason};
use crate::target_host::HostPort;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, timeout_at};

/// A question whether a process may reach a host. `reply` is closed once no connection waits for the answer.
#[derive(Debug)]
pub struct HostQuestion {
    pub host: String,
    pub port: u16,
    pub reply: oneshot::Sender<HostAnswer>,
}

/// The answer to a [`HostQuestion`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostAnswer {
    /// Allows the connections that wait. The next one leads to another question.
    AllowOnce,
    /// Allows this host and port until the proxy ends.
    AllowSession,
    /// Allows the connections that wait, as the owner of the proxy has stored. The next one leads to another question,
    /// so that a stored answer can be removed.
    AllowAlways,
    /// Refuses the connections that wait.
    RefuseOnce,
    /// Refuses this host and port until the proxy ends.
    RefuseSession,
    /// Refuses the connections that wait, as the owner of the proxy has stored.
    RefuseAlways,
}

/// The result of a question for the connections that wait.
type QuestionOutcome = Result<AllowReason, RefusalReason>;

/// Asks each question once, however many connections wait for its answer.
#[derive(Clone)]
pub(crate) struct HostQuestions {
    sender: mpsc::Sender<HostQuestion>,
    timeout: Duration,
    state: Arc<Mutex<QuestionState>>,
}

#[derive(Default)]
struct QuestionState {
    pending: BTreeMap<HostPort, Arc<watch::Sender<Option<QuestionOutcome>>>>,
    /// Answers for the session: whether the destination is allowed.
    answered: BTreeMap<HostPort, bool>,
}

impl HostQuestions {
    pub(crate) fn new(sender: mpsc::Sender<HostQuestion>, timeout: Duration) -> HostQuestions {
        HostQuestions { sender, timeout, state: Arc::default() }
    }

    fn state(&self) -> MutexGuard<'_, QuestionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the answer for the session, or asks.
    pub(crate) async fn ask_user(&self, target: &HostPort) -> QuestionOutcome {
        let mut outcome = self.join_question(target)?;
        match outcome.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(outcome)) => outcome.clone(),
            _ => Err(RefusalReason::NotAsked),
        }
    }

    /// Returns where the outcome will appear.
    fn join_question(
        &self,
        target: &HostPort,
    ) -> Result<watch::Receiver<Option<QuestionOutcome>>, RefusalReason> {
        let mut state = self.state();
        if let Some(is_allowed) = state.answered.get(target) {
            let outcome = if *is_allowed {
                Ok(AllowReason::AnswerSession)
            } else {
                Err(RefusalReason::UserRefused)
            };
            return Ok(watch::channel(Some(outcome)).1);
        }
        if let Some(pending) = state.pending.get(target) {
            return Ok(pending.subscribe());
        }
        if QUESTIONS_MAX <= state.pending.len() {
            return Err(RefusalReason::NotAsked);
        }
        let (reply, answer) = oneshot::channel();
        let question = HostQuestion { host: target.host.to_string(), port: target.port, reply };
        self.sender.try_send(question).map_err(|_| RefusalReason::NotAsked)?;
        let (publisher, outcome) = watch::channel(None);
        let publisher = Arc::new(publisher);
        state.pending.insert(target.clone(), Arc::clone(&publisher));
        tokio::spawn(self.clone().wait_for_answer(target.clone(), answer, publisher));
        Ok(outcome)
    }

    /// Publishes the answer, or withdraws the question if no connection waits for it any more.
    async fn wait_for_answer(
        self,
        target: HostPort,
        mut answer: oneshot::Receiver<HostAnswer>,
        publisher: Arc<watch::Sender<Option<QuestionOutcome>>>,
    ) {
        let deadline = Instant::now() + self.timeout;
        loop {
            tokio::select! {
                answer = timeout_at(deadline, &mut answer) => {
                    let mut state = self.state();
                    state.pending.remove(&target);
                    let outcome = match answer {
                        Ok(Ok(answer)) => state.accept_answer(&target, answer),
                        Ok(Err(_)) => Err(RefusalReason::NotAsked),
                        Err(_) => Err(RefusalReason::Unanswered),
                    };
                    publisher.send_replace(Some(outcome));
                    return;
                }
                () = publisher.closed() => {
                    let mut state = self.state();
                    // A connection may have joined in the meantime.
                    if publisher.receiver_count() == 0 {
                        state.pending.remove(&target);
                        return;
                    }
                }
            }
        }
    }
}

impl QuestionState {
    fn accept_answer(&mut self, target: &HostPort, answer: HostAnswer) -> QuestionOutcome {
        let (outcome, is_kept) = match answer {
            HostAnswer::AllowOnce => (Ok(AllowReason::AnswerOnce), false),
            HostAnswer::AllowSession => (Ok(AllowReason::AnswerSession), true),
            HostAnswer::AllowAlways => (Ok(AllowReason::AnswerAlways), false),
            HostAnswer::RefuseOnce => (Err(RefusalReason::UserRefused), false),
            HostAnswer::RefuseSession => (Err(RefusalReason::UserRefused), true),
            HostAnswer::RefuseAlways => (Err(RefusalReason::UserRefusedAlways), false),
        };
        if is_kept && self.answered.len() < ANSWERS_MAX {
            self.answered.insert(target.clone(), outcome.is_ok());
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::task::JoinSet;

    fn target(index: usize) -> HostPort {
        HostPort::parse(&format!("host{index}.example"), Some(443)).unwrap()
    }

    fn questions() -> (HostQuestions, mpsc::Receiver<HostQuestion>) {
        let (sender, receiver) = mpsc::channel(64);
        (HostQuestions::new(sender, Duration::from_mins(5)), receiver)
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_connections_share_one_question_and_its_answer() {
        let (questions, mut asked) = questions();
        let mut waiting = JoinSet::new();
        for _ in 0..10 {
            let questions = questions.clone();
            waiting.spawn(async move { questions.ask_user(&target(1)).await });
        }
        let question = asked.recv().await.unwrap();
        assert_eq!((question.host.as_str(), question.port), ("host1.example", 443));
        // All connections have joined by now, because a paused clock advances only when all tasks wait.
        tokio::time::sleep(Duration::from_secs(1)).await;
        question.reply.send(HostAnswer::AllowOnce).unwrap();
        let outcomes = waiting.join_all().await;
        assert_eq!(outcomes, vec![Ok(AllowReason::AnswerOnce); 10]);
        assert!(asked.try_recv().is_err());
        let next = tokio::spawn(async move { questions.ask_user(&target(1)).await });
        let question = asked.recv().await.unwrap();
        question.reply.send(HostAnswer::RefuseOnce).unwrap();
        assert_eq!(next.await.unwrap(), Err(RefusalReason::UserRefused));
    }

    #[tokio::test(start_paused = true)]
    async fn answer_for_the_session_is_kept_for_host_and_port() {
        let (questions, mut asked) = questions();
        for (index, answer, outcome) in [
            (1, HostAnswer::AllowSession, Ok(AllowReason::AnswerSession)),
            (2, HostAnswer::RefuseSession, Err(RefusalReason::UserRefused)),
        ] {
            let first = tokio::spawn({
                let questions = questions.clone();
                async move { questions.ask_user(&target(index)).await }
            });
            asked.recv().await.unwrap().reply.send(answer).unwrap();
            assert_eq!(first.await.unwrap(), outcome);
            assert_eq!(questions.ask_user(&target(index)).await, outcome);
        }
        let other_port = HostPort { port: 80, ..target(1) };
        let asking = tokio::spawn(async move { questions.ask_user(&other_port).await });
        assert_eq!(asked.recv().await.unwrap().port, 80);
        assert_eq!(asking.await.unwrap(), Err(RefusalReason::NotAsked), "it was dropped");
    }

    #[tokio::test(start_paused = true)]
    async fn stored_answer_is_asked_for_with_each_connection() {
        let (questions, mut asked) = questions();
        for (answer, outcome) in [
            (HostAnswer::AllowAlways, Ok(AllowReason::AnswerAlways)),
            (HostAnswer::RefuseAlways, Err(RefusalReason::UserRefusedAlways)),
        ] {
            let asking = tokio::spawn({
                let questions = questions.clone();
                async move { questions.ask_user(&target(1)).await }
            });
            asked.recv().await.unwrap().reply.send(answer).unwrap();
            assert_eq!(asking.await.unwrap(), outcome);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn question_ends_with_its_time_limit_or_its_last_connection() {
        let (questions, mut asked) = questions();
        assert_eq!(questions.ask_user(&target(1)).await, Err(RefusalReason::Unanswered));
        assert!(asked.recv().await.unwrap().reply.is_closed());
        let waiting = tokio::spawn({
            let questions = questions.clone();
            async move { questions.ask_user(&target(2)).await }
        });
        let mut question = asked.recv().await.unwrap();
        waiting.abort();
        question.reply.closed().await;
        assert!(questions.state().pending.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn number_of_questions_is_limited() {
        let (questions, asked) = questions();
        let mut waiting = JoinSet::new();
        for index in 0..=QUESTIONS_MAX {
            let questions = questions.clone();
            waiting.spawn(async move { questions.ask_user(&target(index)).await });
        }
        let first = waiting.join_next().await.unwrap().unwrap();
        assert_eq!((first, asked.len()), (Err(RefusalReason::NotAsked), QUESTIONS_MAX));
        drop(asked);
        assert_eq!(questions.ask_user(&target(99)).await, Err(RefusalReason::NotAsked));
    }
}
