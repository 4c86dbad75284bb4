//! Plays a recording: the adapter is driven by a well-behaved client and the recorded output.

use super::recording::Recording;
use crate::support::{MemoryStore, new_adapter};
use jackfield_adapters::{Adapter, AdapterOutput, ProgramId};
use jackfield_protocol::LineSplitter;
use serde_json::{Value, json};

/// All outputs of the adapter in order, each with its channel: frames for the `client`, lines for
/// `stdin`, and arguments of a `start`.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct PlaybackResult {
    pub(crate) frames: Vec<(&'static str, Value)>,
    pub(crate) prompts: u64,
}

struct RecordingPlayer<'a> {
    adapter: Adapter,
    store: MemoryStore,
    recording: &'a Recording,
    played: PlaybackResult,
    program: Option<ProgramId>,
    is_turn_running: bool,
}

/// Plays the recording with the output in one chunk.
pub(crate) fn play(name: &str, recording: &Recording) -> PlaybackResult {
    play_in_chunks(name, recording, &[])
}

/// Plays the recording with the output in chunks of these sizes and the rest in one chunk.
pub(crate) fn play_in_chunks(name: &str, recording: &Recording, sizes: &[usize]) -> PlaybackResult {
    let mut player = RecordingPlayer::new(name, recording);
    player.send("initialize", &json!({"protocolVersion": 1}));
    player.send("session/new", &json!({"cwd": "/user/project", "mcpServers": []}));
    player.prompt();
    let mut splitter = LineSplitter::new(16 << 20).with_blank_lines();
    let mut rest = recording.stdout.as_slice();
    let mut sizes = sizes.iter().copied();
    while !rest.is_empty() {
        let size = sizes.next().unwrap_or(rest.len()).clamp(1, rest.len());
        let (chunk, tail) = rest.split_at(size);
        rest = tail;
        let mut lines = Vec::new();
        let chunk = bytes::Bytes::copy_from_slice(chunk);
        splitter.push(chunk, &mut |line| lines.push(line.unwrap()));
        player.receive(&lines);
    }
    let mut lines = Vec::new();
    splitter.finish(&mut |line| lines.push(line.unwrap()));
    player.receive(&lines);
    player.end();
    player.played
}

impl<'a> RecordingPlayer<'a> {
    fn new(name: &str, recording: &'a Recording) -> RecordingPlayer<'a> {
        RecordingPlayer {
            adapter: new_adapter(&recording.cli, name),
            store: MemoryStore::default(),
            recording,
            played: PlaybackResult::default(),
            program: None,
            is_turn_running: false,
        }
    }

    fn send(&mut self, method: &str, params: &Value) {
        let frame = json!({"jsonrpc": "2.0", "id": method, "method": method, "params": params});
        self.adapter.on_client_frame(&frame, &mut self.store);
        self.apply_outputs();
    }

    fn prompt(&mut self) {
        self.played.prompts += 1;
        self.is_turn_running = true;
        let prompt = json!([{"type": "text", "text": self.recording.prompt}]);
        self.send("session/prompt", &json!({"sessionId": "session-1", "prompt": prompt}));
        if self.recording.is_cancelled() {
            // The recorded program was interrupted by a signal; here the client cancels.
            let params = json!({"sessionId": "session-1"});
            let frame = json!({"jsonrpc": "2.0", "method": "session/cancel", "params": params});
            self.adapter.on_client_frame(&frame, &mut self.store);
            self.apply_outputs();
        }
    }

    fn receive(&mut self, lines: &[bytes::Bytes]) {
        for line in lines {
            // The recorded client prompted a program with several turns again at this point.
            if !self.is_turn_running && self.starts_turn(line) {
                self.prompt();
            }
            let line = String::from_utf8_lossy(line);
            if let Some(program) = self.program {
                self.adapter.on_line(program, &line, &mut self.store);
                self.apply_outputs();
            }
        }
    }

    fn starts_turn(&self, line: &[u8]) -> bool {
        let line = String::from_utf8_lossy(line);
        self.program.is_some() && line.contains(r#""type":"system","subtype":"init""#)
    }

    fn end(&mut self) {
        if let Some(program) = self.program {
            self.adapter.on_exit(program, &self.recording.exit, &mut self.store);
            self.apply_outputs();
        }
    }

    /// Applies the outputs as a host and a client would.
    fn apply_outputs(&mut self) {
        while let Some(output) = self.adapter.take_output() {
            match output {
                AdapterOutput::SendToClient(frame) => self.on_frame(frame),
                AdapterOutput::StartProgram { program, argv, .. } => {
                    self.program = Some(program);
                    self.record("start", json!(argv));
                }
                AdapterOutput::WriteStdin { line, .. } => {
                    let line = serde_json::from_str(&line).unwrap_or(Value::String(line));
                    self.record("stdin", line);
                }
                AdapterOutput::CloseStdin { .. } => self.record("stdin", Value::Null),
                // The recording contains the exit.
                AdapterOutput::MarkTurnStart { .. }
                | AdapterOutput::StopTools { .. }
                | AdapterOutput::FinishProgram { .. }
                | AdapterOutput::StopProgram { .. } => {}
            }
        }
    }

    fn on_frame(&mut self, frame: Value) {
        if frame["id"] == "session/prompt" {
            self.is_turn_running = false;
        }
        let request = (frame["method"] == "session/request_permission").then(|| frame.clone());
        self.record("client", frame);
        if let Some(request) = request {
            let is_denied = self.recording.case.contains("den");
            let kind = if is_denied { "reject_once" } else { "allow_once" };
            let options = request["params"]["options"].as_array().unwrap();
            let option = options.iter().find(|it| it["kind"] == kind).unwrap();
            let outcome = json!({"outcome": "selected", "optionId": option["optionId"]});
            let frame =
                json!({"jsonrpc": "2.0", "id": request["id"], "result": {"outcome": outcome}});
            self.adapter.on_client_frame(&frame, &mut self.store);
        }
    }

    fn record(&mut self, channel: &'static str, frame: Value) {
        self.played.frames.push((channel, frame));
    }
}
