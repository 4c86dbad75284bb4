//! A client that watches the lists of sessions and requests of all hosts.
//!
//! The gateway sends `_jackfield/watch` to every host, merges the answers, and forwards the changes that hosts report.
//! When hosts come or go it sends `restart`, and the client asks again.

use super::ClientConnection;
use crate::gateway::{
    config::HostId, context::GatewayTimer, host_connection_id::HostConnectionId,
    parts::GatewayParts,
};
use jackfield_protocol::{Frame, acp::Method};
use serde_json::{Value, json};

/// After this time the client asks again if a host did not answer.
const MISSING_HOST_WAIT_MS: u64 = 5_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum WatchState {
    #[default]
    Off,
    Watching,
    /// The client was asked to send its request again.
    Restarting,
}

impl ClientConnection {
    pub(super) fn start_watch(&mut self) {
        self.watch = WatchState::Watching;
    }

    /// The request of a watcher was answered. Hosts that did not answer are asked again later.
    pub(super) fn on_watch_answered(&mut self, parts: &mut GatewayParts, result: &Value) {
        if result["missing"].as_array().is_some_and(|it| !it.is_empty()) {
            let at = parts.cx.now().plus(MISSING_HOST_WAIT_MS);
            parts.cx.set_timer(at, GatewayTimer::RestartWatch(self.conn));
        }
    }

    /// Asks a watcher to send its request again, because the hosts have changed.
    pub(in crate::gateway) fn restart_watch(&mut self, parts: &mut GatewayParts) {
        if self.watch == WatchState::Watching {
            self.watch = WatchState::Restarting;
            let restart = json!({ "restart": true }).to_string();
            let notice = Frame::notification(Method::ControlChanges.name(), &restart);
            self.send_own_frame(parts, &notice);
        }
    }

    /// Forwards changes on a host. Each row names the host.
    pub(super) fn forward_changes(
        &mut self,
        parts: &mut GatewayParts,
        host_conn: HostConnectionId,
        host: &HostId,
        frame: &Frame,
    ) {
        let mut changes = frame.params_value();
        if changes["restart"] == true {
            return self.restart_watch(parts);
        }
        for name in ["sessions", "asks"] {
            let rows = changes.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten();
            for row in rows.filter_map(Value::as_object_mut) {
                row.insert("host".to_owned(), Value::from(&**host));
            }
        }
        let notice = Frame::notification(Method::ControlChanges.name(), &changes.to_string());
        self.relay.send_to_client(&mut parts.cx, notice.into_bytes(), Some(host_conn));
    }
}
