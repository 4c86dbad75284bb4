//! Which host gets what no host has yet: by agent, labels, free places and load.

use super::{
    Gateway, GatewayNote, Host, HostConnectionId, HostId, Timer,
    client::{Client, To},
    key::ours_in,
    opening::Opening,
};
use jackfield_events::TenantName;
use jackfield_hub::{ConnId, SessionId};
use jackfield_protocol::acp::Method;
use jackfield_protocol::{Fault, Frame};
use serde_json::Value;
use std::collections::BTreeMap;

/// What a request wants of its host.
#[derive(Debug, Default)]
struct Wish {
    agent: Option<String>,
    labels: Vec<String>,
    /// Where a process may stand ready for it.
    near: Option<HostId>,
}

/// Why there is no host for it.
enum Nowhere {
    /// There may be one in a moment.
    Yet(&'static str),
    Ever(Fault),
}

impl Gateway {
    pub(super) fn on_hosts(&mut self, hosts: Vec<Host>) {
        let hosts: BTreeMap<HostId, Host> =
            hosts.into_iter().map(|it| (it.name.clone(), it)).collect();
        self.placed.update(&self.hosts, &hosts);
        self.hosts = hosts;
        let alive = |it: &HostId| self.hosts.get(it).map(|it| it.incarnation);
        let lost = self.host_conns.iter().filter_map(|(id, host_conn)| {
            // One that was opened to a host before it was listed may be to an earlier life of it.
            let now = alive(&host_conn.host);
            (host_conn.incarnation != now).then_some((*id, now.is_some()))
        });
        for (host_conn, again) in lost.collect::<Vec<_>>() {
            let why = if again { "the host was started again" } else { "the host has gone" };
            self.outputs.push_back(super::GatewayOutput::CloseHostConnection { host_conn });
            self.on_host_conn_gone(host_conn, why);
        }
        self.doubted.retain(|it| self.hosts.contains_key(it));
        let waiting = self.clients.iter().filter(|(_, it)| !it.unplaced.is_empty());
        for conn in waiting.map(|(conn, _)| *conn).collect::<Vec<_>>() {
            self.place_waiting(conn);
        }
    }

    /// Sends a request to a host that is chosen for it, or lets it wait for one.
    pub(super) fn place(&mut self, conn: ConnId, id: &str) {
        match self.try_place(conn, id) {
            Ok(()) => {}
            Err(Nowhere::Ever(fault)) => self.fail(conn, id, &fault),
            Err(Nowhere::Yet(_)) => self.wait_for_place(conn, id),
        }
    }

    fn wait_for_place(&mut self, conn: ConnId, id: &str) {
        let client = self.clients.get_mut(&conn).expect("the caller found it");
        let Some(open) = client.requests.get_mut(id) else { return };
        let since = *open.lost.get_or_insert(self.now);
        client.unplaced.push_back((id.into(), since));
        self.timers.set(since.plus(self.config.limits.lost_ms), Timer::Unplaced(conn));
    }

    /// Its host is lost: another is chosen, not at once, for the same one may be all there is.
    pub(super) fn place_again(&mut self, conn: ConnId, id: &str) {
        self.placed.remove(conn, id);
        self.wait_for_place(conn, id);
        self.timers.set(self.now.plus(self.config.limits.retry_ms), Timer::Place(conn));
    }

    pub(super) fn place_waiting(&mut self, conn: ConnId) {
        let Some(client) = self.clients.get_mut(&conn) else { return };
        for (id, since) in std::mem::take(&mut client.unplaced) {
            if self.clients.get(&conn).is_none_or(|it| !it.requests.contains_key(&id)) {
                continue;
            }
            match self.try_place(conn, &id) {
                Ok(()) => {}
                Err(Nowhere::Ever(fault)) => self.fail(conn, &id, &fault),
                Err(Nowhere::Yet(_)) => {
                    let client = self.clients.get_mut(&conn).expect("it waits");
                    client.unplaced.push_back((id, since));
                }
            }
        }
    }

    pub(super) fn on_unplaced_long(&mut self, conn: ConnId) {
        self.place_waiting(conn);
        let patience = self.config.limits.lost_ms;
        while let Some(client) = self.clients.get_mut(&conn)
            && let Some((id, since)) = client.unplaced.front().cloned()
        {
            if self.now < since.plus(patience) {
                return self.timers.set(since.plus(patience), Timer::Unplaced(conn));
            }
            client.unplaced.pop_front();
            let why = match self.try_place(conn, &id) {
                Ok(()) => continue,
                Err(Nowhere::Ever(fault)) => fault,
                Err(Nowhere::Yet(why)) => Fault::NoHost { why: why.to_owned() },
            };
            let told = why.to_string();
            self.note(GatewayNote::GaveUp { conn, session: None, why: told });
            self.fail(conn, &id, &why);
        }
    }

