//! Builds and sends the model requests of a turn.

use super::ChatTurn;
use crate::{
    history::{HistoryEntry, MessageOptions, build_messages, client_call_id, message_id},
    model::{ModelError, ModelRequest, ModelResponse, ResponseDelta},
    options::AgentMode,
    system_prompt::build_system_prompt,
    tool::{ToolAccess, tool_specs},
};
use agent_client_protocol::v1::schema::{ContentChunk, SessionUpdate, ToolCall};
use std::collections::BTreeSet;

impl ChatTurn<'_> {
    /// Sends one request. Streams the response to the client, and returns it with the ids of the
    /// calls that were announced to the client.
    pub(super) async fn send_model_request(
        &self,
    ) -> Result<(ModelResponse, BTreeSet<String>), ModelError> {
        let had_tools = self.has_tools();
        let session = self.session;
        let message_id = message_id(self.history.len());
        let mut announced = BTreeSet::new();
        let request = self.build_request(self.history);
        let response = self.model.send_request(&request, |delta| {
            let to_chunk =
                |text: &str| ContentChunk::new(text.into()).message_id(message_id.clone());
            match delta {
                ResponseDelta::Text(text) => {
                    session.send_update(SessionUpdate::AgentMessageChunk(to_chunk(text)));
                }
                ResponseDelta::Thought(text) => {
                    session.send_update(SessionUpdate::AgentThoughtChunk(to_chunk(text)));
                }
                ResponseDelta::ToolCall { id, name, .. } => {
                    if !name.is_empty() && announced.insert(id.to_owned()) {
                        let id = client_call_id(self.history.len(), id);
                        let call = ToolCall::new(id, name.to_owned()).name(name.to_owned());
                        session.send_update(SessionUpdate::ToolCall(call));
                    }
                }
            }
        });
        let response = response.await?;
        if had_tools && !self.has_tools() {
            let model = &self.options.model;
            self.send_notice(&format!(
                "The server does not accept tools for `{model}`: it can only answer with text."
            ));
        }
        Ok((response, announced))
    }

    pub(super) fn build_request(&self, history: &[HistoryEntry]) -> ModelRequest {
        let context = &self.session.context;
        let mode = self.has_tools().then_some(self.options.mode);
        let system_prompt = build_system_prompt(self.settings, &context.dirs, mode);
        let options =
            MessageOptions { system_prompt: &system_prompt, accepts_images: self.accepts_images() };
        let mut tools = Vec::new();
        if let Some(mode) = mode {
            let access = match mode {
                AgentMode::ReadOnly => ToolAccess::ReadOnly,
                AgentMode::Ask | AgentMode::Edit => ToolAccess::Full,
            };
            tools = tool_specs(context, access);
            tools.extend(self.session.mcp_servers.tool_specs());
        }
        ModelRequest {
            model: self.options.model.clone(),
            messages: build_messages(history, options),
            tools,
            effort: self.options.effort.clone(),
        }
    }

    /// Whether the model is offered tools. The user or the server may rule them out.
    pub(super) fn has_tools(&self) -> bool {
        self.settings.tools && !self.model.rejects_tools(&self.options.model)
    }

    /// Uses what the server reports, or else the names of models that are known to accept images.
    fn accepts_images(&self) -> bool {
        const KNOWN_NAMES: [&str; 14] = [
            "gpt-4o",
            "gpt-4.1",
            "gpt-5",
            "chatgpt-4o",
            "o3",
            "o4-",
            "claude",
            "gemini",
            "gemma3",
            "gemma-3",
            "llava",
            "pixtral",
            "vision",
            "-vl",
        ];
        let name = self.options.model.to_ascii_lowercase();
        let reported = self.model_info.as_ref().and_then(|it| it.accepts_images);
        reported.unwrap_or_else(|| KNOWN_NAMES.iter().any(|it| name.contains(it)))
    }
}
