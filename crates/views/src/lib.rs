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
mod file_changes;
pub mod options;
pub mod redactor;
#[cfg(test)]
mod test_events;
pub mod text;
mod text_finder;
mod timeline;
pub mod transcript;
mod turn_activity;
mod turn_spans;
pub mod usage;
mod usage_report;

pub use agent_event::{AgentEvent, AgentEventView, StatusEvent};
pub use envelope::{Envelope, EnvelopeView};
pub use export::SessionExport;
pub use export_file::{ExportError, ExportHeader, ExportLine, ExportReader, ExportWriter};
pub use file_changes::{ChangedFile, FileChanges, FileStatus, TurnChanges};
pub use redactor::StreamingRedactor;
pub use text::{TextRenderer, describe_client};
pub use text_finder::{MatchedPart, TextFinder, TextMatch};
pub use transcript::{MarkdownTranscript, diff::render_diff};
pub use turn_spans::{ReportedTurnUsage, SpanKind, TurnSpan, TurnSpans, TurnSpansView};
pub use usage::{SessionUsage, TokenCounts, UsageCost};
pub use usage_report::{UsageGroup, UsageGrouping, UsageReport};
