//! Reads an agent's stdout and turns it into batches of frames, as fast as the receiver takes them.

use crate::event::{AgentProcessEvent, StdoutNoise};
use crate::launch_command::StdoutFormat;
use crate::output_tail::ProcessOutputTail;
use crate::pipe_reader;
use bytes::Bytes;
use jackfield_protocol::{FlowControl, Frame, LineSplitter, LineTooLong};
use std::future::poll_fn;
use std::io;
use std::mem;
use std::sync::Arc;
use std::task::ready;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::{mpsc, oneshot};

/// The number of positions in a line of noise that are tried as the start of a frame.
const STARTS_MAX: usize = 32;

pub(crate) struct StdoutReader<K> {
    pub(crate) key: K,
    pub(crate) pipe: Receiver,
    pub(crate) splitter: LineSplitter,
    pub(crate) stdout_format: StdoutFormat,
    pub(crate) events: mpsc::Sender<(K, AgentProcessEvent)>,
    pub(crate) tail: ProcessOutputTail,
    pub(crate) flow_control: Arc<FlowControl>,
}

impl<K: Clone> StdoutReader<K> {
    /// Runs until stdout ends, or until the agent has exited and its output is delivered. A full
    /// channel stops the reading, and then the kernel blocks the agent.
    pub(crate) async fn run(self, mut ended: oneshot::Receiver<()>) {
        let StdoutReader { key, mut pipe, mut splitter, stdout_format, events, tail, flow_control } =
            self;
        loop {
            let chunk = tokio::select! {
                biased;
                _ = &mut ended => break,
                chunk = read_when_resumed(&flow_control, &mut pipe) => chunk,
            };
            let Ok(Some(chunk)) = chunk else { break };
            if stdout_format.is_unsplit() {
                let _ = events.send((key.clone(), AgentProcessEvent::Output(chunk))).await;
                continue;
            }
            let mut batch = StdoutBatch::new(stdout_format);
            splitter.push(chunk, &mut |line| batch.add(line, &tail));
            batch.deliver(&key, &events).await;
        }
        let mut batch = StdoutBatch::new(stdout_format);
        pipe_reader::drain_pipe(&pipe, |chunk| {
            if stdout_format.is_unsplit() {
                batch.bytes.push(chunk);
            } else {
                splitter.push(chunk, &mut |line| batch.add(line, &tail));
            }
        });
        splitter.finish(&mut |line| batch.add(line, &tail));
        batch.deliver(&key, &events).await;
    }
}

async fn read_when_resumed(
    flow_control: &FlowControl,
    pipe: &mut Receiver,
) -> io::Result<Option<Bytes>> {
    poll_fn(|cx| {
        ready!(flow_control.poll_reading(cx));
        pipe_reader::poll_read(pipe, cx)
    })
    .await
}

#[derive(Default)]
struct StdoutBatch {
    stdout_format: StdoutFormat,
    /// Events that come before the frames.
    done: Vec<AgentProcessEvent>,
    frames: Vec<Frame>,
    lines: Vec<Bytes>,
    bytes: Vec<Bytes>,
    noise: Option<StdoutNoise>,
}

impl StdoutBatch {
    fn new(stdout_format: StdoutFormat) -> StdoutBatch {
        StdoutBatch { stdout_format, ..StdoutBatch::default() }
    }

    fn add(&mut self, line: Result<Bytes, LineTooLong>, tail: &ProcessOutputTail) {
        match line {
            Ok(line) if self.stdout_format == StdoutFormat::Lines => self.lines.push(line),
            Ok(line) => match Frame::parse(line.clone()) {
                Ok(frame) => self.frames.push(frame),
                Err(_) => match recover_frame(&line) {
                    Some((junk, frame)) => {
                        self.add_noise(&line[..junk], tail);
                        self.frames.push(frame);
                    }
                    None => drop(self.add_noise(&line, tail)),
                },
            },
            Err(too_long) => {
                self.add_noise(too_long.to_string().as_bytes(), tail).too_long += 1;
                if self.stdout_format == StdoutFormat::Frames {
                    let before = mem::take(&mut self.frames);
                    self.done
                        .extend((!before.is_empty()).then_some(AgentProcessEvent::Frames(before)));
                    self.done.push(AgentProcessEvent::Oversized(too_long));
                }
            }
        }
    }

