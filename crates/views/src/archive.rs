//! The file a session is exported to: a header, a line for each event as the journal has it with its
//! number before it, and a footer that says how many there were and what they add up to. So a file
//! that is cut, edited or of something else is noticed before anything is made of it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Raised when an older reader would misread the file.
pub const VERSION: u64 = 1;
/// What is wrong with a file of a later version.
pub const NEWER: &str = "a newer version of jackfield wrote this file";

/// What the first line says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Header {
    pub session_id: String,
    /// Secrets were taken out.
    #[serde(default)]
    pub redacted: bool,
    #[serde(default)]
    pub exported_at: String,
    /// What else is known of the session, for people.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// What is wrong with a file, and in which line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct Flaw {
    pub line: usize,
    pub why: String,
}

/// Writes the lines of a file, each without its newline.
#[derive(Debug, Default)]
pub struct Archive {
    sum: crc32fast::Hasher,
    events: u64,
}

impl Archive {
    pub fn header(&mut self, header: &Header) -> String {
        let mut members = json!({ "jackfield": "session", "version": VERSION });
        let known = serde_json::to_value(header).expect("plain data serializes");
        if let (Value::Object(members), Value::Object(known)) = (&mut members, known) {
            members.extend(known);
        }
        self.add(members.to_string())
    }

    /// `event` begins with its number: `{"seq":7,…`.
    pub fn event(&mut self, event: &str) -> String {
        self.events += 1;
        self.add(event.to_owned())
    }

    pub fn footer(self) -> String {
        let sum = format!("{:08x}", self.sum.finalize());
        json!({ "jackfield": "end", "events": self.events, "crc32": sum }).to_string()
    }

    fn add(&mut self, line: String) -> String {
        self.sum.update(line.as_bytes());
        self.sum.update(b"\n");
        line
    }
}

/// Reads the lines of a file back.
#[derive(Debug, Default)]
pub struct Reader {
    sum: crc32fast::Hasher,
    line: usize,
    events: u64,
    ended: bool,
}

/// What a line was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry<'a> {
    Header(Box<Header>),
    /// The event as the journal has it: its number is where it stands.
    Event(std::borrow::Cow<'a, str>),
    End,
}

/// Some editors add one.
const BYTE_ORDER_MARK: char = '\u{feff}';

impl Reader {
    pub fn read<'a>(&mut self, line: &'a str) -> Result<Entry<'a>, Flaw> {
        self.line += 1;
        if self.ended {
            return Err(self.flaw("something stands behind the end"));
        }
        if self.line == 1 {
            return self.header(line);
        }
        if line.starts_with(r#"{"jackfield":"end""#) {
            return self.footer(line);
        }
        let seq = self.events + 1;
        let Some(rest) = line.strip_prefix(&format!(r#"{{"seq":{seq},"#)) else {
            return Err(self.flaw(&format!("event {seq} is expected here")));
        };
        if rest.starts_with(r#""is":"missing""#) {
            let why = "this event was damaged when the session was exported with `--skip-damaged`";
            return Err(self.flaw(&format!("{why}: such a file can be read, and not imported")));
        }
        self.events = seq;
        self.add(line);
        Ok(Entry::Event(format!("{{{rest}").into()))
    }

    /// There are no more lines.
    pub fn finish(&self) -> Result<u64, Flaw> {
        if self.ended {
            return Ok(self.events);
        }
        let why =
            if self.line == 0 { "the file is empty" } else { "the file ends here: it was cut" };
        Err(self.flaw(why))
    }

    pub fn flaw(&self, why: &str) -> Flaw {
        Flaw { line: self.line.max(1), why: why.to_owned() }
    }

    fn header<'a>(&mut self, line: &str) -> Result<Entry<'a>, Flaw> {
        self.add(line);
        let foreign = "this is no session that `jackfield sessions export` wrote";
        let value: Value = serde_json::from_str(line.trim_start_matches(BYTE_ORDER_MARK))
            .map_err(|_| self.flaw(foreign))?;
        if value["jackfield"] != "session" {
            return Err(self.flaw(foreign));
        }
        match value["version"].as_u64() {
            Some(VERSION) => {}
            Some(newer) if VERSION < newer => {
                return Err(self.flaw(NEWER));
            }
            _ => return Err(self.flaw(foreign)),
        }
        match serde_json::from_value(value) {
            Ok(header) => Ok(Entry::Header(Box::new(header))),
            Err(error) => Err(self.flaw(&error.to_string())),
        }
    }

    fn footer<'a>(&mut self, line: &str) -> Result<Entry<'a>, Flaw> {
        let value: Value =
            serde_json::from_str(line).map_err(|_| self.flaw("the last line was cut"))?;
        if value["events"].as_u64() != Some(self.events) {
            return Err(self.flaw(&format!("there should be {} events", value["events"])));
        }
        let sum = format!("{:08x}", self.sum.clone().finalize());
        if value["crc32"] != *sum {
            return Err(self.flaw("the sum is wrong: a line above was changed"));
        }
        self.ended = true;
        Ok(Entry::End)
    }

    fn add(&mut self, line: &str) {
        self.sum.update(line.as_bytes());
        self.sum.update(b"\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> Vec<String> {
        let mut archive = Archive::default();
        let header = Header {
            session_id: "s-1".into(),
            redacted: true,
            exported_at: "now".into(),
            more: Map::new(),
        };
        let mut lines = vec![archive.header(&header)];
        lines.push(archive.event(r#"{"seq":1,"at":1,"is":"opened"}"#));
        lines.push(archive.event(r#"{"seq":2,"at":2,"is":"closed"}"#));
        lines.push(archive.footer());
        lines
    }

    fn read(lines: &[String]) -> Result<Vec<String>, Flaw> {
        let mut reader = Reader::default();
        let mut events = Vec::new();
        for line in lines {
            if let Entry::Event(event) = reader.read(line)? {
                events.push(event.into_owned());
            }
        }
        reader.finish().map(|_| events)
    }

    #[test]
    fn what_was_written_is_read_back() {
        let events = [r#"{"at":1,"is":"opened"}"#, r#"{"at":2,"is":"closed"}"#];
        assert_eq!(read(&file()).unwrap(), events);
    }

    #[test]
    fn a_file_that_is_cut_changed_or_of_something_else_is_refused_with_the_line() {
        let told = |lines: &[String]| read(lines).unwrap_err().to_string();
        assert_eq!(told(&[]), "line 1: the file is empty");
        assert!(told(&["{}".into()]).contains("line 1: this is no session"));
        for kept in 1..4 {
            let why = told(&file()[..kept]);
            assert_eq!(why, format!("line {kept}: the file ends here: it was cut"));
        }
        let mut edited = file();
        edited[1] = edited[1].replace("\"at\":1", "\"at\":3");
        assert_eq!(told(&edited), "line 4: the sum is wrong: a line above was changed");
        let mut missing = file();
        missing.remove(1);
        assert_eq!(told(&missing), "line 2: event 1 is expected here");
        let newer: Vec<String> =
            file().iter().map(|it| it.replace("\"version\":1", "\"version\":2")).collect();
        assert!(told(&newer).contains("newer version"));
        let mut damaged = file();
        damaged[2] = r#"{"seq":2,"is":"missing","why":"x"}"#.into();
        assert!(told(&damaged).starts_with("line 3: this event was damaged"));
        let mut more = file();
        more.push("{}".into());
        assert_eq!(told(&more), "line 5: something stands behind the end");
    }
}
