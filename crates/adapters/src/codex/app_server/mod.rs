//! `codex app-server`: one process per session, JSON-RPC without the `jsonrpc` member.
//!
//! ```text
//!  start ──► initialize ──► initialized, thread/start or thread/resume ──► ready
//!  prompt ─► turn/start ──► items, deltas, approvals, tokens ──► turn/completed
//! ```
//!
//! A prompt that arrives before the thread is ready waits for it.

mod approvals;
mod items;
mod notification;
mod params;
mod streamed_messages;

use super::failure;
use super::token_counts::ThreadTokenCounts;
use crate::{
    AdapterTurn, Dialect, PermissionAnswer, ProgramCapabilities, ProgramLifetime, ProgramSetting,
    PromptInput, StartContext, StopReason, TurnFailure,
};
use approvals::PendingApprovals;
use items::ItemTracker;
use jackfield_agents::AgentExit;
use serde_json::{Value, json};
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct AppServerDialect {
    link: LinkState,
    /// The method and parameters that open the thread, kept for a retry.
    thread_request: (&'static str, Value),
    model: Option<String>,
    effort: Option<String>,
    request_count: u64,
    requests: BTreeMap<u64, AppServerRequest>,
    /// The input of a prompt that waits for the thread.
    pending_input: Option<Value>,
    /// The id of the turn that processes the prompt.
    active_turn: Option<String>,
    /// Whether the turn has started: before that it has an id, but cannot be interrupted.
    is_turn_started: bool,
    /// The client cancelled the turn, and the interrupt was not sent yet.
    is_cancel_pending: bool,
    /// The turn for which an interrupt was sent.
    interrupted_turn: Option<String>,
    /// An error that `turn/completed` will repeat.
    error: Option<Value>,
    approvals: PendingApprovals,
    items: ItemTracker,
    meter: TokenMeter,
}

/// The state of the connection to the program.
#[derive(Debug, Default, PartialEq, Eq)]
enum LinkState {
    #[default]
    Closed,
    Initializing,
    Initialized,
    OpeningThread,
    Ready {
        thread: String,
    },
}

/// A request that was sent to the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AppServerRequest {
    Initialize,
    Thread,
    Turn,
    Interrupt,
}

/// The tokens of the thread at the start of the turn, and now.
#[derive(Debug, Default)]
struct TokenMeter {
    base: Option<ThreadTokenCounts>,
    total: Option<ThreadTokenCounts>,
}

impl Dialect for AppServerDialect {
    fn lifetime(&self) -> ProgramLifetime {
        ProgramLifetime::PerSession
    }

    fn capabilities(&self) -> ProgramCapabilities {
        ProgramCapabilities { images: true, mcp: true }
    }

    fn on_start(&mut self, start: &StartContext<'_>, turn: &mut AdapterTurn) {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        *self = AppServerDialect {
            thread_request: params::thread_request(start, turn),
            items: ItemTracker::new(start.cwd),
            model: owned(start.model),
            effort: owned(start.reasoning),
            // Codex reports the earlier usage of a resumed thread later.
            meter: TokenMeter {
                base: start.agent_session_id.is_none().then(ThreadTokenCounts::default),
                total: None,
            },
            ..AppServerDialect::default()
        };
        self.send_initialize(turn);
    }

    fn on_prompt(&mut self, prompt: &PromptInput, turn: &mut AdapterTurn) {
        self.items.begin_turn();
        (self.active_turn, self.is_turn_started, self.is_cancel_pending) = (None, false, false);
        self.error = None;
        let input = params::turn_input(prompt);
        match &self.link {
            LinkState::Ready { thread } => {
                let thread = thread.clone();
                self.start_turn(&thread, &input, turn);
                return;
            }
            // A step that failed for an earlier prompt is retried.
            LinkState::Closed => self.send_initialize(turn),
            LinkState::Initialized => self.open_thread(turn),
            LinkState::Initializing | LinkState::OpeningThread => {}
        }
        self.pending_input = Some(input);
    }

    fn on_line(&mut self, line: &str, turn: &mut AdapterTurn) {
        let Some(message) = turn.parse_object(line) else { return };
        match (message["method"].as_str(), message.get("id")) {
            (Some(method), Some(id)) => self.on_request(method, id, &message, turn),
            (Some(method), None) => self.on_notification(method, &message, turn),
            (None, Some(id)) => {
                let request = id.as_u64().and_then(|id| self.requests.remove(&id));
                match request {
                    Some(request) => self.on_response(request, &message, turn),
                    None => turn.report_unmapped(&message),
                }
            }
            (None, None) => turn.report_unmapped(&message),
        }
    }

    fn on_cancel(&mut self, turn: &mut AdapterTurn) -> bool {
        if self.pending_input.take().is_some() {
            turn.complete(StopReason::Cancelled);
        } else {
            self.is_cancel_pending = true;
            self.interrupt_turn(turn);
        }
        true
    }

    fn on_answer(&mut self, key: &str, answer: PermissionAnswer<'_>, turn: &mut AdapterTurn) {
        self.approvals.on_answer(key, answer, turn);
    }

    fn on_setting(&mut self, setting: ProgramSetting<'_>, _turn: &mut AdapterTurn) -> bool {
        match setting {
            // `turn/start` can set a model, but cannot restore the default. It could set a sandbox,
            // but without the user's configuration of it (network, more writable directories). A
            // new process that resumes the thread applies both.
            ProgramSetting::Model("default")
            | ProgramSetting::Reasoning("default")
            | ProgramSetting::Mode(_) => {
                return false;
            }
            ProgramSetting::Model(model) => self.model = Some(model.to_owned()),
            ProgramSetting::Reasoning(effort) => self.effort = Some(effort.to_owned()),
        }
        true
    }

    fn on_exit(&mut self, exit: &AgentExit, turn: &mut AdapterTurn) {
        if let Some(error) = self.error.take() {
            turn.fail(failure::from_error(&error));
        } else if turn.is_running() {
            let exit = failure::strip_startup_remarks(exit);
            turn.fail(TurnFailure::from_exit(&exit, &turn.noise, turn.has_output()));
        }
    }
}

