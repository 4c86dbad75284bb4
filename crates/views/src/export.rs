//! The lines of an export, made fact by fact: whole, or without secrets.

use crate::{Archive, Veil, archive::Header};
use jackfield_protocol::redact;
use serde_json::Value;

/// A session on its way into a file.
#[derive(Debug)]
pub struct Export {
    archive: Archive,
    /// `None` keeps everything.
    veil: Option<Veil>,
}

impl Export {
    /// Begins with the first line; the header says whether secrets are taken out.
    pub fn new(header: &Header) -> (Export, String) {
        let mut archive = Archive::default();
        let first = archive.header(header);
        (Export { archive, veil: header.redacted.then(Veil::default) }, first)
    }

    /// The next fact, as the journal has it, with its number before it. Returns the lines that are
    /// decided: a secret may be split over several facts.
    pub fn event(&mut self, text: &str) -> Vec<String> {
        let Some(veil) = &mut self.veil else { return vec![self.archive.event(text)] };
        let Ok(fact) = serde_json::from_str(text) else {
            // Nested too deep to be read as a value: then as text.
            let waited = veil.finish();
            let mut lines = self.lines(&waited);
            lines.push(self.archive.event(&redact::text(text)));
            return lines;
        };
        let decided = veil.push(fact);
        self.lines(&decided)
    }

    /// The last lines.
    pub fn finish(mut self) -> Vec<String> {
        let waited = self.veil.as_mut().map(Veil::finish).unwrap_or_default();
        let mut lines = self.lines(&waited);
        lines.push(self.archive.footer());
        lines
    }

    fn lines(&mut self, facts: &[Value]) -> Vec<String> {
        facts.iter().map(|it| self.archive.event(&it.to_string())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Entry, Reader};
    use serde_json::Map;

    fn exported(redacted: bool) -> Vec<String> {
        let more = Map::new();
        let header = Header { session_id: "s-1".into(), redacted, exported_at: "now".into(), more };
        let (mut export, first) = Export::new(&header);
        let mut lines = vec![first];
        lines.extend(
            export.event(r#"{"seq":1,"at":1,"is":"gone","stderr":"API_KEY=abcdefgh1234"}"#),
        );
        let deep = format!("{}\"API_KEY=abcdefgh1234\"{}", "[".repeat(200), "]".repeat(200));
        lines.extend(export.event(&format!(r#"{{"seq":2,"at":2,"is":"said","frame":{deep}}}"#)));
        lines.extend(export.finish());
        lines
    }

    #[test]
    fn an_export_reads_back_and_has_no_secret_unless_it_is_whole() {
        for redacted in [true, false] {
            let lines = exported(redacted);
            let mut reader = Reader::default();
            for line in &lines {
                let entry = reader.read(line).unwrap();
                let secret = matches!(&entry, Entry::Event(it) if it.contains("abcdefgh1234"));
                assert_eq!(secret, !redacted && matches!(entry, Entry::Event(_)), "{line}");
            }
            assert_eq!(reader.finish().unwrap(), 2);
        }
    }
}
