//! `_jackfield/move`: changes the order in which prompts wait. The new order is an event, so that it survives a restart.

use super::{Session, queue::not_waiting};
use crate::{ConnId, parts::HubParts};
use jackfield_events::{EventBody, QueueReordered};
use jackfield_protocol::{Fault, Frame};
use serde_json::Value;

/// A prompt, and the prompt that it is to run before; `None` for the end of the queue.
#[derive(Debug, Clone, Copy)]
struct QueueMove {
    prompt: u64,
    before: Option<u64>,
}

impl Session {
    /// Moves a prompt of any client. Prompts that will run and held prompts are ordered among themselves.
    pub(crate) fn move_queued_prompt(
        &mut self,
        parts: &mut HubParts,
        conn: ConnId,
        id: &str,
        frame: &Frame,
    ) -> Result<(), Fault> {
        let wanted = QueueMove::parse(frame)?;
        let QueueMove { prompt, before } = wanted;
        let mut named = std::iter::once(prompt).chain(before);
        if let Some(missing) = named.find(|it| self.waiting(*it).is_none()) {
            return Err(not_waiting(&self.id, missing));
        }
        if before.is_some_and(|it| self.is_queued(it) != self.is_queued(prompt)) {
            return Err(refuse("run the held prompt first: only then it has a place in the queue"));
        }
        parts.storage.require_working()?;
        let mut queued: Vec<u64> = self.queue.iter().filter_map(|it| it.number).collect();
        let mut held: Vec<u64> = self.held().map(|(number, _)| number).collect();
        let old_order = [&queued[..], &held[..]].concat();
        wanted.apply(if self.is_queued(prompt) { &mut queued } else { &mut held });
        let order = [queued, held].concat();
        if order != old_order {
            self.apply_to_queue(wanted);
            let by = parts.clients.describe_client(conn);
            let reordered = QueueReordered { prompt, by, order };
            self.append_event(&mut parts.cx, EventBody::Reordered(reordered));
        }
        self.answer_after_log(parts, conn, &Frame::result_for(id, "{}"));
        Ok(())
    }

    /// Moves a prompt that will run. It counts as steering if it is placed before one that steers, so that those which
    /// steer stay together in front.
    fn apply_to_queue(&mut self, QueueMove { prompt, before }: QueueMove) {
        let Some(from) = self.queue.iter().position(|it| it.number == Some(prompt)) else { return };
        let Some(mut moved) = self.queue.remove(from) else { return };
        let to = before.and_then(|it| self.queue.iter().position(|other| other.number == Some(it)));
        let to = to.unwrap_or(self.queue.len());
        moved.steers = self.queue.get(to).is_some_and(|it| it.steers);
        self.queue.insert(to, moved);
    }
}

impl QueueMove {
    fn parse(frame: &Frame) -> Result<QueueMove, Fault> {
        let params = frame.params_value();
        let prompt = params.get("prompt").and_then(Value::as_u64);
        let prompt = prompt.ok_or_else(|| refuse("`prompt` must be a number"))?;
        let before = match params.get("before") {
            None | Some(Value::Null) => None,
            Some(before) => {
                let why = "`before` must be the number of a prompt, or null for the end";
                Some(before.as_u64().ok_or_else(|| refuse(why))?)
            }
        };
        if before == Some(prompt) {
            return Err(refuse("a prompt cannot be moved before itself"));
        }
        Ok(QueueMove { prompt, before })
    }

    fn apply(self, numbers: &mut Vec<u64>) {
        numbers.retain(|it| *it != self.prompt);
        let at = self.before.and_then(|before| numbers.iter().position(|it| *it == before));
        numbers.insert(at.unwrap_or(numbers.len()), self.prompt);
    }
}

fn refuse(why: &str) -> Fault {
    Fault::InvalidParams { why: why.into() }
}
