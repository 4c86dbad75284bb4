//! How simulated clients use the prompt queue: prompt, steer, move, withdraw and release held prompts; and how they fork
//! and read pages of a log.

use super::{HubWorld, check::RequestKind};
use jackfield_hub::{ConnId, SessionId};

impl HubWorld {
    pub(super) fn send_prompt(&mut self, conn: ConnId, session: &SessionId) {
        let steers = self.rng.chance(15);
        let meta = if steers { r#""steer":true"# } else { "" };
        self.send_request(conn, RequestKind::Prompt, Some(session), "session/prompt", meta);
    }

    pub(super) fn act_on_queue(&mut self, conn: ConnId, session: &SessionId) {
        let numbers = self.queue_tracker.queued_numbers(session);
        // Sometimes a prompt that is not queued.
        let number = match numbers.len() {
            0 => 1 + self.rng.below(4),
            _ if self.rng.chance(10) => 1 + self.rng.below(9),
            len => numbers[self.rng.index(len)],
        };
        let one = format!(r#""prompt":{number}"#);
        match self.rng.below(6) {
            0 => self.send_request(conn, RequestKind::Queue, Some(session), "_jackfield/queue", ""),
            1 => self.send_request(
                conn,
                RequestKind::Withdraw,
                Some(session),
                "_jackfield/withdraw",
                &one,
            ),
            2 => {
                let before = numbers.get(self.rng.index(numbers.len() + 1));
                let before = before.map_or_else(|| "null".to_owned(), u64::to_string);
                let params = format!(r#"{one},"before":{before}"#);
                let kind = RequestKind::MovePrompt;
                self.send_request(conn, kind, Some(session), "_jackfield/move", &params);
            }
            3 => self.send_request(
                conn,
                RequestKind::Release,
                Some(session),
                "_jackfield/release",
                &one,
            ),
            _ => self.send_request(
                conn,
                RequestKind::Release,
                Some(session),
                "_jackfield/release",
                "",
            ),
        }
    }

    /// Reads a page of the log.
    pub(super) fn read_log_page(&mut self, conn: ConnId, session: &SessionId) {
        let (limit, seq) = (1 + self.rng.below(20), self.rng.below(40));
        let params = match self.rng.below(3) {
            0 => format!(r#""limit":{limit}"#),
            1 => format!(r#""limit":{limit},"before":{seq}"#),
            _ => format!(r#""limit":{limit},"after":{seq}"#),
        };
        let (kind, method) = (RequestKind::ReadLog, "_jackfield/read_log");
        self.send_request(conn, kind, Some(session), method, &params);
    }

    pub(super) fn send_fork(&mut self, conn: ConnId, session: &SessionId) {
        // A gateway sends a fork only once, so a relay connection cannot find out whether a copy was made when its
        // session moved.
        if 4 < self.disk.streams.len() + self.disk.copies.len() || self.conns[&conn].relay {
            return;
        }
        let head = self.disk.streams.get(session).map_or(1, |it| it.acked);
        let seq = 1 + self.rng.below(head + 1);
        let meta = format!(r#""_meta":{{"jackfield":{{"seq":{seq}}}}},"#);
        let meta = if self.rng.chance(50) { meta } else { String::new() };
        let params = format!(r#"{meta}"cwd":"/x","mcpServers":[]"#);
        self.send_request(conn, RequestKind::Fork, Some(session), "session/fork", &params);
    }
}
