//! The request bodies that start a run.

use crate::rest::runs::RequestedApproval;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// Unknown members of a body are stored with the run up to this size. Ids and flags of an app are small.
const METADATA_BYTES_MAX: usize = 16 * 1024;

/// A new run: of an agent in a directory, or in an existing session.
///
/// Other members are stored with the run as `metadata`.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
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
    /// Further directories that the agent may use: below the working directory or one of the `roots`.
    pub(crate) additional_directories: Option<Vec<String>>,
    /// Instructions that precede the message.
    pub(crate) system_prompt: Option<String>,
    /// Images: files in the uploads directory or below the working directory.
    pub(crate) image_paths: Option<Vec<String>>,
    /// Files below the working directory or in the uploads directory to mention to the agent.
    pub(crate) attachments: Option<Vec<String>>,
    /// One of the agent's models, or `default`.
    pub(crate) model: Option<String>,
    /// One of the agent's reasoning options, or `default`.
    pub(crate) reasoning: Option<String>,
    /// One of the agent's modes.
    pub(crate) mode: Option<String>,
    /// How permission requests are answered. The default is `approve` under [http] in config.toml, which is
    /// `ask` if it is not set.
    pub(crate) approve: Option<RequestedApproval>,
    /// In a session with a running turn: cancel the turn, and run before the prompts that are queued.
    pub(crate) steer: Option<bool>,
    /// MCP servers for a new session: an array in the form of ACP, in which a text is the name of a configured
    /// server, or an object with a member per server as in `.mcp.json`.
    pub(crate) mcp_servers: Option<Value>,
    /// Start the agent with this launch variant, without trying others.
    pub(crate) variant: Option<String>,
    /// Start the agent of a new session in a sandbox with this profile, one of `/api/sandbox-profiles`. The default is
    /// the profile of the project or of the configuration.
    pub(crate) sandbox: Option<String>,
    /// Open the session even if its agent never requests permission and the policy has deny rules.
    pub(crate) unenforced: Option<bool>,
    /// `/api/chat` only: cancel the run when the client disconnects. Otherwise the run continues.
    pub(crate) cancel_on_disconnect: Option<bool>,
    /// Keep the agent of a session that was opened for this run when the run ends. Otherwise the agent ends, and the
    /// next prompt restores the session. [default: false for `/api/chat`, true for `/api/runs`]
    pub(crate) keep: Option<bool>,
    /// Members without a meaning here. They do not change the run, so they are not part of its fingerprint.
    #[serde(flatten, skip_serializing)]
    #[schema(ignore)]
    pub(crate) metadata: Map<String, Value>,
    /// Why values of the request have no effect.
    #[serde(skip)]
    #[schema(ignore)]
    pub(crate) dropped: Vec<String>,
}

impl RunBody {
    /// The unknown members that are stored with the run; none if they are too large.
    pub(crate) fn stored_metadata(&self) -> Map<String, Value> {
        let mut metadata = self.metadata.clone();
        metadata.retain(|_, it| !it.is_null());
        let size = Value::Object(metadata.clone()).to_string().len();
        if size <= METADATA_BYTES_MAX { metadata } else { Map::new() }
    }

    /// What the client probably did not mean: unknown members that differ from a known one only in their spelling, and
    /// metadata that is too large.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let known = serde_json::to_value(RunBody::default()).unwrap_or_default();
        let known: Vec<&String> = known.as_object().into_iter().flat_map(Map::keys).collect();
        let plain = |it: &str| it.replace(['_', '-', ' '], "").to_ascii_lowercase();
        let misspelled = self.metadata.keys().filter_map(|name| {
            let meant = known.iter().find(|it| plain(it) == plain(name))?;
            Some(format!("`{name}` has no effect: the member is called `{meant}`"))
        });
        let mut warnings: Vec<String> = misspelled.collect();
        if !self.metadata.is_empty() && self.stored_metadata().is_empty() {
            let has_value = self.metadata.values().any(|it| !it.is_null());
            let why =
                format!("unknown members exceed {METADATA_BYTES_MAX} bytes and are not stored");
            warnings.extend(has_value.then_some(why));
        }
        warnings.extend(self.dropped.iter().cloned());
        warnings
    }
}

