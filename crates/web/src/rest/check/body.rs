//! The bodies that make a run.

use crate::rest::runs::Approve;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A run to be made: of an agent in a directory, or in a session that goes on.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(example = json!({
    "agentId": "codex", "message": "What does this project do?", "projectId": "p1",
}))]
pub(crate) struct RunBody {
    /// What the agent is asked to do.
    #[serde(default)]
    #[schema(required)]
    pub(crate) message: String,
    /// One of `/api/agents`; needed to open a session.
    pub(crate) agent_id: Option<String>,
    /// Go on with this session instead of opening one.
    pub(crate) session_id: Option<String>,
    /// The agent works in the directory of this project, which is made if it is not there.
    #[schema(pattern = "^[A-Za-z0-9._-]{1,128}$")]
    pub(crate) project_id: Option<String>,
    /// The agent works here; it must be below one of the configured `roots`.
    pub(crate) cwd: Option<String>,
    /// What it shall follow; it stands before the message.
    pub(crate) system_prompt: Option<String>,
    /// Pictures: files in the uploads directory or below the working directory.
    pub(crate) image_paths: Option<Vec<String>>,
    /// Files below the working directory that the agent is told of.
    pub(crate) attachments: Option<Vec<String>>,
    /// One of the agent's models, or `default`.
    pub(crate) model: Option<String>,
    /// One of the agent's reasoning options, or `default`.
    pub(crate) reasoning: Option<String>,
    /// One of the agent's modes.
    pub(crate) mode: Option<String>,
    /// How the agent's asks are answered when nobody else does; without it they wait in
    /// `/api/asks`.
    pub(crate) approve: Option<Approve>,
    /// Open the session although its agent never asks and there are rules that deny something.
    pub(crate) unenforced: Option<bool>,
    /// `/api/chat` only: end the run when the reader leaves. Without it the run goes on.
    pub(crate) cancel_on_disconnect: Option<bool>,
}

/// A prompt for a session.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(example = json!({ "message": "Go on", "approve": "reads" }))]
pub(crate) struct PromptBody {
    /// What the agent is asked to do.
    #[serde(default)]
    #[schema(required)]
    message: String,
    /// What it shall follow; it stands before the message.
    system_prompt: Option<String>,
    /// Pictures: files in the uploads directory or below the session's directory.
    image_paths: Option<Vec<String>>,
    /// Files below the session's directory that the agent is told of.
    attachments: Option<Vec<String>>,
    /// One of the agent's models, or `default`.
    model: Option<String>,
    /// One of the agent's reasoning options, or `default`.
    reasoning: Option<String>,
    /// One of the agent's modes.
    mode: Option<String>,
    /// How the agent's asks are answered when nobody else does; without it they wait in
    /// `/api/asks`.
    approve: Option<Approve>,
}

impl PromptBody {
    /// The run that this prompt is in a session.
    pub(crate) fn of_session(self, session: String) -> RunBody {
        RunBody {
            session_id: Some(session),
            message: self.message,
            system_prompt: self.system_prompt,
            image_paths: self.image_paths,
            attachments: self.attachments,
            model: self.model,
            reasoning: self.reasoning,
            mode: self.mode,
            approve: self.approve,
            ..RunBody::default()
        }
    }
}
