//! A minimal ACP client over two byte streams: as little of our own cost in the figures as possible.

use anyhow::{Context as _, Result, bail};
use std::io::{BufRead as _, BufReader, Read, Write};

pub(crate) struct Talk {
    reader: BufReader<Box<dyn Read + Send>>,
    writer: Box<dyn Write + Send>,
    next_id: u64,
    line: Vec<u8>,
}

impl Talk {
    pub(crate) fn new(reader: Box<dyn Read + Send>, writer: Box<dyn Write + Send>) -> Talk {
        let reader = BufReader::with_capacity(256 * 1024, reader);
        Talk { reader, writer, next_id: 0, line: Vec::new() }
    }

    pub(crate) fn notify(&mut self, method: &str, params: &str) -> Result<()> {
        let line = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\",\"params\":{params}}}\n");
        Ok(self.writer.write_all(line.as_bytes())?)
    }

    /// Asks, and does not wait; returns the number of the request.
    pub(crate) fn send(&mut self, method: &str, params: &str) -> Result<u64> {
        self.next_id += 1;
        let id = self.next_id;
        let line = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}\n"
        );
        self.writer.write_all(line.as_bytes())?;
        Ok(id)
    }

    /// The next line that comes, with its line feed.
    pub(crate) fn line(&mut self) -> Result<&[u8]> {
        self.line.clear();
        if self.reader.read_until(b'\n', &mut self.line)? == 0 {
            bail!("the other side closed");
        }
        Ok(&self.line)
    }

    /// Asks, and returns the answer's line and how many other lines came before it.
    pub(crate) fn ask(&mut self, method: &str, params: &str) -> Result<(String, u64)> {
        let id = self.send(method, params)?;
        let mark = format!("\"id\":{id},");
        let mut others = 0;
        loop {
            let line = self.line().with_context(|| format!("`{method}` has no answer"))?;
            if memchr::memmem::find(start(line), mark.as_bytes()).is_some() {
                return Ok((String::from_utf8(line.to_vec())?, others));
            }
            others += 1;
        }
    }

    pub(crate) fn initialize(&mut self) -> Result<()> {
        self.ask("initialize", r#"{"protocolVersion":1,"clientCapabilities":{}}"#)?;
        Ok(())
    }

    /// Opens a session and returns its id.
    pub(crate) fn open(&mut self, cwd: &str) -> Result<String> {
        let params = serde_json::json!({ "cwd": cwd, "mcpServers": [] }).to_string();
        let (answer, _) = self.ask("session/new", &params)?;
        let answer: serde_json::Value = serde_json::from_str(&answer)?;
        let id = answer.pointer("/result/sessionId").and_then(|it| it.as_str());
        id.map(str::to_owned).with_context(|| format!("no session: {answer}"))
    }

    /// One turn; returns how many updates it had.
    pub(crate) fn prompt(&mut self, session: &str, text: &str) -> Result<u64> {
        let (answer, updates) = self.ask("session/prompt", &prompt(session, text))?;
        if !answer.contains("stopReason") {
            bail!("the prompt failed: {answer}");
        }
        Ok(updates)
    }
}

/// The params of a prompt.
pub(crate) fn prompt(session: &str, text: &str) -> String {
    let prompt = [serde_json::json!({ "type": "text", "text": text })];
    serde_json::json!({ "sessionId": session, "prompt": prompt }).to_string()
}

/// Where the id of an answer stands: both sides put it before the result. Updates have none.
pub(crate) fn start(line: &[u8]) -> &[u8] {
    &line[..line.len().min(64)]
}
