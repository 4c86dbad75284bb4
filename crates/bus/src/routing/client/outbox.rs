//! Flow control: a client that does not read is not read, and a worker that does not read slows its
//! clients. `slow_clients` decides which workers wait for a slow client, and for how long.

use super::{
    super::{
        config::UNSENT_BYTES_MAX, context::BusContext, ids::WorkerId, output::BusOutput,
        parts::BusParts,
    },
    Client,
};
use bytes::Bytes;
use jackfield_protocol::Frame;

impl Client {
    /// Sends a frame that the bus created.
    pub(in super::super) fn send_own_frame(&mut self, cx: &mut BusContext, frame: &Frame) {
        self.send_text(cx, frame.bytes().clone());
    }

    /// Sends a message of a worker, which waits if the client has too many unread bytes.
    pub(super) fn send_from_worker(&mut self, parts: &mut BusParts, worker: WorkerId, text: Bytes) {
        if self.send_text(&mut parts.cx, text) {
            self.hold_sender(parts, worker);
        }
    }

    /// Returns whether the client exceeds its limit.
    fn send_text(&mut self, cx: &mut BusContext, text: Bytes) -> bool {
        if self.closing {
            return false;
        }
        cx.count_sent(text.len());
        let unwritten = self.outbox.bytes() + text.len();
        if self.outbox.bytes() == 0 {
            self.last_read_at = cx.now();
        }
        self.outbox.resize(unwritten);
        let outbox_bytes_max = cx.limits().outbox_bytes_max;
        let is_over = outbox_bytes_max < unwritten || cx.outboxes().is_exceeded_by(unwritten);
        cx.push_output(BusOutput::SendToClient { conn: self.conn, text });
        if outbox_bytes_max / 2 < unwritten {
            self.update_pause(cx);
        }
        if is_over {
            self.set_timer(cx);
            cx.set_outbox_timer();
        }
        is_over
    }

    /// These bytes were written to the client.
    pub(in super::super) fn on_wrote(&mut self, parts: &mut BusParts, bytes: usize) {
        let cx = &mut parts.cx;
        let unwritten = self.outbox.bytes().saturating_sub(bytes);
        self.outbox.resize(unwritten);
        self.last_read_at = cx.now();
        if !self.held.is_empty()
            && unwritten < cx.limits().outbox_bytes_max / 2
            && !cx.outboxes().is_exceeded_by(unwritten)
        {
            self.release_workers(parts);
        }
        self.update_pause(&mut parts.cx);
    }

    /// These bytes of the client must be written to a worker.
    pub(super) fn on_queued_to_worker(&mut self, cx: &mut BusContext, bytes: usize) {
        self.unwritten_to_workers += bytes;
        if UNSENT_BYTES_MAX < self.unwritten_to_workers {
            self.update_pause(cx);
        }
    }

    /// These bytes of the client were written to a worker, or never will be.
    pub(super) fn on_written_to_worker(&mut self, cx: &mut BusContext, bytes: usize) {
        self.unwritten_to_workers -= bytes;
        if self.paused {
            self.update_pause(cx);
        }
    }

    /// Pauses or resumes reading the client, by the bytes that are not yet written to it and to its
    /// workers.
    fn update_pause(&mut self, cx: &mut BusContext) {
        let outbox_threshold = cx.limits().outbox_bytes_max / 2;
        let (unread, unsent) = (self.outbox.bytes(), self.unwritten_to_workers);
        if !self.paused && (outbox_threshold < unread || UNSENT_BYTES_MAX < unsent) {
            self.paused = true;
            cx.push_output(BusOutput::PauseClient { conn: self.conn });
        } else if self.paused && unread <= outbox_threshold / 2 && unsent <= UNSENT_BYTES_MAX / 2 {
            self.paused = false;
            cx.push_output(BusOutput::ResumeClient { conn: self.conn });
        }
    }

    #[cfg(test)]
    pub(in super::super) fn unread_bytes(&self) -> usize {
        self.outbox.bytes()
    }

    #[cfg(test)]
    pub(in super::super) fn set_unread_bytes(&mut self, bytes: usize) {
        self.outbox.resize(bytes);
    }
}
