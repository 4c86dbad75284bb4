//! Reads a log for one HTTP client: events wait until the client reads them, and a silent stream is kept
//! alive.

use crate::rest::streaming::{ChunkWriter, KEEP_ALIVE_INTERVAL, ReaderDisconnected};
use jackfield_hub_client::{EventLog, HubClientError, LogEntry};

/// The next entry of a log. Buffered output is sent first, unless more entries are available at once.
pub(crate) async fn next_entry(
    log: &mut EventLog,
    writer: &mut ChunkWriter,
) -> Result<Result<LogEntry, HubClientError>, ReaderDisconnected> {
    if writer.is_full() || !log.has_buffered() {
        writer.flush().await?;
    }
    loop {
        let next = tokio::select! {
            next = tokio::time::timeout(KEEP_ALIVE_INTERVAL, log.next_entry()) => next,
            disconnected = writer.wait_disconnected() => return Err(disconnected),
        };
        if let Ok(next) = next {
            return Ok(next);
        }
        writer.keep_alive().await?;
        if let Err(error) = log.check_session().await {
            return Ok(Err(error));
        }
    }
}
