//! Sends a request and waits for its response, within a limit.

use super::{
    connection::{CommandConnection, ConnectionEvent, StdinUse},
    single_request::HUB_SECONDS_MAX,
};
use crate::report::CommandError;
use jackfield_protocol::acp::Method;
use serde_json::Value;
use std::time::{Duration, Instant};

/// How long a request about a session may take: a gateway searches for the session's host for 30 s.
const SESSION_HOST_SECONDS_MAX: u64 = 40;
/// After this time the user is told what the command waits for.
const NOTICE_DELAY: Duration = Duration::from_secs(1);

/// What a request waits for, and for how long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResponseWait<'a> {
    pub(crate) waited_for: &'a str,
    pub(crate) limit: WaitLimit,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum WaitLimit {
    /// The hub itself answers.
    Hub,
    /// The host of the session answers; in a fleet it has to be found first.
    SessionHost,
    /// An agent answers, within the limit that the caller may have set.
    Caller(Option<TimeLimit>),
    /// An agent answers, within the limit for its start.
    AgentStart(TimeLimit),
}

/// A deadline, and the length of the time that it ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeLimit {
    pub(crate) at: Instant,
    pub(crate) seconds: u64,
}

impl TimeLimit {
    pub(crate) fn after(seconds: u64) -> TimeLimit {
        TimeLimit { at: Instant::now() + Duration::from_secs(seconds), seconds }
    }
}

impl CommandConnection {
    /// Sends a request that the hub itself answers, and waits for its response.
    pub(crate) fn call_hub(
        &mut self,
        method: Method,
        params: &Value,
        waited_for: &str,
    ) -> Result<Value, CommandError> {
        self.call_method(method, params, ResponseWait { waited_for, limit: WaitLimit::Hub })
    }

    /// Sends a request and waits for its response. Other frames are kept for [`CommandConnection::next_event`].
    pub(crate) fn call_method(
        &mut self,
        method: Method,
        params: &Value,
        wait: ResponseWait<'_>,
    ) -> Result<Value, CommandError> {
        let id = self.send_request(method, params)?;
        let started_at = Instant::now();
        let limit = match wait.limit {
            WaitLimit::Hub => Some(started_at + Duration::from_secs(HUB_SECONDS_MAX)),
            WaitLimit::SessionHost => {
                Some(started_at + Duration::from_secs(SESSION_HOST_SECONDS_MAX))
            }
            WaitLimit::Caller(deadline) => deadline.map(|it| it.at),
            WaitLimit::AgentStart(deadline) => Some(deadline.at),
        };
        let mut notice_pending = true;
        loop {
            let notice_at =
                (started_at + NOTICE_DELAY).min(limit.unwrap_or(started_at + NOTICE_DELAY));
            let waited_for = || wait.waited_for.to_owned();
            match self
                .receive(if notice_pending { Some(notice_at) } else { limit }, StdinUse::Keep)?
            {
                ConnectionEvent::Response(response) if response.id == id => {
                    return Ok(response.into_result()?);
                }
                event @ (ConnectionEvent::Frame(_)
                | ConnectionEvent::Response(_)
                | ConnectionEvent::LogEvent(_)) => self.defer_event(event),
                ConnectionEvent::Closed => {
                    return Err(CommandError::ConnectionClosed { waited_for: waited_for() });
                }
                ConnectionEvent::Interrupt => {
                    return Err(CommandError::Interrupted { waited_for: waited_for() });
                }
                ConnectionEvent::TimedOut
                    if notice_pending && limit.is_none_or(|it| notice_at < it) =>
                {
                    notice_pending = false;
                    self.print_note(&format!("waiting for {}…", wait.waited_for));
                }
                ConnectionEvent::TimedOut => return Err(self.timeout_error(wait)),
                ConnectionEvent::StdinLine(_) | ConnectionEvent::StdinClosed => {
                    unreachable!("stdin was not asked for")
                }
            }
        }
    }

    fn timeout_error(&self, wait: ResponseWait<'_>) -> CommandError {
        let waited_for = wait.waited_for.to_owned();
        match wait.limit {
            WaitLimit::Hub | WaitLimit::Caller(None) => {
                // A daemon that has answered something does not hang: it only has no answer to this request.
                let pid = (!self.has_received()).then(|| self.peer_pid()).flatten();
                CommandError::NoReply { waited_for, seconds: HUB_SECONDS_MAX, pid }
            }
            WaitLimit::SessionHost => {
                CommandError::NoReply { waited_for, seconds: SESSION_HOST_SECONDS_MAX, pid: None }
            }
            WaitLimit::Caller(Some(TimeLimit { seconds, .. })) => {
                CommandError::TimedOut { seconds, waited_for }
            }
            WaitLimit::AgentStart(TimeLimit { seconds, .. }) => {
                CommandError::AgentStartTimedOut { seconds, waited_for }
            }
        }
    }
}
