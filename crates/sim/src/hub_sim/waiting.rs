//! What simulated clients do with prompts that wait: steer past them, withdraw them, run what an
//! earlier hub left; and how they fork.

use super::{World, check::Kind};
use jackfield_hub::{ConnId, SessionId};

impl World {
    pub(super) fn prompt(&mut self, conn: ConnId, session: &SessionId) {
        let steers = self.rng.chance(15);
        let meta = if steers { r#""steer":true"# } else { "" };
        self.request(conn, Kind::Prompt, Some(session), "session/prompt", meta);
    }

    pub(super) fn act_on_the_queue(&mut self, conn: ConnId, session: &SessionId) {
        let numbers = self.queues.numbers(session);
        // Now and then one that does not wait.
        let number = match numbers.len() {
            0 => 1 + self.rng.below(4),
            _ if self.rng.chance(10) => 1 + self.rng.below(9),
            len => numbers[self.rng.index(len)],
        };
        let one = format!(r#""prompt":{number}"#);
        match self.rng.below(5) {
            0 => self.request(conn, Kind::Queue, Some(session), "_jackfield/queue", ""),
            1 => self.request(conn, Kind::Withdraw, Some(session), "_jackfield/withdraw", &one),
            2 => self.request(conn, Kind::Release, Some(session), "_jackfield/release", &one),
            _ => self.request(conn, Kind::Release, Some(session), "_jackfield/release", ""),
        }
    }

    pub(super) fn fork(&mut self, conn: ConnId, session: &SessionId) {
        // Whether a copy was made when its session left, no relay connection can know: a gateway says it once.
        if 4 < self.disk.streams.len() + self.disk.copies.len() || self.conns[&conn].relay {
            return;
        }
        let head = self.disk.streams.get(session).map_or(1, |it| it.acked);
        let seq = 1 + self.rng.below(head + 1);
        let meta = format!(r#""_meta":{{"jackfield":{{"seq":{seq}}}}},"#);
        let meta = if self.rng.chance(50) { meta } else { String::new() };
        let params = format!(r#"{meta}"cwd":"/x","mcpServers":[]"#);
        self.request(conn, Kind::Fork, Some(session), "session/fork", &params);
    }
}
