//! Runs the prompts of open sessions, and the commands that users type instead of a prompt.

use super::{SessionRegistry, to_acp_error};
use crate::{
    AgentProfile,
    commands::{SlashCommand, help_text},
    model::ModelTokenUsage,
    mutex::lock,
    session::ChatSession,
    store::StoreError,
    turn::{ChatTurn, DisplayCapabilities, to_acp_usage},
};
use agent_client_protocol::{
    Error,
    v1::schema::{ContentBlock, ContentChunk, PromptResponse, SessionUpdate, StopReason},
};
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
        let stop_reason = stop_reason.unwrap_or(Ok(StopReason::Cancelled)).map_err(to_acp_error)?;
        Ok(PromptResponse::new(stop_reason).usage(to_acp_usage(tokens)))
    }

    async fn handle_prompt(
        &self,
        session: &ChatSession,
        content: Vec<ContentBlock>,
        tokens: &mut ModelTokenUsage,
    ) -> Result<StopReason, StoreError> {
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
    ) -> Result<StopReason, StoreError> {
        let session = turn.session;
        let reply = match command {
            SlashCommand::Help => help_text(),
            SlashCommand::Compact if turn.history.is_empty() => {
                "The conversation is empty.".to_owned()
            }
            SlashCommand::Compact => match turn.compact_history().await? {
                Ok(()) => "The conversation was summarized.".to_owned(),
                Err(error) => error.to_string(),
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
