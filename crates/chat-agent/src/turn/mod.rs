//! Runs one prompt: sends a request to the model, runs the tool calls of its response, adds the
//! results, and repeats this until the model makes no more calls.
//!
//! A turn is canceled by dropping it. There is no await point between storing entries and adding
//! them to the history in memory, so a canceled turn always leaves a history that can be continued.

mod compaction;
mod model_request;
mod repeat_detector;
mod tool_calls;

use crate::{
    AgentProfile,
    history::HistoryEntry,
    model::{
        FinishReason, ModelClient, ModelError, ModelInfo, ModelResponse, ModelTokenUsage,
        ModelToolCall,
    },
    options::SessionOptions,
    session::{ChatSession, derive_title},
    settings::ChatSettings,
    store::StoreError,
};
use agent_client_protocol::v1::schema::{
    ContentBlock, ContentChunk, Notice, NoticeSeverity, SessionInfoUpdate, SessionUpdate,
    StopReason, Usage, UsageUpdate,
};
use repeat_detector::{RepeatAction, RepeatDetector};
use std::collections::BTreeSet;

/// A turn with more requests than this makes no progress.
const MODEL_REQUESTS_MAX: usize = 200;
/// In a smaller context window, the system prompt and two files leave no space.
const WINDOW_MIN: u64 = 8192;
/// How many responses of one turn may be empty, or have a call as text that cannot be parsed.
const INVALID_RESPONSES_MAX: usize = 2;

pub(crate) struct ChatTurn<'a> {
    pub(crate) session: &'a ChatSession,
    pub(crate) history: &'a mut Vec<HistoryEntry>,
    pub(crate) model: &'a ModelClient,
    pub(crate) settings: &'a ChatSettings,
    pub(crate) options: SessionOptions,
    /// What the server reports about the selected model.
    pub(crate) model_info: Option<ModelInfo>,
    pub(crate) display: DisplayCapabilities,
    /// The token usage of the turn so far.
    pub(crate) tokens: &'a mut ModelTokenUsage,
}

/// What the client can display besides messages.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DisplayCapabilities {
    pub(crate) shows_notices: bool,
    pub(crate) shows_compaction: bool,
}

/// A response that was added to the history, with calls to run.
struct AnsweredRequest {
    calls: Vec<ModelToolCall>,
    /// The ids of the calls that were announced to the client while they were streamed.
    announced: BTreeSet<String>,
    stop_reason: StopReason,
}

/// The effect of one model request on the turn.
enum StepOutcome {
    Answered(AnsweredRequest),
    /// Nothing was answered, and the request is to be sent again with a changed history.
    Retry,
}

/// Why a turn has no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TurnError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Model(ModelError),
}

/// The inner error is one of the model, which is reported to the user.
type ModelResult<T> = Result<Result<T, ModelError>, StoreError>;

