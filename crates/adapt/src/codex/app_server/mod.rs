//! `codex app-server`: one program for the session, its own JSON-RPC (without the `jsonrpc` member).
//!
//! ```text
//!  open ──► initialize ──► initialized, thread/start or thread/resume ──► ready
//!  prompt ─► turn/start ──► items, deltas, approvals, tokens ──► turn/completed
//! ```
//!
//! A prompt that comes before the thread is ready waits for it.

mod approvals;
mod items;
mod notification;
mod params;
mod voices;

use super::fault;
use super::tokens::Tokens;
use crate::{Answer, Can, Dialect, Failure, Life, Prompt, Setting, Start, Stop, Turn};
use approvals::Approvals;
use items::Items;
use jackfield_agents::Exit;
use serde_json::{Value, json};
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct AppServer {
    link: Link,
    /// Method and parameters that open the thread, kept for a second try.
    opening: (&'static str, Value),
    model: Option<String>,
    effort: Option<String>,
    requests_made: u64,
    requests: BTreeMap<u64, Request>,
    /// The input of a turn that waits for the thread.
    waiting: Option<Value>,
    /// The turn that Codex works on for us.
    active: Option<String>,
    /// Whether it has begun: before that it has an id, but cannot be interrupted.
    started: bool,
    /// The client cancelled, and Codex was not told yet.
    cancelled: bool,
    /// The turn that Codex was told to interrupt.
    interrupted: Option<String>,
    /// An error that `turn/completed` will tell again.
    error: Option<Value>,
    approvals: Approvals,
    items: Items,
    meter: Meter,
}

/// How far we are with the program.
#[derive(Debug, Default, PartialEq, Eq)]
enum Link {
    #[default]
    Closed,
    Greeting,
    Greeted,
    Opening,
    Ready {
        thread: String,
    },
}

/// What we asked of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Request {
    Initialize,
    Thread,
    Turn,
    Interrupt,
}

/// Tokens of the conversation when the turn began, and now.
#[derive(Debug, Default)]
struct Meter {
    base: Option<Tokens>,
    total: Option<Tokens>,
}

impl Dialect for AppServer {
    fn life(&self) -> Life {
        Life::Session
    }

    fn can(&self) -> Can {
        Can { images: true, mcp: true }
    }

    fn open(&mut self, start: &Start<'_>, turn: &mut Turn) {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        *self = AppServer {
            opening: params::opening(start, turn),
            items: Items::new(start.cwd),
            model: owned(start.model),
            effort: owned(start.reasoning),
            // A resumed conversation has used something before; Codex will say how much.
            meter: Meter { base: start.native.is_none().then(Tokens::default), total: None },
            ..AppServer::default()
        };
        self.greet(turn);
    }

    fn prompt(&mut self, prompt: &Prompt, turn: &mut Turn) {
        self.items.begin();
        (self.active, self.started, self.cancelled) = (None, false, false);
        self.error = None;
        let input = params::input(prompt);
        match &self.link {
            Link::Ready { thread } => {
                let thread = thread.clone();
                self.start_turn(&thread, &input, turn);
                return;
            }
            // What failed for an earlier prompt is tried again.
            Link::Closed => self.greet(turn),
            Link::Greeted => self.open_thread(turn),
            Link::Greeting | Link::Opening => {}
        }
        self.waiting = Some(input);
    }

    fn line(&mut self, line: &str, turn: &mut Turn) {
        let Some(message) = turn.object(line) else { return };
        match (message["method"].as_str(), message.get("id")) {
            (Some(method), Some(id)) => self.on_request(method, id, &message, turn),
            (Some(method), None) => self.on_notification(method, &message, turn),
            (None, Some(id)) => {
                let request = id.as_u64().and_then(|id| self.requests.remove(&id));
                match request {
                    Some(request) => self.on_response(request, &message, turn),
                    None => turn.unmapped(&message),
                }
            }
            (None, None) => turn.unmapped(&message),
        }
    }

    fn cancel(&mut self, turn: &mut Turn) -> bool {
        if self.waiting.take().is_some() {
            turn.done(Stop::Cancelled);
        } else {
            self.cancelled = true;
            self.interrupt(turn);
        }
        true
    }

    fn answer(&mut self, key: &str, answer: Answer<'_>, turn: &mut Turn) {
        self.approvals.answer(key, answer, turn);
    }

    fn set(&mut self, setting: Setting<'_>, _turn: &mut Turn) -> bool {
        match setting {
            // The next turn tells a model, but has no way to say that the default is wanted again.
            // It could tell a sandbox, but not what the user has configured about it (network, more
            // writable folders); a new program that resumes the thread has both.
            Setting::Model("default") | Setting::Reasoning("default") | Setting::Mode(_) => {
                return false;
            }
            Setting::Model(model) => self.model = Some(model.to_owned()),
            Setting::Reasoning(effort) => self.effort = Some(effort.to_owned()),
        }
        true
    }

    fn end(&mut self, exit: &Exit, turn: &mut Turn) {
        if let Some(error) = self.error.take() {
            turn.fail(fault::from_error(&error));
        } else if turn.is_running() {
            let exit = fault::without_remarks(exit);
            turn.fail(Failure::from_exit(&exit, &turn.noise, turn.has_spoken()));
        }
    }
}

