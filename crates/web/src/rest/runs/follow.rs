//! Streams one run to one client.

use super::{
    TrackedRun,
    events::{RunEvent, RunEvents, end_events, opening_run_events, start_event},
    opening::OpeningStage,
};
use crate::rest::{
    RestState,
    error::{ApiError, ErrorCode},
    log_reader,
    streaming::{ChunkWriter, KEEP_ALIVE_INTERVAL, ReaderDisconnected},
};
use jackfield_hub_client::{EventLog, HubClientError, LogEntry};

/// Streams the events of a run after the number `after`, up to its end: first those before its prompt is in the
/// log, then those of the log. `log` is the opened log, if the prompt is known to be there.
pub(crate) async fn stream_run(
    state: &RestState,
    run: &TrackedRun,
    log: Option<EventLog>,
    after: u64,
    writer: &mut ChunkWriter,
) -> Result<(), ReaderDisconnected> {
    let (log, after) = if let Some(log) = log {
        (Ok(log), after)
    } else {
        let Some(written) = stream_opening(run, after, writer).await? else { return Ok(()) };
        let log = state.hub.open_log(&run.id.session(), run.read_after()).await;
        (log, after.max(written))
    };
    match log {
        Ok(log) => stream_log(run, log, after, writer).await,
        Err(error) => {
            write_failure(&error.into(), after, writer);
            writer.flush().await
        }
    }
}

/// Streams the events of a run until its prompt is in the log, and returns their number; `None` if it ended before.
async fn stream_opening(
    run: &TrackedRun,
    after: u64,
    writer: &mut ChunkWriter,
) -> Result<Option<u64>, ReaderDisconnected> {
    let mut stages = run.opening.subscribe();
    let mut opening = vec![start_event(&run.id, &run.progress().settings)];
    let mut number = 0;
    loop {
        let stage = stages.borrow_and_update().clone();
        match &stage {
            OpeningStage::Starting { opens_session: true } => {
                opening.splice(1.., opening_run_events(None));
            }
            OpeningStage::Opened(it) => {
                opening.splice(1.., opening_run_events(Some(it)));
            }
            OpeningStage::Ended => opening.extend(end_events(&run.id, &run.progress())),
            OpeningStage::Starting { .. } | OpeningStage::Logged => {}
        }
        if stage == OpeningStage::Logged {
            return Ok(Some(number));
        }
        for event in opening.iter().skip(usize::try_from(number).unwrap_or(usize::MAX)) {
            number += 1;
            if after < number {
                event.write_to(number, writer);
            }
        }
        if stage == OpeningStage::Ended {
            if let Some(last) = opening.last().filter(|_| number <= after) {
                last.write_to(number, writer);
            }
            writer.flush().await?;
            return Ok(None);
        }
        writer.flush().await?;
        tokio::select! {
            changed = stages.changed() => if changed.is_err() { return Ok(Some(number)) },
            disconnected = writer.wait_disconnected() => return Err(disconnected),
            () = tokio::time::sleep(KEEP_ALIVE_INTERVAL) => writer.keep_alive().await?,
        }
    }
}

/// Streams the events of a run from the log. A client that has received all of them gets the last one again, so
/// that it does not wait for an end that it missed.
async fn stream_log(
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
