//! Follows the log of one session. After a lost connection it continues after the last event.

use super::{
    DaemonStart, UpdateSender,
    access::{HubAccess, LinkError},
    retry::RetryDelay,
};
use crate::hub::HubUpdate;
use jackfield_events::ReceivedEvent;
use jackfield_hub_client::{EventLog, LogEntry};
use std::time::Duration;

/// Consecutive events are reported together, up to this many.
const BATCH_EVENTS_MAX: usize = 256;

/// The time between two reports.
const REPORT_INTERVAL: Duration = Duration::from_millis(25);

/// The position of a follower in a log.
#[derive(Debug)]
struct LogPosition {
    session: String,
    /// The last event that was read.
    after: u64,
    /// Events that were read and not reported yet.
    unreported: Vec<ReceivedEvent>,
}

/// Runs until the interface ends or the session is deleted.
pub(super) async fn follow_log(hub: HubAccess, session: String, after: u64, updates: UpdateSender) {
    let mut position = LogPosition { session, after, unreported: Vec::new() };
    let mut delay = RetryDelay::default();
    loop {
        let before = position.after;
        match position.read_events(&hub, &updates).await {
            Ok(()) => return,
            Err(error) if error.is_unknown_session() => return,
            Err(_) if before < position.after => delay.reset(),
            Err(_) => {}
        }
        delay.wait().await;
    }
}

impl LogPosition {
    /// Reports events until the interface ends, or the connection does.
    async fn read_events(
        &mut self,
        hub: &HubAccess,
        updates: &UpdateSender,
    ) -> Result<(), LinkError> {
        let connection = hub.connect(DaemonStart::IfKilled).await?;
        let mut log = EventLog::open(connection, &self.session, self.after).await?;
        loop {
            let entry = match log.next_entry().await {
                Ok(entry) => entry,
                Err(error) => {
                    let is_open = self.report(updates).await;
                    return if is_open { Err(error.into()) } else { Ok(()) };
                }
            };
            if let LogEntry::Event(line) = entry {
                self.after = line.seq;
                self.unreported.extend(line.to_event());
            }
            let is_due = BATCH_EVENTS_MAX <= self.unreported.len() || !log.has_buffered();
            if is_due && !self.unreported.is_empty() {
                if !self.report(updates).await {
                    return Ok(());
                }
                // Events that arrive meanwhile are reported together: the interface draws no more often.
                tokio::time::sleep(REPORT_INTERVAL).await;
            }
        }
    }

    /// Reports the events that were read. Returns false if the interface has ended.
    async fn report(&mut self, updates: &UpdateSender) -> bool {
        if self.unreported.is_empty() {
            return true;
        }
        let (session, events) = (self.session.clone(), std::mem::take(&mut self.unreported));
        updates.send(HubUpdate::LogEvents { session, events }).await.is_ok()
    }
}
