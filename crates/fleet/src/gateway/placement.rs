//! Chooses hosts for new sessions by agent, labels, free processes and load.

use super::{
    Gateway, GatewayNote, Host, HostConnectionId, HostId, Timer,
    client::{Client, RequestTarget},
    handshake::Handshake,
    key::jackfield_meta,
};
use jackfield_events::TenantName;
use jackfield_hub::{ConnId, SessionId};
use jackfield_protocol::acp::Method;
use jackfield_protocol::{Fault, Frame};
use serde_json::Value;
use std::collections::BTreeMap;

/// What a request requires of its host.
#[derive(Debug, Default)]
struct PlacementRequest {
    agent: Option<String>,
    labels: Vec<String>,
    /// The client's default host, which may have started an agent for it.
    preferred_host: Option<HostId>,
}

/// Why no host was chosen.
enum PlacementError {
    /// A host may become available.
    Temporary(&'static str),
    Permanent(Fault),
}

impl Gateway {
    pub(super) fn on_hosts(&mut self, hosts: Vec<Host>) {
        let hosts: BTreeMap<HostId, Host> =
            hosts.into_iter().map(|it| (it.name.clone(), it)).collect();
        self.placed.update(&self.hosts, &hosts);
        self.hosts = hosts;
        let incarnation_of = |it: &HostId| self.hosts.get(it).map(|it| it.incarnation);
        let lost_conns = self.host_conns.iter().filter_map(|(id, host_conn)| {
            // A connection that was opened before its host was listed may be to an earlier
            // incarnation.
            let now = incarnation_of(&host_conn.host);
            (host_conn.incarnation != now).then_some((*id, now.is_some()))
        });
        for (host_conn, is_restarted) in lost_conns.collect::<Vec<_>>() {
            let reason = if is_restarted { "the host was restarted" } else { "the host is gone" };
            self.outputs.push_back(super::GatewayOutput::CloseHostConnection { host_conn });
            self.on_host_conn_gone(host_conn, reason);
        }
        self.suspect_hosts.retain(|it| self.hosts.contains_key(it));
        let waiting = self.clients.iter().filter(|(_, it)| !it.unplaced.is_empty());
        for conn in waiting.map(|(conn, _)| *conn).collect::<Vec<_>>() {
            self.place_queued(conn);
        }
    }

    /// Sends a request to a chosen host, or queues it until one is available.
    pub(super) fn place_request(&mut self, conn: ConnId, id: &str) {
        match self.try_place(conn, id) {
            Ok(()) => {}
            Err(PlacementError::Permanent(fault)) => self.send_error(conn, id, &fault),
            Err(PlacementError::Temporary(_)) => self.queue_for_placement(conn, id),
        }
    }

    fn queue_for_placement(&mut self, conn: ConnId, id: &str) {
        let client = self.clients.get_mut(&conn).expect("the caller found it");
        let Some(request) = client.requests.get_mut(id) else { return };
        let since = *request.waiting_since.get_or_insert(self.now);
        client.unplaced.push_back((id.into(), since));
        self.timers.set(since.plus(self.config.limits.owner_wait_ms), Timer::PlacementWait(conn));
    }

    /// The host of a request is lost: chooses another after a delay, since the same one may be the
    /// only one.
    pub(super) fn retry_placement(&mut self, conn: ConnId, id: &str) {
        self.placed.remove(conn, id);
        self.queue_for_placement(conn, id);
        self.timers.set(self.now.plus(self.config.limits.retry_ms), Timer::RetryPlacement(conn));
    }

    pub(super) fn place_queued(&mut self, conn: ConnId) {
        let Some(client) = self.clients.get_mut(&conn) else { return };
        for (id, since) in std::mem::take(&mut client.unplaced) {
            if self.clients.get(&conn).is_none_or(|it| !it.requests.contains_key(&id)) {
                continue;
            }
            match self.try_place(conn, &id) {
                Ok(()) => {}
                Err(PlacementError::Permanent(fault)) => self.send_error(conn, &id, &fault),
                Err(PlacementError::Temporary(_)) => {
                    let client = self.clients.get_mut(&conn).expect("it waits for a host");
                    client.unplaced.push_back((id, since));
                }
            }
        }
    }

    pub(super) fn expire_unplaced(&mut self, conn: ConnId) {
        self.place_queued(conn);
        let owner_wait_ms = self.config.limits.owner_wait_ms;
        while let Some(client) = self.clients.get_mut(&conn)
            && let Some((id, since)) = client.unplaced.front().cloned()
        {
            if self.now < since.plus(owner_wait_ms) {
                return self.timers.set(since.plus(owner_wait_ms), Timer::PlacementWait(conn));
            }
            client.unplaced.pop_front();
            let why = match self.try_place(conn, &id) {
                Ok(()) => continue,
                Err(PlacementError::Permanent(fault)) => fault,
                Err(PlacementError::Temporary(why)) => Fault::NoHost { why: why.to_owned() },
            };
            let reason = why.to_string();
            self.note(GatewayNote::GaveUp { conn, session: None, reason });
            self.send_error(conn, &id, &why);
        }
    }