impl ChatTurn<'_> {
    pub(crate) async fn run(
        &mut self,
        content: Vec<ContentBlock>,
    ) -> Result<StopReason, TurnError> {
        self.set_title(&content)?;
        self.append_entries(vec![HistoryEntry::Prompt { content }])?;
        for notice in self.session.mcp_servers.wait_for_start().await {
            self.send_notice(&notice);
        }
        if self.history.len() == 1
            && self.has_tools()
            && let Some(window) = self.context_window().filter(|it| *it < WINDOW_MIN)
        {
            self.send_notice(&format!(
                "The context window of the model has {window} tokens, which is too few for an agent: \
                 configure {WINDOW_MIN} or more, or turn off tools with OPENAI_TOOLS=0."
            ));
        }
        match self.run_steps().await? {
            Ok(stop_reason) => Ok(stop_reason),
            Err(error) => self.end_with_error(error),
        }
    }

    /// Alternates model requests and tool calls until the model makes no more calls.
    async fn run_steps(&mut self) -> ModelResult<StopReason> {
        let mut repeats = RepeatDetector::default();
        let (mut invalid_responses, mut was_compacted) = (0, false);
        for _ in 0..MODEL_REQUESTS_MAX {
            if self.is_window_full()
                && let Err(error) = self.compact_history().await?
            {
                return Ok(Err(error));
            }
            let step = self.run_model_step(&mut invalid_responses, &mut was_compacted).await?;
            let answered = match step {
                Ok(StepOutcome::Answered(answered)) => answered,
                Ok(StepOutcome::Retry) => continue,
                Err(error) => return Ok(Err(error)),
            };
            if answered.calls.is_empty() {
                return Ok(Ok(answered.stop_reason));
            }
            let Some(results) = self.run_calls(answered.calls, &answered.announced).await? else {
                return Ok(Ok(StopReason::Cancelled));
            };
            if let Err(error) = self.check_repeats(&mut repeats, &results)? {
                return Ok(Err(error));
            }
        }
        Ok(Ok(StopReason::MaxTurnRequests))
    }

    /// Sends one request and adds the answer to the history. Compacts the history once if the
    /// request exceeds the context window.
    async fn run_model_step(
        &mut self,
        invalid_responses: &mut usize,
        was_compacted: &mut bool,
    ) -> ModelResult<StepOutcome> {
        let (response, announced) = match self.send_model_request().await {
            Ok(it) => it,
            Err(error)
                if !self.is_bridge()
                    && compaction::is_window_exceeded(&error)
                    && !*was_compacted =>
            {
                *was_compacted = true;
                let compacted = self.compact_history().await?;
                return Ok(compacted.map(|()| StepOutcome::Retry).map_err(|_| error));
            }
            Err(error) => return Ok(Err(error)),
        };
        self.record_usage(&response);
        let ModelResponse { text, thought, calls, finish_reason, tokens, garbled, .. } = response;
        if !self.is_bridge()
            && calls.is_empty()
            && (text.trim().is_empty() || garbled.is_some())
            && finish_reason == FinishReason::Stop
        {
            *invalid_responses += 1;
            if INVALID_RESPONSES_MAX < *invalid_responses {
                let message = describe_invalid_response(garbled.as_deref());
                return Ok(Err(ModelError::Unusable(message)));
            }
            self.add_correction_hint(&text, thought, garbled)?;
            return Ok(Ok(StepOutcome::Retry));
        }
        let answer = HistoryEntry::Answer { text, thought, calls: calls.clone(), tokens };
        self.append_entries(vec![answer])?;
        let stop_reason = to_stop_reason(finish_reason);
        Ok(Ok(StepOutcome::Answered(AnsweredRequest { calls, announced, stop_reason })))
    }

    /// Whether the model gets only what the user wrote.
    fn is_bridge(&self) -> bool {
        self.session.context.profile == AgentProfile::ChatBridge
    }

    /// Reacts to calls that repeat with the same result.
    fn check_repeats(
        &mut self,
        repeats: &mut RepeatDetector,
        results: &[(ModelToolCall, String)],
    ) -> ModelResult<()> {
        let round = results
            .iter()
            .map(|(call, text)| (call.name.as_str(), call.arguments.as_str(), text.as_str()));
        match repeats.record_round(round) {
            RepeatAction::Continue => Ok(Ok(())),
            RepeatAction::Hint => {
                let text = "You made the same call again and it had the same result. Do something \
                            else, or say what is in your way."
                    .to_owned();
                self.append_entries(vec![HistoryEntry::Hint { text }])?;
                Ok(Ok(()))
            }
            RepeatAction::Stop => {
                let message = "The model made the same call again and again, so it was stopped. \
                               Tell it how to go on.";
                Ok(Err(ModelError::Unusable(message.to_owned())))
            }
        }
    }

    /// Adds to the token usage of the turn, and reports the usage of the context window.
    fn record_usage(&mut self, response: &ModelResponse) {
        let Some(tokens) = response.tokens else { return };
        self.add_usage(tokens);
        if let Some(size) = self.context_window() {
            let used_tokens = tokens.input + tokens.output;
            let update = UsageUpdate::new(used_tokens, size).cost(self.session.cost());
            self.session.send_update(SessionUpdate::UsageUpdate(update));
        }
    }

    fn add_usage(&mut self, tokens: ModelTokenUsage) {
        self.tokens.add(tokens);
        self.session.add_cost(tokens.cost_nanos);
    }

    /// Adds a hint for a model whose response was empty or had a garbled call.
    fn add_correction_hint(
        &mut self,
        text: &str,
        thought: String,
        garbled: Option<String>,
    ) -> Result<(), StoreError> {
        let mut new = Vec::new();
        let hint = match garbled {
            Some(garbled) => {
                let text = format!("{text}{garbled}");
                let calls = Vec::new();
                new.push(HistoryEntry::Answer { text, thought, calls, tokens: None });
                "Your last answer looks like a call that was written as text and cannot be read. Make \
                 it through the interface for calls, with arguments that are a JSON object."
            }
            None => "You answered nothing. Answer, or make a call.",
        };
        new.push(HistoryEntry::Hint { text: hint.to_owned() });
        self.append_entries(new)
    }

    /// Sets the title of the session from its first prompt with text.
    fn set_title(&mut self, content: &[ContentBlock]) -> Result<(), StoreError> {
        if self.session.has_title() {
            return Ok(());
        }
        let title = content.iter().find_map(|it| match it {
            ContentBlock::Text(text) => derive_title(&text.text),
            _ => None,
        });
        if let Some(title) = title {
            self.session.update_record(|record| record.title = Some(title.clone()))?;
            let update = SessionInfoUpdate::new().title(title);
            self.session.send_update(SessionUpdate::SessionInfoUpdate(update));
        }
        Ok(())
    }

    fn append_entries(&mut self, new: Vec<HistoryEntry>) -> Result<(), StoreError> {
        self.session.append_entries(self.history, new)
    }

    /// Ends the turn as failed. The clients of a bridge get the error as the answer instead.
    pub(crate) fn end_with_error(&mut self, error: ModelError) -> Result<StopReason, TurnError> {
        let message = error.to_string();
        tracing::warn!("{message}");
        self.append_entries(vec![HistoryEntry::Failed { message: message.clone() }])?;
        if !self.is_bridge() {
            return Err(TurnError::Model(error));
        }
        let chunk = ContentChunk::new(message.as_str().into());
        self.session.send_update(SessionUpdate::AgentMessageChunk(chunk));
        Ok(StopReason::EndTurn)
    }

    /// Sends a message to the user that the model does not need.
    fn send_notice(&self, text: &str) {
        tracing::warn!("{text}");
        if self.display.shows_notices {
            let (title, rest) = text.split_once('\n').unwrap_or((text, ""));
            let rest = Some(rest.to_owned()).filter(|it| !it.is_empty());
            let notice = Notice::new(NoticeSeverity::Warning, title).description(rest);
            self.session.send_update(SessionUpdate::Notice(notice));
        } else {
            let chunk = ContentChunk::new(format!("{text}\n\n").as_str().into());
            self.session.send_update(SessionUpdate::AgentThoughtChunk(chunk));
        }
    }
}

