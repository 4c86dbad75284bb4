//! The durable events of a session: their types, their JSON form, and the summary that they add up to.
//!
//! Read in this order: [`SessionEvent`] is one entry of a session's log and [`EventBody`] says what
//! happened, with one type per kind of event in `kinds`. `line` encodes an event as a line of JSON and
//! decodes it; `received` reads the same event from the notification that a client receives.
//! [`SessionSummary`] is the fold over the events of a session, and [`KeyedPrompts`] its memory of
//! prompts that carry a [`RequestKey`]. [`RawJson`] is JSON that is carried as its exact text; views
//! use the same types with parsed JSON (`EventBody<Value>`).
//!
//! **Invariant:** every line that an earlier version wrote can be decoded. Members are added with a
//! default and never renamed or removed.
//!
//! **Invariant:** no I/O, no clock, no randomness: decoding and folding depend on their arguments alone.

mod event;
mod id;
mod keyed_prompts;
mod kind;
mod kinds;
pub mod limits;
mod line;
mod outcome;
mod raw_json;
mod received;
mod request_key;
mod session_cost;
mod setting_events;
mod summary;

pub use event::{EventBody, SessionEvent, first_prompt_line};
pub use id::{AgentName, AgentSessionId, HostId, Seq, SessionId, TenantName, Time};
pub use keyed_prompts::{KeyedPrompt, KeyedPrompts, SESSION_CANCELLED, is_key_expired};
pub use kind::EventKind;
pub use kinds::{
    AgentBound, AgentExited, AgentMessage, AgentQuiet, AgentSuspended, ConnectionRefused,
    MessageDropped, OperationRefused, PromptCapabilities, PromptQueued, PromptWithdrawn,
    QueueReordered, RequestServed, RuleLearned, SandboxApplied, SessionForked, SessionImported,
    SessionMoved, SessionOpened, SettingChanged, TurnCancelled, TurnEnded, TurnStarted,
    UnaskedCall, UserAnswered, UserAsked, WITHDRAWN_BY_PREFIX, WITHDRAWN_BY_SENDER,
};
pub use line::InvalidEvent;
pub use outcome::{
    INTERRUPTED_BY_IMPORT, INTERRUPTED_LATER_SUFFIX, RestoreStep, ServedOutcome, TurnOutcome,
};
pub use raw_json::RawJson;
pub use received::{MissingEvent, ReceivedEvent};
pub use request_key::RequestKey;
pub use session_cost::{ReportedCost, SessionCost, find_usage};
pub use setting_events::SettingEvents;
pub use summary::{ForkOrigin, QueuedPrompt, SessionSummary, SummaryUpdate};
