//! `jackfield sessions fork`: a session that branches off another.

use crate::{
    app::Desk,
    env,
    hub::{Conn, Until, Wait, find, sessions},
    out::{Format, document},
    report::Failure,
};
use clap::Args;
use jackfield_protocol::acp::Method;
use serde_json::json;

/// Make a session that branches off another: the same past, a future of its own
///
/// The log is copied up to an event, by default the last; `jackfield log` shows their numbers. What
/// waits in the queue is not copied. Prints the id of the new session.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield sessions fork s-7f3
  $ jackfield sessions fork s-7f3 --at 120
  $ jackfield run -s \"$(jackfield sessions fork s-7f3)\" \"Try it the other way\"")]
pub(super) struct Fork {
    /// An id, a unique prefix of one, or a title
    session: String,

    /// The event after which it branches off [default: the last]
    #[arg(long, env = env::AT, hide_env_values = true, value_name = "SEQ")]
    at: Option<u64>,

    /// How to print the new session's id
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: Format,
}

impl Fork {
    pub(super) fn run(&self, desk: &Desk, conn: &mut Conn) -> Result<(), Failure> {
        let row = find(&sessions(conn)?, &self.session)?;
        if let Some(at) = self.at.filter(|it| !(1..=row.events).contains(it)) {
            let (id, events) = (&row.session_id, row.events);
            let message = format!("{id} has no event {at}: its events are 1 to {events}");
            let hint = format!("`jackfield log {id} --format json` shows them");
            return Err(Failure::usage(message, &hint));
        }
        let mut params = json!({ "sessionId": row.session_id, "cwd": row.cwd });
        if let Some(at) = self.at {
            params["_meta"] = json!({ "jackfield": { "seq": at } });
        }
        // A long log takes its time, and there is always Ctrl-C.
        let wait = Wait { what: "the session to be copied", until: Until::Deadline(None) };
        let answer = conn.call(Method::SessionFork.name(), &params, wait)?;
        let fork = answer["sessionId"].as_str().unwrap_or_default();
        match self.format {
            Format::Json => document(&desk.out, &json!({ "sessionId": fork })),
            Format::Text | Format::Quiet => desk.out.line(fork),
        }
    }
}
