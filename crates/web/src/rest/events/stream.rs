//! Streams the changes of the lists, and the logs of followed sessions.

use super::{
    followed_log::{FollowedLog, LogChunk},
    list_state::ChangeId,
    list_watch::ListSubscription,
};
use crate::rest::{
    RestState,
    error::{ApiError, ErrorBody},
    extract::{LastEventId, QueryParams},
    streaming::{self, ChunkWriter, KEEP_ALIVE_INTERVAL, ReaderDisconnected, ServerEvent},
};
use axum::{extract::State, response::Response};
use serde_json::json;
use std::{collections::BTreeMap, sync::Arc};
use tokio::sync::mpsc;

/// The number of sessions that one stream may follow: more than a screen shows.
const FOLLOWED_MAX: usize = 32;
/// Chunks of followed logs that wait until the client has read.
const CHUNKS_MAX: usize = 4;

/// A session that the client follows, and the last event that it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FollowedSession {
    pub(super) session_id: String,
    pub(super) after: u64,
}

/// Where a stream starts.
#[derive(Debug, PartialEq, Eq)]
enum StreamStart {
    /// With all rows.
    Snapshot,
    /// With the next change.
    Now,
    After(ChangeId),
}

#[derive(Debug, PartialEq, Eq)]
struct EventsQuery {
    start: StreamStart,
    followed: Vec<FollowedSession>,
}

impl EventsQuery {
    /// `follow` may be there several times, which other queries of the API do not allow.
    fn parse(query: &[(String, String)], last: Option<&str>) -> Result<EventsQuery, ApiError> {
        let (mut after, mut followed) = (None, Vec::new());
        for (name, value) in query {
            match &**name {
                "after" => after = Some(&**value),
                "follow" => followed.push(parse_followed(value)?),
                _ => return Err(ApiError::invalid(format!("`{name}` is not a parameter"))),
            }
        }
        if FOLLOWED_MAX < followed.len() {
            let why = format!("a stream follows at most {FOLLOWED_MAX} sessions");
            return Err(ApiError::invalid(why));
        }
        let start = match last.or(after) {
            None | Some("") => StreamStart::Snapshot,
            Some("now") => StreamStart::Now,
            Some(id) => ChangeId::parse(id).map_or(StreamStart::Snapshot, StreamStart::After),
        };
        Ok(EventsQuery { start, followed })
    }
}

/// `s-7f3abcdefghi:120`: a session, and the last event that the client has.
fn parse_followed(text: &str) -> Result<FollowedSession, ApiError> {
    let parsed = text.rsplit_once(':').and_then(|(id, after)| Some((id, after.parse().ok()?)));
    let Some((session_id, after)) = parsed.filter(|(id, _)| !id.is_empty()) else {
        let why = format!("`follow={text}` is not a session id, a colon and a sequence number");
        return Err(ApiError::invalid(why));
    };
    Ok(FollowedSession { session_id: session_id.to_owned(), after })
}

/// Stream the changes of all sessions and requests, and the events of followed sessions
///
/// One stream is enough for a client that shows lists and sessions. It starts with all rows: `reset`, the rows, `ready`.
/// A client that reconnects with the last id gets the changes since then, or all rows again if they are not known any
/// more. Followed sessions have no ids: their positions are in the query.
#[utoipa::path(
    get, path = "/api/events", tag = "sessions",
    params(
        ("after" = Option<String>, Query, description = "the last received id, or `now` to start without the rows"),
        ("follow" = Option<Vec<String>>, Query, description = "`ID:SEQ`: also send the events of this session after this one; up to 32 times"),
        ("Last-Event-ID" = Option<String>, Header, description = "takes precedence over `after`"),
    ),
    responses(
        (status = 200, description = "an endless stream of events; each is a `ListEvent`", body = ServerEvent, content_type = "text/event-stream"),
        (status = 400, description = "the query is invalid", body = ErrorBody),
        (status = 503, description = "the hub does not reply", body = ErrorBody),
    ),
)]
pub(crate) async fn list_events(
    State(state): State<Arc<RestState>>,
    QueryParams(query): QueryParams<Vec<(String, String)>>,
    last: LastEventId,
) -> Result<Response, ApiError> {
    let query = EventsQuery::parse(&query, last.0.as_deref())?;
    let subscription = state.lists.subscribe(&state).await?;
    let (chunks, received) = mpsc::channel(CHUNKS_MAX);
    let followed = query.followed.into_iter().map(|it| {
        let session = it.session_id.clone();
        (session, FollowedLog::start(state.clone(), it, chunks.clone()))
    });
    let (writer, body) = streaming::chunk_channel();
    let stream = EventStream { subscription, followed: followed.collect(), writer };
    tokio::spawn(stream.run(query.start, received, chunks));
    Ok(body.into_event_response())
}

