//! Reads an agent's stderr: its end is kept, and for a program that prints text each line is an event.

use crate::event::AgentProcessEvent;
use crate::output_tail::ProcessOutputTail;
use crate::pipe_reader;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::{mpsc, oneshot};

/// A longer line is delivered in parts.
const LINE_BYTES_MAX: usize = 64 << 10;

pub(crate) struct StderrReader<K> {
    pub(crate) key: K,
    pub(crate) pipe: Receiver,
    pub(crate) tail: ProcessOutputTail,
    /// Receives the lines, if they are wanted.
    pub(crate) events: Option<mpsc::Sender<(K, AgentProcessEvent)>>,
}

impl<K: Clone> StderrReader<K> {
    /// Runs until stderr ends, or until the agent has exited and its output is read.
    pub(crate) async fn run(mut self, mut ended: oneshot::Receiver<()>) {
        let mut unsent = Vec::new();
        loop {
            let chunk = tokio::select! {
                biased;
                _ = &mut ended => break,
                chunk = pipe_reader::read_chunk(&mut self.pipe) => chunk,
            };
            let Ok(Some(bytes)) = chunk else { break };
            self.tail.push(&bytes);
            if self.events.is_some() {
                unsent.extend_from_slice(&bytes);
                self.send_lines(&mut unsent).await;
            }
        }
        let (tail, wants_lines) = (&self.tail, self.events.is_some());
        pipe_reader::drain_pipe(&self.pipe, |bytes| {
            tail.push(&bytes);
            if wants_lines {
                unsent.extend_from_slice(&bytes);
            }
        });
        self.send(&unsent).await;
    }

    /// Sends the complete lines. The rest may end within a secret, so it waits.
    async fn send_lines(&self, unsent: &mut Vec<u8>) {
        let end = match unsent.iter().rposition(|it| *it == b'\n') {
            Some(last) => last + 1,
            None if LINE_BYTES_MAX < unsent.len() => unsent.len(),
            None => return,
        };
        let lines: Vec<u8> = unsent.drain(..end).collect();
        self.send(&lines).await;
    }

    async fn send(&self, lines: &[u8]) {
        if let Some(events) = self.events.as_ref().filter(|_| !lines.is_empty()) {
            let text = self.tail.redact(&String::from_utf8_lossy(lines));
            let _closed = events.send((self.key.clone(), AgentProcessEvent::Stderr(text))).await;
        }
    }
}
