//! Sessions as agent events, envelopes and Markdown: hand-written sessions, recorded agents, and generated
//! events.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod adapter_events;
mod adapters;
mod agent_event;
mod envelope;
mod envelope_shape;
mod generated;
mod log_recorder;
mod properties;
mod recorded;
mod session_log;
mod snapshot_text;
mod strict_envelope;
#[path = "../../src/test_events.rs"]
mod test_events;
mod transcript;