    fn try_place(&mut self, conn: ConnId, id: &str) -> Result<(), PlacementError> {
        let is_open = |conn: ConnId, request: &str| {
            self.clients.get(&conn).is_some_and(|it| it.requests.contains_key(request))
        };
        self.placed.remove_old(self.now, is_open);
        let client = &self.clients[&conn];
        let request = &client.requests[id];
        let (target, default_host_conn) = (request.target.clone(), client.default_host_conn);
        let host_conn = if let (
            RequestTarget::DefaultHost | RequestTarget::Handshake,
            Some(default_host_conn),
        ) = (&target, default_host_conn)
        {
            default_host_conn
        } else {
            let placement =
                self.parse_placement(client, &request.frame).map_err(PlacementError::Permanent)?;
            let opens_session = request.frame.is_method(Method::SessionNew);
            if opens_session {
                self.check_session_quota(conn).map_err(PlacementError::Permanent)?;
            }
            let host = self.choose_host(&placement)?;
            if target == RequestTarget::NewSession {
                let tenant = self.tenant_name(conn).filter(|_| opens_session).map(TenantName::from);
                self.placed.add(host.clone(), tenant, (conn, id));
            }
            self.host_conn_to(conn, &host)
        };
        self.set_default_host(conn, host_conn, &target);
        self.send_handshake(host_conn);
        match target {
            RequestTarget::Handshake => self.answer_handshake(conn),
            _ => self.send_request(conn, id, host_conn),
        }
        Ok(())
    }

    /// Updates the placed sessions from a response that opened or closed a session.
    pub(super) fn update_placed(&mut self, conn: ConnId, request: &Frame, answer: &Frame) {
        let id = request.id().expect("a request has an id");
        let session = |frame: &Frame| frame.session_id().map(|it| SessionId::from(&*it));
        match (request.known_method(), answer.result().and(session(answer))) {
            (Some(Method::SessionNew | Method::ControlImport), Some(opened)) => {
                self.placed.set_opened((conn, id), opened, self.now);
            }
            (Some(Method::SessionNew | Method::ControlImport), None) => {
                self.placed.remove(conn, id);
            }
            (Some(Method::SessionClose | Method::SessionDelete), _)
                if answer.result().is_some() =>
            {
                session(request).inspect(|it| self.placed.remove_session(it));
            }
            _ => {}
        }
    }

    fn set_default_host(
        &mut self,
        conn: ConnId,
        host_conn: HostConnectionId,
        target: &RequestTarget,
    ) {
        let client = self.clients.get_mut(&conn).expect("the caller found it");
        client.handshake.has_opened_session |= *target == RequestTarget::NewSession;
        // The first host that serves the client becomes its default host.
        client.default_host_conn.get_or_insert(host_conn);
    }

    fn parse_placement(&self, client: &Client, frame: &Frame) -> Result<PlacementRequest, Fault> {
        let meta = jackfield_meta(frame).and_then(|it| serde_json::from_str::<Value>(&it).ok());
        let meta = meta.unwrap_or_default();
        let labels = match &meta["labels"] {
            Value::Null => Some(Vec::new()),
            labels => serde_json::from_value::<Vec<String>>(labels.clone()).ok(),
        };
        let labels = labels.ok_or_else(|| Fault::InvalidParams {
            why: "`_meta.jackfield.labels` is not a list of `key=value` strings".to_owned(),
        })?;
        let agent = match meta["agent"].as_str() {
            Some(name) => Some(name.to_owned()),
            None => self.required_agent(client),
        };
        let default_host_conn =
            client.default_host_conn.filter(|_| !client.handshake.has_opened_session);
        Ok(PlacementRequest {
            agent,
            labels,
            preferred_host: default_host_conn.map(|it| self.host_conns[&it].host.clone()),
        })
    }

    /// The agent that a host must have for the client's sessions. A command line of the client may
    /// run on any host.
    fn required_agent(&self, client: &Client) -> Option<String> {
        let connect = client.handshake.frames[Handshake::CONNECT].as_ref();
        let params = connect.and_then(|it| serde_json::from_str::<Value>(it.params()?).ok());
        match params.as_ref().map(|it| &it["agent"]) {
            Some(Value::String(name)) => Some(name.clone()),
            Some(Value::Object(_)) => None,
            _ => self.config.agent.as_deref().map(str::to_owned),
        }
    }

    fn choose_host(&self, placement: &PlacementRequest) -> Result<HostId, PlacementError> {
        let mut request = self.hosts.values().filter(|it| !it.draining).peekable();
        if request.peek().is_none() {
            return Err(PlacementError::Temporary(if self.hosts.is_empty() {
                "no host is online; start one and try again"
            } else {
                "every host is draining; start another and try again"
            }));
        }
        let eligible = request.filter(|it| unmet_requirement(it, placement).is_none());
        let key = |it: &&Host| {
            let placed = self.placed.count_on(&it.name);
            let full =
                it.free_processes(placement.agent.as_deref()).is_some_and(|free| free <= placed);
            let preferred_host = placement.preferred_host.as_ref() == Some(&it.name);
            (
                self.suspect_hosts.contains(&it.name),
                full,
                !preferred_host,
                it.load + placed,
                it.name.clone(),
            )
        };
        eligible.min_by_key(key).map(|it| it.name.clone()).ok_or_else(|| {
            let request = self.hosts.values().filter(|it| !it.draining);
            let unmet = request.filter_map(|it| {
                Some(format!("`{}` {}", it.name, unmet_requirement(it, placement)?))
            });
            let why = unmet.collect::<Vec<_>>().join(", ");
            PlacementError::Permanent(Fault::NoHost { why })
        })
    }
}

/// What a host does not have of what is wanted.
fn unmet_requirement(host: &Host, placement: &PlacementRequest) -> Option<String> {
    if let Some(label) = placement.labels.iter().find(|it| !host.has_label(it)) {
        return Some(format!("lacks label `{label}`"));
    }
    let agent = placement.agent.as_deref().filter(|it| !host.agents.contains_key(*it))?;
    Some(format!("has no agent `{agent}`"))
}
