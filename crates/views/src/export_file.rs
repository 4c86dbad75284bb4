//! The file format of an exported session: a header, a line per event as the journal stores it with its
//! sequence number first, and a footer with the number of events and a checksum. A truncated, edited or
//! foreign file is therefore detected before anything is imported.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Incremented when an older reader would misread the file.
pub const FORMAT_VERSION: u64 = 1;
/// The error for a file of a later version.
pub const NEWER_FORMAT: &str = "a newer version of jackfield wrote this file";

/// The content of the first line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExportHeader {
    pub session_id: String,
    /// Whether secrets were removed.
    #[serde(default)]
    pub redacted: bool,
    #[serde(default)]
    pub exported_at: String,
    /// Further properties of the session, for human readers.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// An error in an exported file, and its line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct ExportError {
    pub line: usize,
    pub reason: String,
}

/// Writes the lines of an exported file, each without its newline.
#[derive(Debug, Default)]
pub struct ExportWriter {
    checksum: crc32fast::Hasher,
    events: u64,
}

impl ExportWriter {
    pub fn write_header(&mut self, header: &ExportHeader) -> String {
        let mut members = json!({ "jackfield": "session", "version": FORMAT_VERSION });
        let known = serde_json::to_value(header).expect("plain data serializes");
        if let (Value::Object(members), Value::Object(known)) = (&mut members, known) {
            members.extend(known);
        }
        self.add_line(members.to_string())
    }

    /// Writes an event, which begins with its sequence number: `{"seq":7,…`.
    pub fn write_event(&mut self, event: &str) -> String {
        self.events += 1;
        self.add_line(event.to_owned())
    }

    pub fn write_footer(self) -> String {
        let checksum = format!("{:08x}", self.checksum.finalize());
        json!({ "jackfield": "end", "events": self.events, "crc32": checksum }).to_string()
    }

    fn add_line(&mut self, line: String) -> String {
        self.checksum.update(line.as_bytes());
        self.checksum.update(b"\n");
        line
    }
}

/// Reads the lines of an exported file.
#[derive(Debug, Default)]
pub struct ExportReader {
    checksum: crc32fast::Hasher,
    line: usize,
    events: u64,
    ended: bool,
}

/// A parsed line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExportLine<'a> {
    Header(Box<ExportHeader>),
    /// The event as the journal stores it. Its sequence number is its position.
    Event(std::borrow::Cow<'a, str>),
    End,
}

const TRUNCATED: &str = "the file is truncated: its footer is missing";
const FOREIGN: &str = "the file was not written by `jackfield sessions export`";
/// Some editors prepend it.
const BYTE_ORDER_MARK: char = '\u{feff}';

