//! One reader of one run.

use super::{
    Run,
    events::{RunEvent, RunEvents},
};
use crate::rest::{
    error::{ApiError, Code},
    hub::{Entry, Log, Trouble},
    sse::{Left, Writer},
    stream,
};

/// Tells a run's events behind the number `after`, from its first fact to its end. Who has read them
/// all already hears the last one again, so that nobody waits for an end that was missed.
pub(crate) async fn follow(
    run: &Run,
    mut log: Log,
    after: u64,
    writer: &mut Writer,
) -> Result<(), Left> {
    let mut events = RunEvents::new(run.id.clone());
    let (mut number, mut last) = (0, None);
    while !events.is_over() {
        match stream::next(&mut log, writer).await? {
            Ok(Entry::Fact(fact)) => {
                for event in events.fold(&fact) {
                    number += 1;
                    if after < number {
                        event.tell(number, writer);
                    }
                    last = Some(event);
                }
            }
            Ok(Entry::Live) => {}
            Err(trouble) => return cut(&trouble, number, writer).await,
        }
    }
    if let Some(last) = last.filter(|_| number <= after) {
        last.tell(number, writer);
    }
    writer.flush().await
}

/// The session was deleted, and the run with it; or the hub is gone, and whoever comes again hears
/// the rest.
async fn cut(trouble: &Trouble, number: u64, writer: &mut Writer) -> Result<(), Left> {
    if trouble.name() == Some("session_not_found") {
        let error = ApiError::new(Code::NotFound, "the session was deleted, and the run with it");
        tell_failure(&error, number, writer);
    }
    writer.flush().await
}

/// An `error` and the `end` that always follows, behind the number of the last event.
pub(crate) fn tell_failure(error: &ApiError, number: u64, writer: &mut Writer) {
    for (number, event) in (number + 1..).zip(RunEvent::failure(error)) {
        event.tell(number, writer);
    }
}
