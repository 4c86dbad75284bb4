//! Requests that all hosts answer.

use super::{ClientConnection, RequestTarget, host_connection::SentRequest};
use crate::gateway::{
    context::GatewayTimer,
    frame_fields::parse_params,
    input::SessionPage,
    output::GatewayOutput,
    parts::GatewayParts,
    pending_merges::{MergedRequest, PendingMerge},
};
use jackfield_protocol::{Fault, Frame};

impl ClientConnection {
    pub(super) fn send_to_all_hosts(
        &mut self,
        parts: &mut GatewayParts,
        frame: &Frame,
        kind: MergedRequest,
    ) {
        let Some(id) = frame.id() else { return };
        self.register_request(parts, frame.clone(), RequestTarget::AllHosts);
        if kind == MergedRequest::Watch {
            self.start_watch();
        }
        let token = parts.cx.next_id();
        let mut merge = PendingMerge::new(self.conn, id, kind);
        if kind != MergedRequest::List {
            for host in parts.hosts.names() {
                let host_conn = self.connect_to(parts, &host);
                merge.await_host(host_conn, host);
                let sent = SentRequest::Merge(token);
                _ = self.relay.send_request(&mut parts.cx, host_conn, sent, frame);
            }
        }
        parts.merges.add_merge(token, merge);
        if kind.wants_page() {
            let params = parse_params(frame).filter(|_| kind == MergedRequest::List);
            let member = |name: &str| params.as_ref()?.get(name)?.as_str().map(str::to_owned);
            let (cursor, cwd) = (member("cursor"), member("cwd"));
            let tenant = self.tenant.name().cloned();
            parts.cx.push_output(GatewayOutput::ListSessions { token, cursor, cwd, tenant });
        }
        let due = parts.cx.now().plus(parts.cx.limits().merge_ms);
        parts.cx.set_timer(due, GatewayTimer::Merge(token));
        self.complete_merge(parts, token);
    }

    /// Changes a pending merge, and answers its request if nothing is missing then.
    pub(in crate::gateway) fn update_merge(
        &mut self,
        parts: &mut GatewayParts,
        token: u64,
        change: impl FnOnce(&mut PendingMerge),
    ) {
        if let Some(merge) = parts.merges.get_mut(token) {
            change(merge);
            self.complete_merge(parts, token);
        }
    }

    /// A page of all sessions.
    pub(in crate::gateway) fn on_sessions_listed(
        &mut self,
        parts: &mut GatewayParts,
        token: u64,
        page: Result<SessionPage, Fault>,
    ) {
        let page = page.map(|it| self.tenant.visible_sessions(it));
        self.update_merge(parts, token, |it| it.set_page(page));
    }

    /// Answers the request if nothing is missing.
    fn complete_merge(&mut self, parts: &mut GatewayParts, token: u64) {
        let Some(merge) = parts.merges.take_complete(token) else { return };
        let clients = parts.client_counts.count_visible_to(self.tenant.name());
        let is_watch = merge.kind() == MergedRequest::Watch;
        match merge.into_result(clients) {
            (id, Ok(result)) => {
                if is_watch {
                    self.on_watch_answered(parts, &result);
                }
                let answer = Frame::result_for(&id, &result.to_string());
                self.send_response(parts, &answer, None);
            }
            (id, Err(fault)) => self.send_error(parts, &id, &fault),
        }
    }
}