    fn add_noise(&mut self, line: &[u8], tail: &ProcessOutputTail) -> &mut StdoutNoise {
        let first = tail.push_noise(line);
        let noise = self.noise.get_or_insert(StdoutNoise { first, ..StdoutNoise::default() });
        noise.lines += 1;
        noise
    }

    /// Sends the events of this batch. A closed channel is ignored.
    async fn deliver<K: Clone>(self, key: &K, events: &mpsc::Sender<(K, AgentProcessEvent)>) {
        for event in self.done {
            let _ = events.send((key.clone(), event)).await;
        }
        if !self.frames.is_empty() {
            let _ = events.send((key.clone(), AgentProcessEvent::Frames(self.frames))).await;
        }
        if !self.lines.is_empty() {
            let _ = events.send((key.clone(), AgentProcessEvent::Lines(self.lines))).await;
        }
        for bytes in self.bytes {
            let _ = events.send((key.clone(), AgentProcessEvent::Output(bytes))).await;
        }
        if let Some(noise) = self.noise {
            let _ = events.send((key.clone(), AgentProcessEvent::Noise(noise))).await;
        }
    }
}

/// Recovers a frame after escape codes, a prompt or a log line without newline: at the first `{`
/// from which the rest of the line is a frame. Also returns the length of the noise before it.
fn recover_frame(line: &Bytes) -> Option<(usize, Frame)> {
    let starts = line.iter().enumerate().filter(|(at, byte)| {
        // Every frame begins with a key.
        let rest = &line[at + 1..];
        **byte == b'{' && rest.trim_ascii_start().starts_with(b"\"")
    });
    starts.map(|(at, _)| at).filter(|at| 0 < *at).take(STARTS_MAX).find_map(|at| {
        let frame = Frame::parse(line.slice(at..)).ok()?;
        Some((at, frame))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use jackfield_protocol::redact::SecretRedactor;

    fn read(lines: &[&[u8]]) -> (StdoutBatch, ProcessOutputTail) {
        let tail = ProcessOutputTail::new(SecretRedactor::default(), 1 << 14);
        let mut batch = StdoutBatch::default();
        for line in lines {
            batch.add(Ok(Bytes::copy_from_slice(line)), &tail);
        }
        (batch, tail)
    }

    #[test]
    fn frame_after_noise_is_recovered_and_the_noise_is_counted() {
        let frame: &[u8] = br#"{"jsonrpc":"2.0","id":1,"result":{"a":{"b":1}}}"#;
        let junk: [&[u8]; 6] = [
            b"\x1b]0;title\x07",
            b"\xEF\xBB\xBF",
            b"\xff\xfe\0",
            b"> {not json} { \"a\" ",
            b"info: {\"level\":1} ",
            b"{ \"",
        ];
        for junk in junk {
            let (batch, tail) = read(&[&[junk, frame].concat()]);
            assert_eq!(batch.frames.len(), 1, "{}", junk.escape_ascii());
            assert_eq!(batch.frames[0].bytes(), frame);
            assert_eq!((tail.noise(), batch.noise.unwrap().lines), (1, 1));
        }
    }

    #[test]
    fn invalid_frames_are_noise_and_the_first_line_is_reported() {
        let (batch, tail) = read(&[
            b"Loaded cached credentials.",
            br#"{"level":"info","msg":{"id":1,"result":2}}"#,
            br#"[{"id":1,"result":2}]"#,
            b"{",
            b"\xff\xff{\xff",
        ]);
        assert!(batch.frames.is_empty());
        let noise = batch.noise.unwrap();
        assert_eq!((noise.lines, noise.first.as_str()), (5, "Loaded cached credentials."));
        assert_eq!(tail.noise(), 5);
    }

    #[test]
    fn line_with_many_possible_frame_starts_is_cheap() {
        let (batch, _) = read(&[&b"{ \"".repeat(1 << 20)]);
        assert_eq!(batch.noise.unwrap().lines, 1);
    }

    #[test]
    fn oversized_line_is_counted_apart_from_other_noise() {
        let (mut batch, tail) = read(&[b"Loading"]);
        batch.add(Err(LineTooLong { size: 10, limit: 9, head: Bytes::new() }), &tail);
        let noise = batch.noise.unwrap();
        assert_eq!((noise.lines, noise.too_long), (2, 1));
    }
}
