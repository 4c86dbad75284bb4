//! What differs if the agent only passes text between a client and a model, as `openai-agent` does.

use agent_client_protocol::v1::schema::{
    AgentCapabilities, Implementation, InitializeResponse, PromptCapabilities, SessionUpdate,
};
use agent_client_protocol::{Error, schema::ProtocolVersion};

/// How the agent presents itself, and what it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentProfile {
    /// A coding agent with tools, options and stored sessions.
    CodingAgent,
    /// Only text: no tools, no prompts of ours, no stored sessions. A drop-in for `openai-agent`,
    /// under its name.
    ChatBridge,
}

/// The answer to `initialize` that `openai-agent` documents.
pub(crate) fn initialize_response(version: ProtocolVersion) -> InitializeResponse {
    let prompts = PromptCapabilities::new().embedded_context(true);
    InitializeResponse::new(version)
        .agent_info(Implementation::new("openai-agent", "1.0.0"))
        .agent_capabilities(AgentCapabilities::new().prompt_capabilities(prompts))
}

/// Whether clients of a bridge receive an update. They take every text for the answer, so they get
/// nothing else.
pub(crate) fn is_sent(update: &SessionUpdate) -> bool {
    matches!(update, SessionUpdate::AgentMessageChunk(_))
}

/// Why a stored session cannot be opened.
pub(crate) fn sessions_not_stored() -> Error {
    let message = "session loading is not supported: `--bridge` stores no sessions; open a new one";
    Error::method_not_found().data(message)
}
