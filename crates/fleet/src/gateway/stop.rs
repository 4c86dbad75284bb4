//! Stopping: everybody is told and hung up on. Their turns run on at the hosts, and whoever comes
//! back to another gateway finds them.

use super::{Gateway, GatewayOutput};
use jackfield_hub::ConnId;
use jackfield_protocol::Fault;

impl Gateway {
    pub(super) fn on_stop(&mut self) {
        if std::mem::replace(&mut self.stopping, true) {
            return;
        }
        let conns: Vec<ConnId> = self.clients.keys().copied().collect();
        for conn in conns {
            let ids: Vec<Box<str>> = self.clients[&conn].requests.keys().cloned().collect();
            for id in ids {
                self.fail(conn, &id, &Fault::Stopping);
            }
            self.hang_up(conn);
        }
        self.stop_if_left();
    }

    pub(super) fn stop_if_left(&mut self) {
        if self.stopping && self.clients.is_empty() {
            self.outputs.push_back(GatewayOutput::Stopped);
        }
    }
}
