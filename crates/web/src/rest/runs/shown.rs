//! A run as the API shows it.

use super::{RunSettings, TrackedRun, progress::RunStatus};
use crate::rest::error::ApiError;
use jackfield_protocol::rfc3339;
use serde::Serialize;
use utoipa::ToSchema;

/// A run.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "id": "r-7f3abcdefghi-k2m4qa", "runId": "r-7f3abcdefghi-k2m4qa", "sessionId": "s-7f3abcdefghi", "status": "succeeded",
    "agentId": "codex", "bin": "codex", "streamFormat": "acp-json-rpc", "projectId": "p1",
    "cwd": "/srv/projects/p1", "model": null, "reasoning": null, "mode": null, "turn": 1,
    "stopReason": "end_turn", "exitCode": 0, "signal": null, "createdAt": "2026-11-15T08:30:00.123Z",
    "startedAt": "2026-11-15T08:30:00.123Z", "endedAt": "2026-11-15T08:31:10.456Z",
}))]
pub(crate) struct RunShown {
    /// The same as `runId`.
    id: String,
    run_id: String,
    session_id: String,
    pub(super) status: RunStatus,
    #[serde(flatten)]
    pub(super) settings: RunSettings,
    /// The number of its turn in the session.
    turn: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_reason: Option<String>,
    /// Like the exit code of a process: 0 means success; null while it runs.
    exit_code: Option<i64>,
    signal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ApiError>,
    created_at: Option<String>,
    started_at: Option<String>,
    ended_at: Option<String>,
}

impl RunShown {
    pub(super) fn new(run: &TrackedRun) -> Option<RunShown> {
        let progress = run.progress();
        let outcome = progress.outcome();
        Some(RunShown {
            id: run.id.to_string(),
            run_id: run.id.to_string(),
            session_id: run.id.session(),
            status: progress.status()?,
            settings: progress.settings.clone(),
            turn: progress.turn,
            stop_reason: outcome.and_then(|it| it.stop_reason.clone()),
            exit_code: outcome.and_then(|it| it.code),
            signal: outcome.and_then(|it| it.signal.clone()),
            error: outcome.and_then(|it| it.error.clone()),
            created_at: progress.created_at.map(rfc3339),
            started_at: progress.started_at.map(rfc3339),
            ended_at: progress.ended_at.map(rfc3339),
        })
    }

    /// The `conversationId` of its request.
    pub(super) fn conversation_id(&self) -> Option<&str> {
        self.settings.metadata.get("conversationId")?.as_str()
    }
}