struct EventStream {
    subscription: ListSubscription,
    followed: BTreeMap<String, FollowedLog>,
    writer: ChunkWriter,
}

impl EventStream {
    /// Runs until the client disconnects, or until the hub is gone. `_chunks` keeps the channel open.
    async fn run(
        mut self,
        start: StreamStart,
        mut received: mpsc::Receiver<LogChunk>,
        _chunks: mpsc::Sender<LogChunk>,
    ) -> Result<(), ReaderDisconnected> {
        let mut position = self.start_lists(start).await?;
        loop {
            self.writer.flush().await?;
            tokio::select! {
                () = self.subscription.wait_changed() => {
                    position = self.write_changes(position).await?;
                }
                chunk = received.recv() => match chunk {
                    Some(LogChunk::Events(text)) => self.writer.write_encoded(&text),
                    Some(LogChunk::Gone(session)) => self.write_gone(&session),
                    Some(LogChunk::Lost) | None => return Ok(()),
                },
                () = tokio::time::sleep(KEEP_ALIVE_INTERVAL) => self.writer.keep_alive().await?,
                disconnected = self.writer.wait_disconnected() => return Err(disconnected),
            }
        }
    }

    async fn start_lists(&mut self, start: StreamStart) -> Result<ChangeId, ReaderDisconnected> {
        match start {
            StreamStart::Snapshot => self.write_snapshot().await,
            StreamStart::Now => {
                let id = self.subscription.last_id();
                self.write_ready(&id);
                Ok(id)
            }
            StreamStart::After(id) => {
                let is_known = self.subscription.changes_after(&id).is_some();
                let position = self.write_changes(id).await?;
                if is_known {
                    self.write_ready(&position);
                }
                Ok(position)
            }
        }
    }

    /// Writes the changes after an id, or all rows if they are not known any more.
    async fn write_changes(&mut self, after: ChangeId) -> Result<ChangeId, ReaderDisconnected> {
        let Some(changes) = self.subscription.changes_after(&after) else {
            return self.write_snapshot().await;
        };
        let mut position = after;
        for (id, change) in changes {
            self.writer.write_json_event(Some(&id.to_string()), change.name, &change.data);
            if let Some(session) = &change.removed {
                self.write_gone(session);
            }
            self.flush_if_full().await?;
            position = id;
        }
        Ok(position)
    }

    /// Writes all rows. They have no ids: a client that loses the connection before `ready` has to get all of them.
    async fn write_snapshot(&mut self) -> Result<ChangeId, ReaderDisconnected> {
        let (id, rows) = self.subscription.snapshot();
        self.writer.write_json_event(None, "reset", "{}");
        for row in rows {
            self.writer.write_json_event(None, row.name, &row.data);
            self.flush_if_full().await?;
        }
        self.write_ready(&id);
        Ok(id)
    }

    fn write_ready(&mut self, id: &ChangeId) {
        self.writer.write_json_event(Some(&id.to_string()), "ready", "{}");
    }

    /// A followed session does not exist any more.
    fn write_gone(&mut self, session: &str) {
        if self.followed.remove(session).is_some() {
            let data = json!({ "sessionId": session }).to_string();
            self.writer.write_json_event(None, "gone", &data);
        }
    }

    async fn flush_if_full(&mut self) -> Result<(), ReaderDisconnected> {
        if self.writer.is_full() { self.writer.flush().await } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(query: &str, last: Option<&str>) -> Result<EventsQuery, ApiError> {
        let pairs = query.split('&').filter_map(|it| it.split_once('='));
        let pairs: Vec<_> = pairs.map(|(name, it)| (name.to_owned(), it.to_owned())).collect();
        EventsQuery::parse(&pairs, last)
    }

    #[test]
    fn query_has_a_position_and_sessions_with_positions() {
        let query = parse("follow=s-1:4&follow=acme.s-2:0&after=now", None).unwrap();
        let session = |id: &str, after| FollowedSession { session_id: id.to_owned(), after };
        assert_eq!(query.followed, [session("s-1", 4), session("acme.s-2", 0)]);
        assert_eq!(query.start, StreamStart::Now);
        let start = |after: &str, last| parse(after, last).unwrap().start;
        let after = |text: &str| StreamStart::After(ChangeId::parse(text).unwrap());
        assert_eq!(start("", None), StreamStart::Snapshot);
        assert_eq!(start("after=w.7", None), after("w.7"));
        assert_eq!(start("after=w.7", Some("w.9")), after("w.9"));
        assert_eq!(start("after=nonsense", None), StreamStart::Snapshot);
    }

    #[test]
    fn invalid_query_is_refused() {
        let many = "&follow=s-1:0".repeat(FOLLOWED_MAX + 1);
        for query in ["follow=s-1", "follow=:1", "follow=s-1:x", "nonsense=1", &many] {
            assert!(parse(query, None).is_err(), "{query}");
        }
    }
}
