//! Streams one run to one client.

use super::{
    TrackedRun,
    events::{RunEvent, RunEvents},
};
use crate::rest::{
    error::{ApiError, ErrorCode},
    log_reader,
    streaming::{ChunkWriter, ReaderDisconnected},
};
use jackfield_hub_client::{EventLog, HubClientError, LogEntry};

/// Streams the events of a run after the number `after`, up to its end. A client that has received all of
/// them gets the last one again, so that it does not wait for an end that it missed.
pub(crate) async fn stream_run(
    run: &TrackedRun,
    mut log: EventLog,
    after: u64,
    writer: &mut ChunkWriter,
) -> Result<(), ReaderDisconnected> {
    let mut events = RunEvents::new(run.id.clone());
    let (mut number, mut last) = (0, None);
    while !events.has_ended() {
        match log_reader::next_entry(&mut log, writer).await? {
            Ok(LogEntry::Event(line)) => {
                for event in events.fold_line(&line) {
                    number += 1;
                    if after < number {
                        event.write_to(number, writer);
                    }
                    last = Some(event);
                }
            }
            Ok(LogEntry::Live) => {}
            Err(error) => return end_stream(&error, number, writer).await,
        }
    }
    if let Some(last) = last.filter(|_| number <= after) {
        last.write_to(number, writer);
    }
    writer.flush().await
}

/// Ends a stream whose session was deleted, or whose hub is gone. In the second case a client that
/// reconnects gets the rest.
async fn end_stream(
    error: &HubClientError,
    number: u64,
    writer: &mut ChunkWriter,
) -> Result<(), ReaderDisconnected> {
    if error.error_name() == "session_not_found" {
        let error = ApiError::new(ErrorCode::NotFound, "the session of the run was deleted");
        write_failure(&error, number, writer);
    }
    writer.flush().await
}

/// Writes an `error` and the `end` that always follows, after the number of the last event.
pub(crate) fn write_failure(error: &ApiError, number: u64, writer: &mut ChunkWriter) {
    for (number, event) in (number + 1..).zip(RunEvent::failure(error)) {
        event.write_to(number, writer);
    }
}
