//! Runs the prompts of open sessions, and the commands that users type instead of a prompt.

use super::{SessionRegistry, to_acp_error};
use crate::{
    AgentProfile,
    commands::{SlashCommand, help_text},
    model::{ModelError, ModelTokenUsage},
    mutex::lock,
    session::{ChatSession, to_acp_cost},
    turn::{ChatTurn, DisplayCapabilities, TurnError, to_acp_usage},
};
use agent_client_protocol::{
    Error, ErrorCode,
    v1::schema::{ContentBlock, ContentChunk, Meta, PromptResponse, SessionUpdate, StopReason},
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

impl SessionRegistry {
    /// Runs one prompt in a turn that was started with [`ChatSession::begin_turn`].
    pub(crate) async fn run_prompt(
        &self,
        session: &ChatSession,
        content: Vec<ContentBlock>,
        canceled: CancellationToken,
    ) -> Result<PromptResponse, Error> {
        let mut tokens = ModelTokenUsage::default();
        let handling = self.handle_prompt(session, content, &mut tokens);
        let stop_reason = canceled.run_until_cancelled(handling).await;
        session.end_turn();
        let stop_reason =
            stop_reason.unwrap_or(Ok(StopReason::Cancelled)).map_err(to_prompt_error)?;
        let cost = tokens.cost_nanos.map(|it| json!({ "cost": to_acp_cost(it) }));
        let meta = cost.map(|it| Meta::from_iter([("jackfield".to_owned(), it)]));
        Ok(PromptResponse::new(stop_reason).usage(to_acp_usage(tokens)).meta(meta))
    }

    async fn handle_prompt(
        &self,
        session: &ChatSession,
        content: Vec<ContentBlock>,
        tokens: &mut ModelTokenUsage,
    ) -> Result<StopReason, TurnError> {
        let mut history = session.history.lock().await;
        let options = session.options();
        let mut turn = ChatTurn {
            session,
            history: &mut history,
            model: &self.model,
            settings: &self.config.settings,
            model_info: self.listed_models().iter().find(|it| it.id == options.model).cloned(),
            options,
            display: self.display_capabilities(),
            tokens,
        };
        let is_bridge = self.profile() == AgentProfile::ChatBridge;
        match SlashCommand::parse(&content) {
            Some(command) if !is_bridge => self.run_command(command, &mut turn).await,
            _ => turn.run(content).await,
        }
    }

    fn display_capabilities(&self) -> DisplayCapabilities {
        let session = lock(&self.client_capabilities).session.clone().unwrap_or_default();
        DisplayCapabilities {
            shows_notices: session.notices.is_some(),
            shows_compaction: session.compaction.is_some(),
        }
    }

    async fn run_command(
        &self,
        command: SlashCommand<'_>,
        turn: &mut ChatTurn<'_>,
    ) -> Result<StopReason, TurnError> {
        let session = turn.session;
        let reply = match command {
            SlashCommand::Help => help_text(),
            SlashCommand::Compact if turn.history.is_empty() => {
                "The conversation is empty.".to_owned()
            }
            SlashCommand::Compact => match turn.compact_history().await? {
                Ok(()) => "The conversation was summarized.".to_owned(),
                Err(error) => return turn.end_with_error(error),
            },
            SlashCommand::Model(None) => format!("The model is `{}`.", turn.options.model),
            SlashCommand::Model(Some(model)) => {
                let record = session.update_record(|it| model.clone_into(&mut it.options.model))?;
                self.send_options_update(session, &record.options);
                format!("The model is `{model}` from now on.")
            }
        };
        let chunk = ContentChunk::new(reply.as_str().into());
        session.send_update(SessionUpdate::AgentMessageChunk(chunk));
        Ok(StopReason::EndTurn)
    }
}

fn to_prompt_error(error: TurnError) -> Error {
    match error {
        TurnError::Store(error) => to_acp_error(error),
        TurnError::Model(error) => to_failure(&error),
    }
}

/// The first line of the message is ours, and the server's own message follows.
fn to_failure(error: &ModelError) -> Error {
    let code = match error.status() {
        Some(401 | 403) => ErrorCode::AUTH_REQUIRED,
        _ => ErrorCode::INTERNAL_ERROR,
    };
    let text = error.to_string();
    let (message, details) = match text.split_once('\n') {
        Some((message, details)) => (message, Some(details)),
        None => (text.as_str(), None),
    };
    let members = [
        ("details", json!(details)),
        ("hint", json!(error.hint())),
        ("status", json!(error.status())),
    ];
    let members = members.into_iter().filter(|(_, value)| !value.is_null());
    let data = members.map(|(name, value)| (name.to_owned(), value)).collect();
    Error::new(code, message).data(serde_json::Value::Object(data))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_error_has_the_servers_message_and_a_hint_apart() {
        let server_message = Some("no such key".to_owned());
        let error = ModelError::Status { status: 401, url: "http://h".to_owned(), server_message };
        let expected = json!({
            "code": -32000,
            "message": "Authentication error (HTTP 401) calling http://h. Check your OPENAI_API_KEY.",
            "data": {
                "details": "no such key",
                "hint": "set OPENAI_API_KEY to a key that the server accepts",
                "status": 401,
            },
        });
        assert_eq!(serde_json::to_value(to_failure(&error)).unwrap(), expected);
        let error = to_failure(&ModelError::Unusable("The model answered nothing.".to_owned()));
        assert_eq!((i32::from(error.code), error.data), (-32603, Some(json!({}))));
    }
}
