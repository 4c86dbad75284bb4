//! A prompt that is said again, under a key that is known: it never runs twice. Whoever says it waits
//! for the turn that it began, or hears how that ended.

use super::queue::Prompt;
use crate::{
    ConnId, Hub, SessionId,
    fanout::{Phase, Subscriber},
    log::Keyed,
    peer::{Route, outcome_frame},
};

impl Hub {
    pub(super) fn prompt_known(
        &mut self,
        id: &SessionId,
        conn: ConnId,
        request: &str,
        known: &Keyed,
    ) {
        if let Some(outcome) = &known.outcome {
            return self.answer_in(id, conn, &outcome_frame(request, outcome));
        }
        if let Some(it) = self.conns.get_mut(&conn) {
            it.requests.insert(request.into(), Route::Turn(id.clone()));
        }
        match (known.turn, known.prompt) {
            (Some(turn), _) => self.join_turn(id, conn, turn, request),
            (None, Some(number)) => self.join_queue(id, conn, number, request),
            (None, None) => unreachable!("a prompt waits or begins a turn at once"),
        }
    }

    /// The turn runs: one more waits for its end.
    fn join_turn(&mut self, id: &SessionId, conn: ConnId, number: u64, request: &str) {
        let session = self.sessions.get_mut(id).expect("the caller found this session");
        if let Some(turn) = &mut session.turn
            && !self.conns.contains_key(&turn.driver)
        {
            turn.driver = conn;
        }
        self.owe(id, conn, number, request.into());
    }

    /// It waits, or is held: then it runs after all, since somebody asks for it.
    fn join_queue(&mut self, id: &SessionId, conn: ConnId, number: u64, request: &str) {
        let session = self.sessions.get_mut(id).expect("the caller found this session");
        if !session.is_queued(number) {
            let queued = session.state.queue[&number].clone();
            session.queue.push_back(Prompt::held(conn, number, queued));
        }
        let mut queue = session.queue.iter_mut();
        let prompt = queue.find(|it| it.number == Some(number)).expect("queued above");
        prompt.waiters.push((conn, request.into()));
        if !self.conns.contains_key(&prompt.conn) {
            prompt.conn = conn;
        }
        self.pump(id);
    }

    /// A client hears the session from now on, and is answered under this request when the turn has
    /// ended.
    pub(super) fn owe(&mut self, id: &SessionId, conn: ConnId, turn: u64, request: Box<str>) {
        let session = self.sessions.get(id).expect("the caller found this session");
        if !session.subscribers.contains_key(&conn) {
            let durable = session.gate.durable();
            self.subscribe(id, conn, Subscriber::new(durable, Phase::Live));
        }
        let subscriber = self.sessions.get_mut(id).and_then(|it| it.subscribers.get_mut(&conn));
        if let Some(subscriber) = subscriber {
            subscriber.owed.entry(turn).or_default().push(request);
        }
    }
}