impl AppServer {
    fn greet(&mut self, turn: &mut Turn) {
        let version = env!("CARGO_PKG_VERSION");
        let client = json!({"name": "jackfield", "title": "Jackfield", "version": version});
        self.request(Request::Initialize, "initialize", &json!({"clientInfo": client}), turn);
        self.link = Link::Greeting;
    }

    fn open_thread(&mut self, turn: &mut Turn) {
        let (method, params) = self.opening.clone();
        self.request(Request::Thread, method, &params, turn);
        self.link = Link::Opening;
    }

    fn start_turn(&mut self, thread: &str, input: &Value, turn: &mut Turn) {
        let mut params = json!({"threadId": thread, "input": input});
        if let Some(model) = &self.model {
            params["model"] = json!(model);
        }
        if let Some(effort) = &self.effort {
            params["effort"] = json!(effort);
        }
        self.request(Request::Turn, "turn/start", &params, turn);
    }

    /// Interrupts a cancelled turn, once, as soon as it can be.
    fn interrupt(&mut self, turn: &mut Turn) {
        if let (Link::Ready { thread }, Some(active)) = (&self.link, &self.active)
            && self.started
            && self.cancelled
        {
            let params = json!({"threadId": thread, "turnId": active});
            self.cancelled = false;
            self.interrupted = Some(active.clone());
            self.request(Request::Interrupt, "turn/interrupt", &params, turn);
        }
    }

    fn request(&mut self, request: Request, method: &str, params: &Value, turn: &mut Turn) {
        self.requests_made += 1;
        let id = self.requests_made;
        self.requests.insert(id, request);
        turn.write(&json!({"id": id, "method": method, "params": params}));
    }

    fn on_response(&mut self, request: Request, message: &Value, turn: &mut Turn) {
        if let Some(error) = message.get("error") {
            return self.on_refusal(request, error, turn);
        }
        let result = &message["result"];
        match request {
            Request::Initialize => {
                turn.write(&json!({"method": "initialized"}));
                self.open_thread(turn);
            }
            Request::Thread => {
                let Some(thread) = result["thread"]["id"].as_str() else {
                    let error = json!({"message": "it opened no thread"});
                    return self.on_refusal(request, &error, turn);
                };
                self.link = Link::Ready { thread: thread.to_owned() };
                if let Some(input) = self.waiting.take() {
                    self.start_turn(thread, &input, turn);
                }
            }
            Request::Turn => self.on_turn(result["turn"]["id"].as_str(), turn),
            // The end of the turn is told by itself.
            Request::Interrupt => {}
        }
    }

    fn on_refusal(&mut self, request: Request, error: &Value, turn: &mut Turn) {
        let message = error["message"].as_str().unwrap_or("it refused without a reason");
        match request {
            Request::Initialize => self.link = Link::Closed,
            Request::Thread => self.link = Link::Greeted,
            Request::Turn => {}
            // There is nothing to interrupt any more; the refusal may also come after the next prompt.
            Request::Interrupt => {
                turn.notice(message);
                if self.active.is_some() && self.active == self.interrupted {
                    self.active = None;
                    turn.done(Stop::Cancelled);
                }
                return;
            }
        }
        self.waiting = None;
        turn.fail(fault::from_message(message));
    }

    /// Codex will work on our prompt under this id.
    fn on_turn(&mut self, id: Option<&str>, turn: &mut Turn) {
        if !turn.is_running() || self.active.is_some() {
            return;
        }
        self.active = id.map(str::to_owned);
        if let Link::Ready { thread } = &self.link {
            // Not before: a thread without a turn is not kept, and cannot be resumed.
            turn.native(thread);
        }
    }

    /// A turn begins; Codex may also begin one by itself.
    fn on_turn_started(&mut self, id: Option<&str>, turn: &mut Turn) {
        if self.requests.values().any(|it| *it == Request::Turn) {
            self.on_turn(id, turn);
        }
        if self.active.is_some() && self.active.as_deref() == id {
            self.started = true;
            self.interrupt(turn);
        }
    }

    fn on_request(&mut self, method: &str, id: &Value, message: &Value, turn: &mut Turn) {
        let params = &message["params"];
        let told = params["itemId"].as_str().and_then(|item| self.items.told(item));
        if !self.approvals.on_request(method, id, params, told, turn) {
            let error = format!("`{method}` is not served by this client");
            turn.write(&json!({"id": id, "error": {"code": -32601, "message": error}}));
            turn.unmapped(message);
        }
    }
}

#[cfg(test)]
mod tests;
