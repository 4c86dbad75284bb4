//! One reader of one log: what is told waits for the reader, and a silence is told as well.

use crate::rest::{
    hub::{Entry, Log, Trouble},
    sse::{KEEP_ALIVE, Left, Writer},
};

/// The next entry of a log. What is held for the reader is sent first, unless more is at hand.
pub(crate) async fn next(
    log: &mut Log,
    writer: &mut Writer,
) -> Result<Result<Entry, Trouble>, Left> {
    if writer.is_full() || !log.has_more() {
        writer.flush().await?;
    }
    loop {
        let next = tokio::select! {
            next = tokio::time::timeout(KEEP_ALIVE, log.next()) => next,
            left = writer.left() => return Err(left),
        };
        if let Ok(next) = next {
            return Ok(next);
        }
        writer.keep_alive().await?;
        if let Err(trouble) = log.look().await {
            return Ok(Err(trouble));
        }
    }
}
