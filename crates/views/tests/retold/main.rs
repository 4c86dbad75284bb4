//! Sessions retold as agent events, as envelopes and as Markdown: by hand, from what real agents said, and from
//! anything at all.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod agent_event;
mod envelope;
mod foreign;
mod log;
mod made_up;
mod properties;
mod recorded;
mod runtimes;
mod scribe;
mod shape;
mod shown;
#[path = "../../src/test_events.rs"]
mod test_events;
mod transcript;
