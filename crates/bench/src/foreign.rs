//! A program that prints what Claude Code prints, as fast as it can: what an adapter is measured with.

use anyhow::Result;
use std::io::{BufRead as _, Write as _};

/// Answers every prompt with as many pieces of text as the number in it says.
pub(crate) fn speak() -> Result<()> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        if !line.contains(r#""type":"user""#) {
            continue;
        }
        let digits = line.split(|it: char| !it.is_ascii_digit()).find(|it| !it.is_empty());
        let pieces: u32 = digits.and_then(|it| it.parse().ok()).unwrap_or(1);
        writeln!(out, r#"{{"type":"system","subtype":"init","session_id":"s","model":"m"}}"#)?;
        let start = r#"{"type":"message_start","message":{"id":"m1"}}"#;
        writeln!(out, r#"{{"type":"stream_event","event":{start},"parent_tool_use_id":null}}"#)?;
        for piece in 0..pieces {
            let delta = format!(r#"{{"type":"text_delta","text":"word {piece} "}}"#);
            let event = format!(r#"{{"type":"content_block_delta","index":0,"delta":{delta}}}"#);
            writeln!(
                out,
                r#"{{"type":"stream_event","event":{event},"parent_tool_use_id":null}}"#
            )?;
        }
        let usage = r#"{"input_tokens":1,"output_tokens":1}"#;
        writeln!(
            out,
            r#"{{"type":"result","subtype":"success","is_error":false,"result":"","session_id":"s","usage":{usage}}}"#
        )?;
        out.flush()?;
    }
    Ok(())
}
