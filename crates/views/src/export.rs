//! Writes the lines of an export event by event, with or without secrets.

use crate::{ExportHeader, ExportWriter, StreamingRedactor};
use jackfield_protocol::redact;
use serde_json::Value;

/// A session that is being exported.
#[derive(Debug)]
pub struct SessionExport {
    writer: ExportWriter,
    /// `None` keeps secrets.
    redactor: Option<StreamingRedactor>,
}

impl SessionExport {
    /// Starts an export and returns its first line. The header says whether secrets are removed.
    pub fn start(header: &ExportHeader) -> (SessionExport, String) {
        let mut writer = ExportWriter::default();
        let first = writer.write_header(header);
        (
            SessionExport { writer, redactor: header.redacted.then(StreamingRedactor::default) },
            first,
        )
    }

    /// Adds the next event as the journal stores it, with its sequence number first. Returns the
    /// lines that are complete: a secret may be split across several events.
    pub fn add_event(&mut self, text: &str) -> Vec<String> {
        let Some(redactor) = &mut self.redactor else { return vec![self.writer.write_event(text)] };
        let Ok(event) = serde_json::from_str(text) else {
            // The event nests too deep to be parsed: it is redacted as text.
            let remaining = redactor.finish();
            let mut lines = self.write_lines(&remaining);
            lines.push(self.writer.write_event(&redact::text(text)));
            return lines;
        };
        let redacted = redactor.push(event);
        self.write_lines(&redacted)
    }

    /// Returns the remaining lines and the footer.
    pub fn finish(mut self) -> Vec<String> {
        let remaining = self.redactor.as_mut().map(StreamingRedactor::finish).unwrap_or_default();
        let mut lines = self.write_lines(&remaining);
        lines.push(self.writer.write_footer());
        lines
    }

    fn write_lines(&mut self, events: &[Value]) -> Vec<String> {
        events.iter().map(|it| self.writer.write_event(&it.to_string())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ExportLine, ExportReader};
    use serde_json::Map;

    fn export_lines(redacted: bool) -> Vec<String> {
        let more = Map::new();
        let header =
            ExportHeader { session_id: "s-1".into(), redacted, exported_at: "now".into(), more };
        let (mut export, first) = SessionExport::start(&header);
        let mut lines = vec![first];
        lines.extend(
            export.add_event(r#"{"seq":1,"at":1,"is":"gone","stderr":"API_KEY=abcdefgh1234"}"#),
        );
        let deep = format!("{}\"API_KEY=abcdefgh1234\"{}", "[".repeat(200), "]".repeat(200));
        lines
            .extend(export.add_event(&format!(r#"{{"seq":2,"at":2,"is":"said","frame":{deep}}}"#)));
        lines.extend(export.finish());
        lines
    }

    #[test]
    fn export_reads_back_and_has_secrets_only_if_not_redacted() {
        for redacted in [true, false] {
            let lines = export_lines(redacted);
            let mut reader = ExportReader::default();
            for line in &lines {
                let entry = reader.read_line(line).unwrap();
                let secret = matches!(&entry, ExportLine::Event(it) if it.contains("abcdefgh1234"));
                assert_eq!(secret, !redacted && matches!(entry, ExportLine::Event(_)), "{line}");
            }
            assert_eq!(reader.finish().unwrap(), 2);
        }
    }
}
