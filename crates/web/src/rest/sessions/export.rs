//! A session as a file: the same that `jackfield sessions export` writes.

use super::row;
use crate::rest::{
    Api,
    body::{Flag, Named, Params},
    error::{ApiError, ErrorBody},
    hub::{Entry, Log},
    sse::{self, Left, Writer},
};
use axum::{
    extract::State,
    http::{HeaderValue, header},
    response::Response,
};
use jackfield_protocol::rfc3339;
use jackfield_views::{Export, archive::Header};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::{sync::Arc, time::SystemTime};
use utoipa::IntoParams;

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ExportQuery {
    /// `1`: everything, byte for byte, secrets included.
    #[param(value_type = Option<Flag>, inline)]
    raw: Flag,
}

/// A session and its whole log, one JSON object a line, without secrets unless you want them
///
/// `jackfield sessions import` reads it. The last line has a sum: an answer that was cut has none.
#[utoipa::path(
    get, path = "/api/sessions/{sessionId}/export", tag = "sessions",
    params(("sessionId" = String, Path, example = "s-7f3abcdefghi"), ExportQuery),
    responses(
        (status = 200, description = "the archive", body = String, content_type = "application/x-ndjson"),
        (status = 400, description = "a query that is none", body = ErrorBody),
        (status = 404, description = "there is no such session", body = ErrorBody),
        (status = 503, description = "the hub does not answer", body = ErrorBody),
    ),
)]
pub(crate) async fn export_session(
    State(api): State<Arc<Api>>,
    Named(id): Named<String>,
    Params(query): Params<ExportQuery>,
) -> Result<Response, ApiError> {
    let session = row::one(&api.hub, &id).await?;
    let log = api.hub.log(&id, 0).await?;
    let more = json!({
        "agent": session.agent, "cwd": session.cwd, "title": session.title,
        "openedAt": session.opened_at, "jackfieldVersion": env!("CARGO_PKG_VERSION"),
    });
    let header = Header {
        session_id: session.session_id,
        redacted: !query.raw.is_set(),
        exported_at: now(),
        more: if let Value::Object(more) = more { more } else { Map::new() },
    };
    let (writer, chunks) = sse::channel();
    tokio::spawn(write(header, log, writer));
    let mut response = chunks.lines();
    let file = format!("attachment; filename=\"{id}.ndjson\"");
    if let Ok(file) = HeaderValue::from_str(&file) {
        response.headers_mut().insert(header::CONTENT_DISPOSITION, file);
    }
    Ok(response)
}

/// A log that cannot be read to its end has no last line, by which everyone sees it.
async fn write(header: Header, mut log: Log, mut writer: Writer) -> Result<(), Left> {
    let (mut export, first) = Export::new(&header);
    writer.line(&first);
    loop {
        match log.next().await {
            Ok(Entry::Fact(fact)) => {
                export.event(&fact.text()).iter().for_each(|it| writer.line(it));
                if writer.is_full() {
                    writer.flush().await?;
                }
            }
            Ok(Entry::Live) => break,
            Err(_) => return Err(Left),
        }
    }
    export.finish().iter().for_each(|it| writer.line(it));
    writer.flush().await
}

fn now() -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    rfc3339(now.map_or(0, |it| u64::try_from(it.as_millis()).unwrap_or(u64::MAX)))
}
