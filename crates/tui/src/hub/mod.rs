//! Messages between the interface and the hub, as plain data.
//!
//! [`HubRequest`]s are effects; `terminal` sends them. [`HubUpdate`]s are inputs.

mod agent_overview;
mod request;
mod rows;
mod update;

pub use agent_overview::{AgentEntry, AgentOverview, OverviewLine};
pub(crate) use request::{HubRequest, LogRange, PromptDelivery, RequestNumber, SettingValue};
pub(crate) use rows::{OpenRequest, RequestOption, SessionRow, SessionState};
pub(crate) use update::{
    AnsweredRequest, ConnectionState, HubUpdate, LogPage, QueuedPrompt, SessionCommand,
    SessionSettings,
};