    fn try_place(&mut self, conn: ConnId, id: &str) -> Result<(), Nowhere> {
        let is_open = |conn: ConnId, request: &str| {
            self.clients.get(&conn).is_some_and(|it| it.requests.contains_key(request))
        };
        self.placed.remove_old(self.now, is_open);
        let client = &self.clients[&conn];
        let open = &client.requests[id];
        let (to, home) = (open.to.clone(), client.home);
        let host_conn = if let (To::Home | To::Opening, Some(home)) = (&to, home) {
            home
        } else {
            let wish = self.wish(client, &open.frame).map_err(Nowhere::Ever)?;
            let opens = open.frame.is_method(Method::SessionNew);
            if opens {
                self.may_have_more(conn).map_err(Nowhere::Ever)?;
            }
            let host = self.choose(&wish)?;
            if to == To::New {
                let tenant = self.tenant_name(conn).filter(|_| opens).map(TenantName::from);
                self.placed.add(host.clone(), tenant, (conn, id));
            }
            self.host_conn_to(conn, &host)
        };
        self.settle_at(conn, host_conn, &to);
        self.introduce(host_conn);
        match to {
            To::Opening => self.settle_opening(conn),
            _ => self.send(conn, id, host_conn),
        }
        Ok(())
    }

    /// Counts what an answer says about sessions that were opened or closed.
    pub(super) fn count_placed(&mut self, conn: ConnId, request: &Frame, answer: &Frame) {
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

    fn settle_at(&mut self, conn: ConnId, host_conn: HostConnectionId, to: &To) {
        let client = self.clients.get_mut(&conn).expect("the caller found it");
        client.opening.settled |= *to == To::New;
        // The first host that has to do with the client is its home.
        client.home.get_or_insert(host_conn);
    }

    fn wish(&self, client: &Client, frame: &Frame) -> Result<Wish, Fault> {
        let ours = ours_in(frame).and_then(|it| serde_json::from_str::<Value>(&it).ok());
        let ours = ours.unwrap_or_default();
        let labels = match &ours["labels"] {
            Value::Null => Some(Vec::new()),
            labels => serde_json::from_value::<Vec<String>>(labels.clone()).ok(),
        };
        let labels = labels.ok_or_else(|| Fault::InvalidParams {
            why: "`_meta.jackfield.labels` is no list of `key=value` strings".to_owned(),
        })?;
        let agent = match ours["agent"].as_str() {
            Some(name) => Some(name.to_owned()),
            None => self.agent_of(client),
        };
        let home = client.home.filter(|_| !client.opening.settled);
        Ok(Wish { agent, labels, near: home.map(|it| self.host_conns[&it].host.clone()) })
    }

    /// The agent that must be there for the client's sessions. A command line of the client's own
    /// may run anywhere.
    fn agent_of(&self, client: &Client) -> Option<String> {
        let connect = client.opening.frames[Opening::CONNECT].as_ref();
        let params = connect.and_then(|it| serde_json::from_str::<Value>(it.params()?).ok());
        match params.as_ref().map(|it| &it["agent"]) {
            Some(Value::String(name)) => Some(name.clone()),
            Some(Value::Object(_)) => None,
            _ => self.config.agent.as_deref().map(str::to_owned),
        }
    }

    fn choose(&self, wish: &Wish) -> Result<HostId, Nowhere> {
        let mut open = self.hosts.values().filter(|it| !it.draining).peekable();
        if open.peek().is_none() {
            return Err(Nowhere::Yet(if self.hosts.is_empty() {
                "no host has been seen; start one, or ask again when there is one"
            } else {
                "every host is being drained; ask again when there is another"
            }));
        }
        let fit = open.filter(|it| lacks(it, wish).is_none());
        let key = |it: &&Host| {
            let placed = self.placed.count_on(&it.name);
            let full = it.places(wish.agent.as_deref()).is_some_and(|free| free <= placed);
            let near = wish.near.as_ref() == Some(&it.name);
            (self.doubted.contains(&it.name), full, !near, it.load + placed, it.name.clone())
        };
        fit.min_by_key(key).map(|it| it.name.clone()).ok_or_else(|| {
            let open = self.hosts.values().filter(|it| !it.draining);
            let lacking = open.filter_map(|it| Some(format!("`{}` {}", it.name, lacks(it, wish)?)));
            let why = lacking.collect::<Vec<_>>().join(", ");
            Nowhere::Ever(Fault::NoHost { why })
        })
    }
}

/// What a host does not have of what is wanted.
fn lacks(host: &Host, wish: &Wish) -> Option<String> {
    if let Some(label) = wish.labels.iter().find(|it| !host.has(it)) {
        return Some(format!("is not `{label}`"));
    }
    let agent = wish.agent.as_deref().filter(|it| !host.agents.contains_key(*it))?;
    Some(format!("has no agent `{agent}`"))
}
