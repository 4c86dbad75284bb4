//! Stopping: the gateway answers all pending requests and closes all clients. Their turns continue
//! on the hosts, and the clients can reconnect through another gateway.

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
                self.send_error(conn, &id, &Fault::Stopping);
            }
            self.close_client(conn);
        }
        self.finish_stop();
    }

    pub(super) fn finish_stop(&mut self) {
        if self.stopping && self.clients.is_empty() {
            self.outputs.push_back(GatewayOutput::Stopped);
        }
    }
}
