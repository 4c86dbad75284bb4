//! The framing of the Language Server Protocol: a header with the length, then JSON. No I/O.

use serde_json::Value;

/// No answer that a model can use is longer.
const MESSAGE_BYTES_MAX: usize = 32 << 20;

/// Splits the output of a language server into messages.
#[derive(Debug, Default)]
pub(super) struct LspFrameReader {
    buffer: Vec<u8>,
}

impl LspFrameReader {
    /// Adds output and returns the messages that are complete. Fails if it is not the protocol.
    pub(super) fn push(&mut self, output: &[u8]) -> Result<Vec<Value>, String> {
        self.buffer.extend_from_slice(output);
        let mut messages = Vec::new();
        while let Some(end) = find(&self.buffer, b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&self.buffer[..end]).into_owned();
            let length = parse_length(&head)
                .ok_or_else(|| "the language server does not speak its protocol".to_owned())?;
            if MESSAGE_BYTES_MAX < length {
                return Err(format!("a message exceeds the limit of {MESSAGE_BYTES_MAX} bytes"));
            }
            let (start, total) = (end + 4, end + 4 + length);
            if self.buffer.len() < total {
                break;
            }
            let message = serde_json::from_slice(&self.buffer[start..total]);
            messages.push(message.map_err(|error| format!("a message is not JSON: {error}"))?);
            self.buffer.drain(..total);
        }
        Ok(messages)
    }
}

fn find(text: &[u8], pattern: &[u8]) -> Option<usize> {
    text.windows(pattern.len()).position(|it| it == pattern)
}

fn parse_length(head: &str) -> Option<usize> {
    head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn messages_are_split_wherever_the_output_is_cut() {
        let output =
            b"Content-Length: 8\r\n\r\n{\"a\": 1}Content-Type: x\r\ncontent-length: 2\r\n\r\n{}";
        for at in 0..output.len() {
            let mut reader = LspFrameReader::default();
            let mut messages = reader.push(&output[..at]).unwrap();
            messages.extend(reader.push(&output[at..]).unwrap());
            assert_eq!(messages, [json!({ "a": 1 }), json!({})], "{at}");
        }
    }

    #[test]
    fn other_output_is_refused() {
        for output in
            ["hello\r\n\r\n", "Content-Length: 999999999\r\n\r\n", "Content-Length: 1\r\n\r\n{"]
        {
            assert!(LspFrameReader::default().push(output.as_bytes()).is_err(), "{output}");
        }
    }
}