impl AppServerDialect {
    fn send_initialize(&mut self, turn: &mut AdapterTurn) {
        let version = env!("CARGO_PKG_VERSION");
        let client = json!({"name": "jackfield", "title": "Jackfield", "version": version});
        self.send_request(
            AppServerRequest::Initialize,
            "initialize",
            &json!({"clientInfo": client}),
            turn,
        );
        self.link = LinkState::Initializing;
    }

    fn open_thread(&mut self, turn: &mut AdapterTurn) {
        let (method, params) = self.thread_request.clone();
        self.send_request(AppServerRequest::Thread, method, &params, turn);
        self.link = LinkState::OpeningThread;
    }

    fn start_turn(&mut self, thread: &str, input: &Value, turn: &mut AdapterTurn) {
        let mut params = json!({"threadId": thread, "input": input});
        if let Some(model) = &self.model {
            params["model"] = json!(model);
        }
        if let Some(effort) = &self.effort {
            params["effort"] = json!(effort);
        }
        self.send_request(AppServerRequest::Turn, "turn/start", &params, turn);
    }

    /// Interrupts a cancelled turn, once, as soon as it can be.
    fn interrupt_turn(&mut self, turn: &mut AdapterTurn) {
        if let (LinkState::Ready { thread }, Some(active)) = (&self.link, &self.active_turn)
            && self.is_turn_started
            && self.is_cancel_pending
        {
            let params = json!({"threadId": thread, "turnId": active});
            self.is_cancel_pending = false;
            self.interrupted_turn = Some(active.clone());
            self.send_request(AppServerRequest::Interrupt, "turn/interrupt", &params, turn);
        }
    }

    fn send_request(
        &mut self,
        request: AppServerRequest,
        method: &str,
        params: &Value,
        turn: &mut AdapterTurn,
    ) {
        self.request_count += 1;
        let id = self.request_count;
        self.requests.insert(id, request);
        turn.write_json(&json!({"id": id, "method": method, "params": params}));
    }

    fn on_response(&mut self, request: AppServerRequest, message: &Value, turn: &mut AdapterTurn) {
        if let Some(error) = message.get("error") {
            return self.on_error_response(request, error, turn);
        }
        let result = &message["result"];
        match request {
            AppServerRequest::Initialize => {
                turn.write_json(&json!({"method": "initialized"}));
                self.open_thread(turn);
            }
            AppServerRequest::Thread => {
                let Some(thread) = result["thread"]["id"].as_str() else {
                    let error = json!({"message": "the response contains no thread id"});
                    return self.on_error_response(request, &error, turn);
                };
                self.link = LinkState::Ready { thread: thread.to_owned() };
                if let Some(input) = self.pending_input.take() {
                    self.start_turn(thread, &input, turn);
                }
            }
            AppServerRequest::Turn => self.on_turn_id(result["turn"]["id"].as_str(), turn),
            // `turn/completed` reports the end of the turn.
            AppServerRequest::Interrupt => {}
        }
    }

    fn on_error_response(
        &mut self,
        request: AppServerRequest,
        error: &Value,
        turn: &mut AdapterTurn,
    ) {
        let message =
            error["message"].as_str().unwrap_or("the request failed for an unknown reason");
        match request {
            AppServerRequest::Initialize => self.link = LinkState::Closed,
            AppServerRequest::Thread => self.link = LinkState::Initialized,
            AppServerRequest::Turn => {}
            // The turn has already ended; this response may even arrive after the next prompt.
            AppServerRequest::Interrupt => {
                turn.send_notice(message);
                if self.active_turn.is_some() && self.active_turn == self.interrupted_turn {
                    self.active_turn = None;
                    turn.complete(StopReason::Cancelled);
                }
                return;
            }
        }
        self.pending_input = None;
        turn.fail(failure::from_message(message));
    }

    /// Codex will process the prompt under this turn id.
    fn on_turn_id(&mut self, id: Option<&str>, turn: &mut AdapterTurn) {
        if !turn.is_running() || self.active_turn.is_some() {
            return;
        }
        self.active_turn = id.map(str::to_owned);
        if let LinkState::Ready { thread } = &self.link {
            // A thread without a turn is not stored and cannot be resumed, so its id is published
            // now.
            turn.set_agent_session_id(thread);
        }
    }

    /// A turn has started. Codex may also start one by itself.
    fn on_turn_started(&mut self, id: Option<&str>, turn: &mut AdapterTurn) {
        if self.requests.values().any(|it| *it == AppServerRequest::Turn) {
            self.on_turn_id(id, turn);
        }
        if self.active_turn.is_some() && self.active_turn.as_deref() == id {
            self.is_turn_started = true;
            self.interrupt_turn(turn);
        }
    }

    fn on_request(&mut self, method: &str, id: &Value, message: &Value, turn: &mut AdapterTurn) {
        let params = &message["params"];
        let known = params["itemId"].as_str().and_then(|item| self.items.known_call(item));
        if !self.approvals.on_request(method, id, params, known, turn) {
            let error = format!("this client does not support `{method}`");
            turn.write_json(&json!({"id": id, "error": {"code": -32601, "message": error}}));
            turn.report_unmapped(message);
        }
    }
}

#[cfg(test)]
mod tests;