/// A new session without a prompt.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(example = json!({ "agentId": "codex", "cwd": "/srv/checkouts/parser", "name": "parser" }))]
pub(crate) struct NewSessionBody {
    /// One of `/api/agents`.
    agent_id: String,
    /// Work in the directory of this project, which is created if necessary.
    #[schema(pattern = "^[A-Za-z0-9._-]{1,128}$")]
    project_id: Option<String>,
    /// Work in this directory, which must be below one of the configured `roots`, or the directory of a session.
    pub(super) cwd: Option<String>,
    /// Further directories that the agent may use: below the working directory or one of the `roots`.
    additional_directories: Option<Vec<String>>,
    /// MCP servers: an array in the form of ACP, in which a text is the name of a configured server, or an object
    /// with a member per server as in `.mcp.json`.
    mcp_servers: Option<Value>,
    /// One of the agent's models, or `default`.
    model: Option<String>,
    /// One of the agent's reasoning options, or `default`.
    reasoning: Option<String>,
    /// One of the agent's modes.
    mode: Option<String>,
    /// Start the agent in a sandbox with this profile, one of `/api/sandbox-profiles`. The default is the profile of
    /// the project or of the configuration.
    sandbox: Option<String>,
    /// The name of the session.
    #[schema(max_length = 64)]
    pub(crate) name: Option<String>,
}

impl NewSessionBody {
    /// The same session as that of a run.
    pub(super) fn into_run_body(self) -> RunBody {
        RunBody {
            agent_id: Some(self.agent_id),
            project_id: self.project_id,
            cwd: self.cwd,
            additional_directories: self.additional_directories,
            mcp_servers: self.mcp_servers,
            model: self.model,
            reasoning: self.reasoning,
            mode: self.mode,
            sandbox: self.sandbox,
            ..RunBody::default()
        }
    }
}

/// A prompt for an existing session.
///
/// Other members are stored with the run as `metadata`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
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
    /// Files below the session's directory or in the uploads directory to mention to the agent.
    attachments: Option<Vec<String>>,
    /// One of the agent's models, or `default`.
    model: Option<String>,
    /// One of the agent's reasoning options, or `default`.
    reasoning: Option<String>,
    /// One of the agent's modes.
    mode: Option<String>,
    /// How permission requests are answered. The default is `approve` under [http] in config.toml, which is
    /// `ask` if it is not set.
    approve: Option<RequestedApproval>,
    /// Cancel the running turn, and run before the prompts that are queued.
    steer: Option<bool>,
    #[serde(flatten)]
    #[schema(ignore)]
    metadata: Map<String, Value>,
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
            steer: self.steer,
            metadata: self.metadata,
            ..RunBody::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parse(body: Value) -> RunBody {
        serde_json::from_value(body).unwrap()
    }

    #[test]
    fn unknown_members_are_metadata_and_misspelled_ones_have_a_warning() {
        let body = parse(json!({
            "message": "hi", "conversationId": "c1", "assistantMessageId": null, "system_prompt": "x",
        }));
        let stored = body.stored_metadata();
        assert_eq!(Value::Object(stored), json!({ "conversationId": "c1", "system_prompt": "x" }));
        let warnings = body.warnings();
        assert_eq!(
            warnings,
            ["`system_prompt` has no effect: the member is called `systemPrompt`"]
        );
        assert!(body.system_prompt.is_none());
    }

    #[test]
    fn large_metadata_is_left_out_with_a_warning() {
        let body = parse(json!({ "message": "hi", "notes": "x".repeat(METADATA_BYTES_MAX) }));
        assert!(body.stored_metadata().is_empty());
        assert!(body.warnings()[0].contains("are not stored"), "{:?}", body.warnings());
    }
}
