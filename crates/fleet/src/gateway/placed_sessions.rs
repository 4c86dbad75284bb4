//! Sessions that this gateway has sent to hosts and that the reports of these hosts may not count yet.
//!
//! A host reports numbers, about once a second, and a report may have been on its way when a session was sent.
//! So a session is counted here until the number of its host has grown by it, or until it is closed through this
//! gateway. If the number never grows, because another session ended meanwhile, the session is dropped from this
//! list [`REPORTED_AFTER_MS`] after its answer.

use super::{
    config::{Host, HostId},
    frame_fields::session_of,
};
use jackfield_events::TenantName;
use jackfield_hub::{ConnId, SessionId, Time};
use jackfield_protocol::{Frame, acp::Method};
use std::collections::BTreeMap;

/// Hosts report changes within a second: this is several reports later.
const REPORTED_AFTER_MS: u64 = 5_000;

#[derive(Debug, Default)]
pub(super) struct PlacedSessions {
    /// In the order in which they were placed.
    sessions: Vec<PlacedSession>,
}

#[derive(Debug)]
struct PlacedSession {
    host: HostId,
    /// Only sessions that count for the quota of a tenant have one.
    tenant: Option<TenantName>,
    conn: ConnId,
    /// The id of the request that opens the session.
    request: Box<str>,
    session: Option<SessionId>,
    /// The request has no response yet.
    is_pending: bool,
    /// When the request was answered, or first seen to be gone.
    answered_at: Option<Time>,
}

impl PlacedSession {
    fn is_of(&self, conn: ConnId, request: &str) -> bool {
        self.conn == conn && *self.request == *request
    }
}

impl PlacedSessions {
    pub(super) fn add_session(
        &mut self,
        host: HostId,
        tenant: Option<TenantName>,
        (conn, request): (ConnId, &str),
    ) {
        self.sessions.push(PlacedSession {
            host,
            tenant,
            conn,
            request: request.into(),
            session: None,
            is_pending: true,
            answered_at: None,
        });
    }

    /// Applies a response that opened or closed a session.
    pub(super) fn apply_response(
        &mut self,
        conn: ConnId,
        request: &Frame,
        answer: &Frame,
        now: Time,
    ) {
        let Some(id) = request.id() else { return };
        match (request.known_method(), answer.result().and(session_of(answer))) {
            (Some(Method::SessionNew | Method::ControlImport), Some(opened)) => {
                self.set_opened((conn, id), opened, now);
            }
            (Some(Method::SessionNew | Method::ControlImport), None) => {
                self.remove_request(conn, id);
            }
            (Some(Method::SessionClose | Method::SessionDelete), _)
                if answer.result().is_some() =>
            {
                session_of(request).inspect(|it| self.remove_session(it));
            }
            _ => {}
        }
    }

    /// A request that opens a session was answered.
    pub(super) fn end_request(&mut self, conn: ConnId, request: &str) {
        for it in self.sessions.iter_mut().filter(|it| it.is_of(conn, request)) {
            it.is_pending = false;
        }
    }

    /// The client has disconnected, so none of its requests is pending.
    pub(super) fn end_requests_of(&mut self, conn: ConnId) {
        for it in self.sessions.iter_mut().filter(|it| it.conn == conn) {
            it.is_pending = false;
        }
    }

    /// The host has opened the session.
    fn set_opened(&mut self, (conn, request): (ConnId, &str), session: SessionId, now: Time) {
        if let Some(it) = self.sessions.iter_mut().rfind(|it| it.is_of(conn, request)) {
            (it.session, it.answered_at) = (Some(session), Some(now));
        }
    }

    /// Removes a session that its host did not open.
    pub(super) fn remove_request(&mut self, conn: ConnId, request: &str) {
        if let Some(at) = self.sessions.iter().rposition(|it| it.is_of(conn, request)) {
            self.sessions.remove(at);
        }
    }

    /// Removes a session that was closed.
    fn remove_session(&mut self, session: &SessionId) {
        self.sessions.retain(|it| it.session.as_ref() != Some(session));
    }

    pub(super) fn count_on(&self, host: &HostId) -> usize {
        self.sessions.iter().filter(|it| it.host == *host).count()
    }

    pub(super) fn count_of_tenant(&self, tenant: &str) -> usize {
        self.sessions.iter().filter(|it| it.tenant.as_deref() == Some(tenant)).count()
    }

    /// Removes the sessions that new reports count, and those of hosts that are gone or were started again.
    pub(super) fn apply_report(
        &mut self,
        before: &BTreeMap<HostId, Host>,
        after: &BTreeMap<HostId, Host>,
    ) {
        let is_same = |name: &HostId| {
            let (before, after) = (before.get(name), after.get(name));
            after.is_some_and(|it| before.is_none_or(|old| old.incarnation == it.incarnation))
        };
        self.sessions.retain(|it| is_same(&it.host));
        for (name, host) in after {
            let Some(old) = before.get(name) else { continue };
            // Not from the load, which grows for a session and for its agent.
            let mut others = host.sessions.saturating_sub(old.sessions);
            for (tenant, count) in &host.tenants {
                let grown = count.saturating_sub(old.tenants.get(tenant).copied().unwrap_or(0));
                self.remove_oldest(name, Some(tenant), grown);
                others = others.saturating_sub(grown);
            }
            self.remove_oldest(name, None, others);
        }
    }

    fn remove_oldest(&mut self, host: &HostId, tenant: Option<&TenantName>, mut count: usize) {
        self.sessions.retain(|it| {
            let is_counted = 0 < count && it.host == *host && it.tenant.as_ref() == tenant;
            count -= usize::from(is_counted);
            !is_counted
        });
    }

    /// Removes the sessions whose answers are so old that every report since counts them.
    pub(super) fn remove_old(&mut self, now: Time) {
        self.sessions.retain_mut(|it| {
            if it.answered_at.is_none() && !it.is_pending {
                it.answered_at = Some(now);
            }
            it.answered_at.is_none_or(|at| now < at.plus(REPORTED_AFTER_MS))
        });
    }
}
