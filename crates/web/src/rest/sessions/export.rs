//! Exports a session in the same format as `jackfield sessions export`.

use super::session::find_session;
use crate::rest::{
    RestState,
    error::{ApiError, ErrorBody},
    extract::{PathParams, QueryFlag, QueryParams},
    streaming::{self, ChunkWriter, ReaderDisconnected},
};
use axum::{
    extract::State,
    http::{HeaderValue, header},
    response::Response,
};
use jackfield_hub_client::{EventLog, LogEntry};
use jackfield_protocol::rfc3339;
use jackfield_views::{ExportHeader, SessionExport};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::{sync::Arc, time::SystemTime};
use utoipa::IntoParams;

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ExportQuery {
    /// `1`: export everything unchanged, including secrets.
    #[param(value_type = Option<QueryFlag>, inline)]
    raw: QueryFlag,
}

/// Export a session with its log, one JSON object per line, without secrets by default
///
/// `jackfield sessions import` reads the export. The last line has a checksum; a truncated response has none.
#[utoipa::path(
    get, path = "/api/sessions/{sessionId}/export", tag = "sessions",
    params(("sessionId" = String, Path, example = "s-7f3abcdefghi"), ExportQuery),
    responses(
        (status = 200, description = "the export", body = String, content_type = "application/x-ndjson"),
        (status = 400, description = "the query is invalid", body = ErrorBody),
        (status = 404, description = "the session does not exist", body = ErrorBody),
        (status = 503, description = "the hub does not reply", body = ErrorBody),
    ),
)]
pub(crate) async fn export_session(
    State(state): State<Arc<RestState>>,
    PathParams(id): PathParams<String>,
    QueryParams(query): QueryParams<ExportQuery>,
) -> Result<Response, ApiError> {
    let session = find_session(&state.hub, &id).await?;
    let log = state.hub.open_log(&id, 0).await?;
    let more = json!({
        "agent": session.agent, "cwd": session.cwd, "title": session.title,
        "openedAt": session.opened_at, "jackfieldVersion": env!("CARGO_PKG_VERSION"),
    });
    let header = ExportHeader {
        session_id: session.session_id,
        redacted: !query.raw.is_set(),
        exported_at: now(),
        more: if let Value::Object(more) = more { more } else { Map::new() },
    };
    let (writer, chunks) = streaming::chunk_channel();
    tokio::spawn(write_export(header, log, writer));
    let mut response = chunks.into_ndjson_response();
    let file = format!("attachment; filename=\"{id}.ndjson\"");
    if let Ok(file) = HeaderValue::from_str(&file) {
        response.headers_mut().insert(header::CONTENT_DISPOSITION, file);
    }
    Ok(response)
}

/// Writes the export. If the log cannot be read to its end, the footer is missing, which marks the export as
/// truncated.
async fn write_export(
    header: ExportHeader,
    mut log: EventLog,
    mut writer: ChunkWriter,
) -> Result<(), ReaderDisconnected> {
    let (mut export, first) = SessionExport::start(&header);
    writer.write_line(&first);
    loop {
        match log.next_entry().await {
            Ok(LogEntry::Event(event)) => {
                export
                    .add_event(&event.to_journal_text())
                    .iter()
                    .for_each(|it| writer.write_line(it));
                if writer.is_full() {
                    writer.flush().await?;
                }
            }
            Ok(LogEntry::Live) => break,
            Err(_) => return Err(ReaderDisconnected),
        }
    }
    export.finish().iter().for_each(|it| writer.write_line(it));
    writer.flush().await
}

fn now() -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    rfc3339(now.map_or(0, |it| u64::try_from(it.as_millis()).unwrap_or(u64::MAX)))
}
