//! Views of a session's log, made of its facts as JSON. No I/O, no clock.
//!
//! [`archive`] is the file that a session is exported to and imported from ([`export`] makes it),
//! [`veil`] is the same log without secrets, [`usage`] is what the turns have cost, [`options`] is what
//! a session lets its user choose. [`agent_event`] retells a session as the events of a chat window,
//! [`envelope`] as messages that a client keeps; both read the same `story`. [`text`] tells it line by
//! line as it goes, [`transcript`] is the whole of it as Markdown.
//!
//! **Invariant:** a view knows no more than the log: what an agent has not said stays unknown.

pub mod agent_event;
pub mod archive;
pub mod envelope;
pub mod export;
pub mod options;
mod story;
#[cfg(test)]
mod test_events;
pub mod text;
pub mod transcript;
pub mod usage;
pub mod veil;

pub use agent_event::{AgentEvent, AgentEvents};
pub use archive::{Archive, Entry, Flaw, Reader};
pub use envelope::{Envelope, Envelopes};
pub use export::Export;
pub use text::{Text, by_whom};
pub use transcript::Transcript;
pub use usage::Usage;
pub use veil::Veil;
