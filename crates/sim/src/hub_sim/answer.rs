//! How simulated clients answer what they are asked: well, with errors, from outside, or nothing.

use super::{World, check::Kind};
use jackfield_hub::{ConnId, SessionId};

impl World {
    /// Answers something it was never asked, or has answered.
    pub(super) fn answer_nothing(&mut self, conn: ConnId) {
        let id = 1 + self.rng.below(8);
        let known = self.conns[&conn].issued.get(&id).copied();
        let id = if known.is_some() { id } else { 1000 + id };
        self.next_mark += 1;
        let choice = self.next_mark;
        self.asks.on_choice(choice, known.unwrap_or(0));
        self.send(
            conn,
            format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"outcome":"choice#{choice}"}}}}"#),
        );
    }

    /// Answers the latest ask of a session as `jackfield answer` does, attached or not; sometimes
    /// with what was not offered.
    pub(super) fn answer_from_outside(&mut self, conn: ConnId, session: &SessionId) {
        let Some((number, mark)) = self.asks.latest(session) else { return };
        let (option, action) =
            if self.rng.chance(90) { ("ok", "accept") } else { ("never offered", "nor this") };
        if option == "ok" {
            // The token of the request is the mark of the choice.
            self.asks.on_choice(self.next_mark + 1, mark);
        }
        // It fits any kind of ask, or none.
        let outcome = format!(r#""outcome":{{"outcome":"selected","optionId":"{option}"}}"#);
        let params = format!(r#""action":"{action}",{outcome}}},"ask":{number}"#);
        self.request(conn, Kind::Answer, Some(session), "_jackfield/answer", &params);
    }

    pub(super) fn answer_ask(&mut self, conn: ConnId) {
        let it = self.conns.get_mut(&conn).expect("the caller has it");
        let (id, mark) = match it.asked.len() {
            0 => return,
            len => it.asked.remove(self.rng.index(len)),
        };
        self.next_mark += 1;
        let choice = self.next_mark;
        self.asks.on_choice(choice, mark);
        // An error settles no permission: when all shall come to rest, somebody must answer.
        let answer = if self.calm || self.rng.chance(85) {
            format!(r#""result":{{"outcome":"choice#{choice}"}}"#)
        } else {
            format!(r#""error":{{"code":-32603,"message":"choice#{choice}"}}"#)
        };
        self.send(conn, format!(r#"{{"jsonrpc":"2.0","id":{id},{answer}}}"#));
    }
}
