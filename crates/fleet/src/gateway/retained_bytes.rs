//! Limits the bytes that the gateway retains: pending requests, and messages that wait for the
//! owner of a session.

use super::config::{GatewayLimits, RETAINED_BYTES_MIN};
use jackfield_hub::ConnId;
use jackfield_protocol::{Fault, Frame};
use std::collections::BTreeMap;

/// Retained bytes of each client and of all clients.
#[derive(Debug, Default)]
pub(super) struct RetainedBytes {
    by_client: BTreeMap<ConnId, usize>,
    total: usize,
}

impl RetainedBytes {
    /// Checks the limits before a frame is retained.
    pub(super) fn check_frame(
        &self,
        limits: &GatewayLimits,
        conn: ConnId,
        frame: &Frame,
    ) -> Result<(), Fault> {
        let own = self.by_client.get(&conn).copied().unwrap_or(0);
        let wanted = own + frame.bytes().len();
        if 0 < own && limits.retained_bytes_max < wanted {
            let what = format!("{own} bytes of this client wait for a response; wait for one");
            return Err(Fault::Overloaded { what });
        }
        if wanted <= RETAINED_BYTES_MIN {
            return Ok(());
        }
        let all = self.total;
        if 0 < all && limits.retained_bytes_total_max < all + frame.bytes().len() {
            let what = format!("{all} bytes of all clients wait for a response; try again later");
            return Err(Fault::Overloaded { what });
        }
        Ok(())
    }

    pub(super) fn retain_frame(&mut self, conn: ConnId, frame: &Frame) {
        *self.by_client.entry(conn).or_default() += frame.bytes().len();
        self.total += frame.bytes().len();
    }

    pub(super) fn release_frame(&mut self, conn: ConnId, frame: &Frame) {
        if let Some(own) = self.by_client.get_mut(&conn) {
            *own -= frame.bytes().len();
            self.total -= frame.bytes().len();
        }
    }

    pub(super) fn release_client(&mut self, conn: ConnId) {
        self.total -= self.by_client.remove(&conn).unwrap_or(0);
    }

    pub(super) fn total(&self) -> usize {
        self.total
    }
}