fn describe_invalid_response(garbled: Option<&str>) -> String {
    let message = match garbled {
        Some(_) => {
            "The model writes its calls as text that cannot be parsed, so nothing was done. It may \
             not support tools: check it with `jackfield models probe`, or turn tools off with \
             OPENAI_TOOLS=0."
        }
        None => {
            "The model answered nothing. Its context window may be too small for the prompt: check \
             it with `jackfield models probe`."
        }
    };
    message.to_owned()
}

fn to_stop_reason(finish_reason: FinishReason) -> StopReason {
    match finish_reason {
        FinishReason::Stop => StopReason::EndTurn,
        FinishReason::Length => StopReason::MaxTokens,
        FinishReason::Refusal => StopReason::Refusal,
    }
}

/// Converts the token usage of a turn. Returns `None` if the server reported none.
pub(crate) fn to_acp_usage(tokens: ModelTokenUsage) -> Option<Usage> {
    let total = tokens.input + tokens.output;
    if total == 0 {
        return None;
    }
    let if_nonzero = |it: u64| Some(it).filter(|it| 0 < *it);
    let usage = Usage::new(total, tokens.input, tokens.output);
    let usage = usage.thought_tokens(if_nonzero(tokens.thought));
    Some(usage.cached_read_tokens(if_nonzero(tokens.cached)))
}
