//! Bugs of tenants: each lets one know of, touch or have what is not its own.

use super::bugs::{Bug, edit};

const CLIENT: &str = "crates/core/src/tenant/client.rs";
const QUOTA: &str = "crates/core/src/tenant/quota.rs";
const PEER: &str = "crates/core/src/peer/client.rs";
const FORK: &str = "crates/core/src/session/fork.rs";
const SEATS: &str = "crates/core/src/agent/seats.rs";
const GATEWAY: &str = "crates/core/src/gateway/tenant.rs";
const LEG: &str = "crates/core/src/gateway/leg.rs";

pub(super) const TENANT_BUGS: &[Bug] = &[
    Bug {
        name: "attach-to-what-is-foreign",
        breaks: "who knows the name of a session hears it",
        edits: &[edit(
            CLIENT,
            "let Some(named) = frame.session_id().filter(|it| !self.knows_of(conn, it)) {",
            "let Some(named) = frame.session_id().filter(|it| {\n            \
             frame.method().as_deref() != Some(\"_jackfield/attach\") && !self.knows_of(conn, it)\n        }) {",
        )],
    },
    Bug {
        name: "list-what-is-foreign",
        breaks: "lists have the sessions of every tenant",
        edits: &[edit(
            QUOTA,
            "known_to(self.tenant_name(conn), &self.sessions).filter(",
            "known_to(self.tenant_name(conn).filter(|_| false), &self.sessions).filter(",
        )],
    },
    Bug {
        name: "cancel-what-is-foreign",
        breaks: "a notification is not held against the tenant of its client",
        edits: &[edit(PEER, "if self.may_ask(conn, frame).is_err() || ", "if ")],
    },
    Bug {
        name: "a-fork-is-nobodys",
        breaks: "who forks a session is answered with one that is not its tenant's",
        edits: &[edit(
            FORK,
            "self.new_name(tenant_of(&from))",
            "self.new_name(tenant_of(&from).filter(|_| false))",
        )],
    },
    Bug {
        name: "tenants-share-a-process",
        breaks: "sessions of two tenants are served by one process",
        edits: &[edit(
            SEATS,
            "room && alike && self.tenant_of_agent(it) == tenant",
            "room && alike && (self.tenant_of_agent(it) == tenant || true)",
        )],
    },
    Bug {
        name: "one-more-than-the-quota",
        breaks: "a tenant has one session or agent more than it may",
        edits: &[edit(QUOTA, "    if now < max {", "    if now <= max {")],
    },
    Bug {
        name: "a-wake-is-no-session",
        breaks: "sessions that sleep are woken beyond the quota",
        edits: &[edit(
            "crates/core/src/session/wake.rs",
            "if let Err(fault) = self.may_be_awake(tenant_of(id)) {",
            "if let Err(fault) = self.may_be_awake(tenant_of(id).filter(|_| false)) {",
        )],
    },
    Bug {
        name: "gateway-lists-what-is-foreign",
        breaks: "a page has the sessions of every tenant",
        edits: &[edit(
            GATEWAY,
            "page.sessions.retain(|it| is_known_to(",
            "page.sessions.retain(|it| true || is_known_to(",
        )],
    },
    Bug {
        name: "gateway-carries-what-is-foreign",
        breaks: "a host is asked about a session of somebody else",
        edits: &[edit(
            GATEWAY,
            "Some(named) if !is_known_to(",
            "Some(named) if false && !is_known_to(",
        )],
    },
    Bug {
        name: "gateway-forgets-whose-leg-it-is",
        breaks: "the second leg of a client is the operator's",
        edits: &[edit(
            LEG,
            "if let Some((_, binding)) = &self.clients[&conn].tenant {",
            "if let Some((_, binding)) = self.clients[&conn].tenant.as_ref().filter(|_| self.clients[&conn].legs.len() < 2) {",
        )],
    },
];
