//! How simulated clients answer requests to the user: correctly, with errors, without being attached, or not at all.

use super::{HubWorld, check::RequestKind};
use jackfield_hub::{ConnId, SessionId};

impl HubWorld {
    /// Answers an ask that was never issued or that is already answered.
    pub(super) fn answer_nothing(&mut self, conn: ConnId) {
        let id = 1 + self.rng.below(8);
        let known = self.conns[&conn].issued.get(&id).copied();
        let id = if known.is_some() { id } else { 1000 + id };
        self.next_mark += 1;
        let choice = self.next_mark;
        self.ask_tracker.on_choice(choice, known.unwrap_or(0));
        self.send_from_client(
            conn,
            format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"outcome":"choice#{choice}"}}}}"#),
        );
    }

    /// Answers the latest ask of a session with `_jackfield/answer`, attached or not; sometimes with an option that
    /// was not offered.
    pub(super) fn answer_from_outside(&mut self, conn: ConnId, session: &SessionId) {
        let Some((number, mark)) = self.ask_tracker.latest(session) else { return };
        let (option, action) =
            if self.rng.chance(90) { ("ok", "accept") } else { ("never offered", "nor this") };
        if option == "ok" {
            // The token of the request is the mark of the choice.
            self.ask_tracker.on_choice(self.next_mark + 1, mark);
        }
        // The result fits every kind of ask.
        let outcome = format!(r#""outcome":{{"outcome":"selected","optionId":"{option}"}}"#);
        let params = format!(r#""action":"{action}",{outcome}}},"ask":{number}"#);
        self.send_request(conn, RequestKind::Answer, Some(session), "_jackfield/answer", &params);
    }

    pub(super) fn answer_ask(&mut self, conn: ConnId) {
        let it = self.conns.get_mut(&conn).expect("the connection is open");
        let (id, mark) = match it.open_asks.len() {
            0 => return,
            len => it.open_asks.remove(self.rng.index(len)),
        };
        self.next_mark += 1;
        let choice = self.next_mark;
        self.ask_tracker.on_choice(choice, mark);
        // An error does not answer a permission request, so a run can only settle if a client answers properly.
        let answer = if self.faults_stopped || self.rng.chance(85) {
            format!(r#""result":{{"outcome":"choice#{choice}"}}"#)
        } else {
            format!(r#""error":{{"code":-32603,"message":"choice#{choice}"}}"#)
        };
        self.send_from_client(conn, format!(r#"{{"jsonrpc":"2.0","id":{id},{answer}}}"#));
    }
}
