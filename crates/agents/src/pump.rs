//! Stdout of an agent: bytes to frames, in batches, at the pace of whoever takes them.

use crate::chunk;
use crate::event::{AgentEvent, Noise};
use crate::spec::Speaks;
use crate::stderr::Tail;
use bytes::Bytes;
use jackfield_wire::{Frame, LineSplitter, LineTooLong, Valve};
use std::future::poll_fn;
use std::io;
use std::mem;
use std::sync::Arc;
use std::task::ready;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::{mpsc, oneshot};

/// So many places in a line of noise may be tried for the start of a frame.
const STARTS_MAX: usize = 32;

pub(crate) struct Pump<K> {
    pub(crate) key: K,
    pub(crate) pipe: Receiver,
    pub(crate) splitter: LineSplitter,
    pub(crate) speaks: Speaks,
    pub(crate) events: mpsc::Sender<(K, AgentEvent)>,
    pub(crate) tail: Tail,
    pub(crate) valve: Arc<Valve>,
}

impl<K: Clone> Pump<K> {
    /// Until stdout ends, or the agent has ended and what it wrote is delivered. A full channel
    /// stops the reading, and then the kernel stops the agent.
    pub(crate) async fn run(self, mut ended: oneshot::Receiver<()>) {
        let Pump { key, mut pipe, mut splitter, speaks, events, tail, valve } = self;
        loop {
            let chunk = tokio::select! {
                biased;
                _ = &mut ended => break,
                chunk = next(&valve, &mut pipe) => chunk,
            };
            let Ok(Some(chunk)) = chunk else { break };
            if speaks == Speaks::Bytes {
                let _ = events.send((key.clone(), AgentEvent::Output(chunk))).await;
                continue;
            }
            let mut batch = Batch::of(speaks);
            splitter.push(chunk, &mut |line| batch.add(line, &tail));
            batch.deliver(&key, &events).await;
        }
        let mut batch = Batch::of(speaks);
        chunk::drain(&pipe, |chunk| match speaks {
            Speaks::Bytes => batch.bytes.push(chunk),
            _ => splitter.push(chunk, &mut |line| batch.add(line, &tail)),
        });
        splitter.finish(&mut |line| batch.add(line, &tail));
        batch.deliver(&key, &events).await;
    }
}

async fn next(valve: &Valve, pipe: &mut Receiver) -> io::Result<Option<Bytes>> {
    poll_fn(|cx| {
        ready!(valve.poll_open(cx));
        chunk::poll_read(pipe, cx)
    })
    .await
}

#[derive(Default)]
struct Batch {
    speaks: Speaks,
    /// What came before the frames.
    done: Vec<AgentEvent>,
    frames: Vec<Frame>,
    lines: Vec<Bytes>,
    bytes: Vec<Bytes>,
    noise: Option<Noise>,
}

impl Batch {
    fn of(speaks: Speaks) -> Batch {
        Batch { speaks, ..Batch::default() }
    }

    fn add(&mut self, line: Result<Bytes, LineTooLong>, tail: &Tail) {
        match line {
            Ok(line) if self.speaks == Speaks::Lines => self.lines.push(line),
            Ok(line) => match Frame::parse(line.clone()) {
                Ok(frame) => self.frames.push(frame),
                Err(_) => match recover(&line) {
                    Some((junk, frame)) => {
                        self.add_noise(&line[..junk], tail);
                        self.frames.push(frame);
                    }
                    None => drop(self.add_noise(&line, tail)),
                },
            },
            Err(too_long) => {
                self.add_noise(too_long.to_string().as_bytes(), tail).too_long += 1;
                if self.speaks == Speaks::Frames {
                    let before = mem::take(&mut self.frames);
                    self.done.extend((!before.is_empty()).then_some(AgentEvent::Frames(before)));
                    self.done.push(AgentEvent::Oversized(too_long));
                }
            }
        }
    }

    fn add_noise(&mut self, line: &[u8], tail: &Tail) -> &mut Noise {
        let first = tail.push_noise(line);
        let noise = self.noise.get_or_insert(Noise { first, ..Noise::default() });
        noise.lines += 1;
        noise
    }

    /// If nobody takes the events any more, there is nobody to tell.
    async fn deliver<K: Clone>(self, key: &K, events: &mpsc::Sender<(K, AgentEvent)>) {
        for event in self.done {
            let _ = events.send((key.clone(), event)).await;
        }
        if !self.frames.is_empty() {
            let _ = events.send((key.clone(), AgentEvent::Frames(self.frames))).await;
        }
        if !self.lines.is_empty() {
            let _ = events.send((key.clone(), AgentEvent::Lines(self.lines))).await;
        }
        for bytes in self.bytes {
            let _ = events.send((key.clone(), AgentEvent::Output(bytes))).await;
        }
        if let Some(noise) = self.noise {
            let _ = events.send((key.clone(), AgentEvent::Noise(noise))).await;
        }
    }
}

/// A frame behind escape codes, a prompt or a log line without its newline: the first `{` from
/// which the rest of the line is a frame. Returns the length of the junk before it, too.
fn recover(line: &Bytes) -> Option<(usize, Frame)> {
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
    use jackfield_wire::redact::Redactor;

    fn read(lines: &[&[u8]]) -> (Batch, Tail) {
        let tail = Tail::new(Redactor::default(), 1 << 14);
        let mut batch = Batch::default();
        for line in lines {
            batch.add(Ok(Bytes::copy_from_slice(line)), &tail);
        }
        (batch, tail)
    }

    #[test]
    fn a_frame_glued_behind_junk_is_recovered_and_the_junk_is_counted() {
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
    fn what_is_no_frame_is_noise_and_the_first_line_of_it_is_shown() {
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
    fn a_line_full_of_beginnings_costs_little() {
        let (batch, _) = read(&[&b"{ \"".repeat(1 << 20)]);
        assert_eq!(batch.noise.unwrap().lines, 1);
    }

    #[test]
    fn a_line_that_is_too_long_is_told_from_other_noise() {
        let (mut batch, tail) = read(&[b"Loading"]);
        batch.add(Err(LineTooLong { size: 10, limit: 9, head: Bytes::new() }), &tail);
        let noise = batch.noise.unwrap();
        assert_eq!((noise.lines, noise.too_long), (2, 1));
    }
}
