//! The request bodies that start a run.

use crate::rest::runs::ApprovalMode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A new run: of an agent in a directory, or in an existing session.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(example = json!({
    "agentId": "codex", "message": "What does this project do?", "projectId": "p1",
}))]
pub(crate) struct RunBody {
    /// The message to the agent.
    #[serde(default)]
    #[schema(required)]
    pub(crate) message: String,
    /// One of `/api/agents`; required to open a session.
    pub(crate) agent_id: Option<String>,
    /// Continue this session instead of opening one.
    pub(crate) session_id: Option<String>,
    /// Work in the directory of this project, which is created if necessary.
    #[schema(pattern = "^[A-Za-z0-9._-]{1,128}$")]
    pub(crate) project_id: Option<String>,
    /// Work in this directory, which must be below one of the configured `roots`.
    pub(crate) cwd: Option<String>,
    /// Instructions that precede the message.
    pub(crate) system_prompt: Option<String>,
    /// Images: files in the uploads directory or below the working directory.
    pub(crate) image_paths: Option<Vec<String>>,
    /// Files below the working directory to mention to the agent.
    pub(crate) attachments: Option<Vec<String>>,
    /// One of the agent's models, or `default`.
    pub(crate) model: Option<String>,
    /// One of the agent's reasoning options, or `default`.
    pub(crate) reasoning: Option<String>,
    /// One of the agent's modes.
    pub(crate) mode: Option<String>,
    /// How permission requests are answered automatically. Without it they wait in `/api/asks`.
    pub(crate) approve: Option<ApprovalMode>,
    /// Open the session even if its agent never requests permission and the policy has deny rules.
    pub(crate) unenforced: Option<bool>,
    /// `/api/chat` only: cancel the run when the client disconnects. Otherwise the run continues.
    pub(crate) cancel_on_disconnect: Option<bool>,
}

/// A prompt for an existing session.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(example = json!({ "message": "Go on", "approve": "reads" }))]
pub(crate) struct PromptBody {
    /// The message to the agent.
    #[serde(default)]
    #[schema(required)]
    message: String,
    /// Instructions that precede the message.
    system_prompt: Option<String>,
    /// Images: files in the uploads directory or below the session's directory.
    image_paths: Option<Vec<String>>,
    /// Files below the session's directory to mention to the agent.
    attachments: Option<Vec<String>>,
    /// One of the agent's models, or `default`.
    model: Option<String>,
    /// One of the agent's reasoning options, or `default`.
    reasoning: Option<String>,
    /// One of the agent's modes.
    mode: Option<String>,
    /// How permission requests are answered automatically. Without it they wait in `/api/asks`.
    approve: Option<ApprovalMode>,
}

impl PromptBody {
    /// The same prompt as a run in this session.
    pub(crate) fn into_run_body(self, session: String) -> RunBody {
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