impl ExportReader {
    pub fn read_line<'a>(&mut self, line: &'a str) -> Result<ExportLine<'a>, ExportError> {
        self.line += 1;
        if self.ended {
            return Err(self.error_at_line("unexpected data after the footer"));
        }
        if self.line == 1 {
            return self.read_header(line);
        }
        if line.starts_with(r#"{"jackfield":"end""#) {
            return self.read_footer(line);
        }
        let seq = self.events + 1;
        let Some(rest) = line.strip_prefix(&format!(r#"{{"seq":{seq},"#)) else {
            return Err(self.error_at_line(&format!("expected event {seq}")));
        };
        if rest.starts_with(r#""is":"missing""#) {
            let reason =
                "this event was damaged when the session was exported with `--skip-damaged`";
            return Err(self.error_at_line(&format!("{reason}; such a file cannot be imported")));
        }
        self.events = seq;
        self.add_line(line);
        Ok(ExportLine::Event(format!("{{{rest}").into()))
    }

    /// Checks that the file is complete, and returns the number of events.
    pub fn finish(&self) -> Result<u64, ExportError> {
        if self.ended {
            return Ok(self.events);
        }
        let is_empty = self.line == 0;
        Err(self.error_at_line(if is_empty { "the file is empty" } else { TRUNCATED }))
    }

    pub fn error_at_line(&self, reason: &str) -> ExportError {
        ExportError { line: self.line.max(1), reason: reason.to_owned() }
    }

    fn read_header<'a>(&mut self, line: &str) -> Result<ExportLine<'a>, ExportError> {
        self.add_line(line);

        let value: Value = serde_json::from_str(line.trim_start_matches(BYTE_ORDER_MARK))
            .map_err(|_| self.error_at_line(FOREIGN))?;
        if value["jackfield"] != "session" {
            return Err(self.error_at_line(FOREIGN));
        }
        match value["version"].as_u64() {
            Some(FORMAT_VERSION) => {}
            Some(newer) if FORMAT_VERSION < newer => {
                return Err(self.error_at_line(NEWER_FORMAT));
            }
            _ => return Err(self.error_at_line(FOREIGN)),
        }
        match serde_json::from_value(value) {
            Ok(header) => Ok(ExportLine::Header(Box::new(header))),
            Err(error) => Err(self.error_at_line(&error.to_string())),
        }
    }

    fn read_footer<'a>(&mut self, line: &str) -> Result<ExportLine<'a>, ExportError> {
        let value: Value = serde_json::from_str(line)
            .map_err(|_| self.error_at_line("the footer is truncated"))?;
        if value["events"].as_u64() != Some(self.events) {
            return Err(self.error_at_line(&format!(
                "expected {} events, found {}",
                value["events"], self.events
            )));
        }
        let checksum = format!("{:08x}", self.checksum.clone().finalize());
        if value["crc32"] != *checksum {
            return Err(self.error_at_line("the checksum does not match: a line above was changed"));
        }
        self.ended = true;
        Ok(ExportLine::End)
    }

    fn add_line(&mut self, line: &str) {
        self.checksum.update(line.as_bytes());
        self.checksum.update(b"\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exported_lines() -> Vec<String> {
        let mut writer = ExportWriter::default();
        let header = ExportHeader {
            session_id: "s-1".into(),
            redacted: true,
            exported_at: "now".into(),
            more: Map::new(),
        };
        let mut lines = vec![writer.write_header(&header)];
        lines.push(writer.write_event(r#"{"seq":1,"at":1,"is":"opened"}"#));
        lines.push(writer.write_event(r#"{"seq":2,"at":2,"is":"closed"}"#));
        lines.push(writer.write_footer());
        lines
    }

    fn read_all(lines: &[String]) -> Result<Vec<String>, ExportError> {
        let mut reader = ExportReader::default();
        let mut events = Vec::new();
        for line in lines {
            if let ExportLine::Event(event) = reader.read_line(line)? {
                events.push(event.into_owned());
            }
        }
        reader.finish().map(|_| events)
    }

    #[test]
    fn written_events_are_read_back() {
        let events = [r#"{"at":1,"is":"opened"}"#, r#"{"at":2,"is":"closed"}"#];
        assert_eq!(read_all(&exported_lines()).unwrap(), events);
    }

    #[test]
    fn truncated_changed_or_foreign_file_is_refused_with_its_line() {
        let error = |lines: &[String]| read_all(lines).unwrap_err().to_string();
        assert_eq!(error(&[]), "line 1: the file is empty");
        assert!(error(&["{}".into()]).starts_with("line 1: the file was not written by"));
        for count in 1..4 {
            let reason = error(&exported_lines()[..count]);
            assert_eq!(reason, format!("line {count}: {TRUNCATED}"));
        }
        let mut edited = exported_lines();
        edited[1] = edited[1].replace("\"at\":1", "\"at\":3");
        assert_eq!(error(&edited), "line 4: the checksum does not match: a line above was changed");
        let mut missing = exported_lines();
        missing.remove(1);
        assert_eq!(error(&missing), "line 2: expected event 1");
        let newer: Vec<String> = exported_lines()
            .iter()
            .map(|it| it.replace("\"version\":1", "\"version\":2"))
            .collect();
        assert!(error(&newer).contains("newer version"));
        let mut damaged = exported_lines();
        damaged[2] = r#"{"seq":2,"is":"missing","why":"x"}"#.into();
        assert!(error(&damaged).starts_with("line 3: this event was damaged"));
        let mut more = exported_lines();
        more.push("{}".into());
        assert_eq!(error(&more), "line 5: unexpected data after the footer");
    }
}
