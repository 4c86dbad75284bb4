//! Views of a session's log, derived from its events as JSON. No I/O, no clock.
//!
//! [`export_file`] is the file format of an exported session and [`export`] writes it; [`redactor`]
//! removes secrets from a log; [`usage`] sums up tokens, cost and time per turn; [`options`] reads the settings
//! that a session offers. [`agent_event`] turns a session into the events of a chat window, [`envelope`]
//! into messages that a client stores; both read the same `timeline`. [`text`] renders a session line by
//! line while it runs, [`transcript`] renders all of it as Markdown.
//!
//! **Invariant:** a view contains nothing that is not in the log: what an agent has not reported stays
//! unknown.

pub mod agent_event;
mod current_model;
pub mod envelope;
pub mod export;
pub mod export_file;
pub mod fallback;
pub mod options;
pub mod redactor;
#[cfg(test)]
mod test_events;
pub mod text;
mod timeline;
pub mod transcript;
mod turn_activity;
pub mod usage;
mod usage_report;

pub use agent_event::{AgentEvent, AgentEventView, StatusEvent};
pub use envelope::{Envelope, EnvelopeView};
pub use export::SessionExport;
pub use export_file::{ExportError, ExportHeader, ExportLine, ExportReader, ExportWriter};
pub use redactor::StreamingRedactor;
pub use text::{TextRenderer, describe_client};
pub use transcript::MarkdownTranscript;
pub use usage::{SessionUsage, UsageCost};
pub use usage_report::{UsageGroup, UsageGrouping, UsageReport};
