//! The method table. To teach the hub a new method, add a row; nothing else names methods.

use Audience::{Agent, Driver, Everyone, Hub, Subscribers};
use Direction::{Both, ToAgent, ToClient};
use Durability::{Journaled, Passing};
use MethodKind::{Either, Notification, Request};
use Scope::{Connection, Pending, Session};

/// Which way a method travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    ToAgent,
    ToClient,
    Both,
}

/// Whether it wants an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MethodKind {
    Request,
    Notification,
    Either,
}

/// What its params name, and so where it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Nothing: it is about the connection or the agent as a whole.
    Connection,
    /// A session, by `sessionId`.
    Session,
    /// A request that waits for its answer, by `requestId`.
    Pending,
}

/// Who hears it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// The hub itself answers.
    Hub,
    Agent,
    /// Everyone attached to the session.
    Subscribers,
    /// Every attached client that can answer; the first answer wins.
    Everyone,
    /// The client whose prompt runs.
    Driver,
}

/// Whether it is written to the journal before anyone hears it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    Journaled,
    Passing,
}

/// What one method means to the hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Method {
    pub name: &'static str,
    pub direction: Direction,
    pub kind: MethodKind,
    pub scope: Scope,
    pub audience: Audience,
    pub durability: Durability,
    /// In the released schema, as opposed to the unstable one.
    pub stable: bool,
    /// In no schema any more, but alive in agents.
    pub legacy: bool,
}

impl Method {
    const fn unstable(mut self) -> Method {
        self.stable = false;
        self
    }

    const fn legacy(mut self) -> Method {
        self.stable = false;
        self.legacy = true;
        self
    }
}

/// Sorted by name.
///
/// Some rows say less than the protocol: `elicitation/create` names a session *or* a pending
/// request; `mcp/message` to the agent goes to the agent, of course; the methods of proxy chains
/// stand here so that the hub refuses them by name.
pub const METHODS: &[Method] = &[
    row("$/cancel_request", Both, Notification, Pending, Hub, Passing),
    row("auth/status", ToAgent, Request, Connection, Agent, Passing).unstable(),
    row("auth/status_update", ToClient, Notification, Connection, Subscribers, Passing).unstable(),
    row("authenticate", ToAgent, Request, Connection, Agent, Passing),
    row("elicitation/complete", ToClient, Notification, Connection, Subscribers, Passing),
    row("elicitation/create", ToClient, Request, Session, Everyone, Journaled),
    row("fs/read_text_file", ToClient, Request, Session, Driver, Passing),
    row("fs/write_text_file", ToClient, Request, Session, Driver, Passing),
    row("initialize", ToAgent, Request, Connection, Hub, Passing),
    row("logout", ToAgent, Request, Connection, Agent, Passing),
    row("mcp/message", Both, Either, Connection, Driver, Passing).unstable(),
    row("providers/disable", ToAgent, Request, Connection, Agent, Passing).unstable(),
    row("providers/list", ToAgent, Request, Connection, Agent, Passing).unstable(),
    row("providers/set", ToAgent, Request, Connection, Agent, Passing).unstable(),
    row("proxy/initialize", ToAgent, Request, Connection, Hub, Passing).unstable(),
    row("proxy/successor", Both, Either, Connection, Hub, Passing).unstable(),
    row("session/archive", ToAgent, Request, Session, Agent, Journaled).unstable(),
    row("session/cancel", ToAgent, Notification, Session, Agent, Journaled),
    row("session/close", ToAgent, Request, Session, Hub, Journaled),
    row("session/delete", ToAgent, Request, Session, Hub, Passing),
    row("session/fork", ToAgent, Request, Session, Hub, Journaled).unstable(),
    row("session/list", ToAgent, Request, Connection, Hub, Passing),
    row("session/load", ToAgent, Request, Session, Hub, Passing),
    row("session/new", ToAgent, Request, Connection, Hub, Journaled),
    row("session/prompt", ToAgent, Request, Session, Agent, Journaled),
    row("session/request_permission", ToClient, Request, Session, Everyone, Journaled),
    row("session/resume", ToAgent, Request, Session, Hub, Passing),
    row("session/set_config_option", ToAgent, Request, Session, Agent, Journaled),
    row("session/set_mode", ToAgent, Request, Session, Agent, Journaled),
    row("session/set_model", ToAgent, Request, Session, Agent, Journaled).legacy(),
    row("session/set_title", ToAgent, Request, Session, Agent, Journaled).unstable(),
    row("session/status", ToAgent, Request, Session, Agent, Passing).unstable(),
    row("session/unarchive", ToAgent, Request, Session, Agent, Journaled).unstable(),
    row("session/update", ToClient, Notification, Session, Subscribers, Journaled),
    row("terminal/create", ToClient, Request, Session, Driver, Passing),
    row("terminal/kill", ToClient, Request, Session, Driver, Passing),
    row("terminal/output", ToClient, Request, Session, Driver, Passing),
    row("terminal/release", ToClient, Request, Session, Driver, Passing),
    row("terminal/wait_for_exit", ToClient, Request, Session, Driver, Passing),
];

/// Looks a method up. One that is not there is the peers' own business: it is passed on.
pub fn method(name: &str) -> Option<&'static Method> {
    // Straight through: most rows differ in length already, and a search would compare long
    // common prefixes.
    METHODS.iter().find(|row| row.name == name)
}

const fn row(
    name: &'static str,
    direction: Direction,
    kind: MethodKind,
    scope: Scope,
    audience: Audience,
    durability: Durability,
) -> Method {
    Method { name, direction, kind, scope, audience, durability, stable: true, legacy: false }
}

#[cfg(test)]
mod tests {
    use super::{Audience, Direction, METHODS, Method, MethodKind, method};
    use serde_json::Value;
    use std::collections::{BTreeMap, BTreeSet};

    const STABLE: &str = include_str!("../../../../fixtures/acp/v1/meta.json");
    const UNSTABLE: &str = include_str!("../../../../fixtures/acp/v1/meta.unstable.json");

    /// Each method of a schema and the groups that list it.
    fn schema(meta: &str) -> BTreeMap<String, BTreeSet<String>> {
        let meta: Value = serde_json::from_str(meta).unwrap();
        let mut methods: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (group, names) in meta.as_object().unwrap() {
            for name in names.as_object().into_iter().flat_map(|names| names.values()) {
                let name = name.as_str().unwrap().to_owned();
                methods.entry(name).or_default().insert(group.clone());
            }
        }
        methods
    }

    fn names(wanted: impl Fn(&&Method) -> bool) -> BTreeSet<String> {
        METHODS.iter().filter(wanted).map(|row| row.name.to_owned()).collect()
    }

    #[test]
    fn the_table_is_sorted_and_unique() {
        assert!(METHODS.windows(2).all(|pair| pair[0].name < pair[1].name));
    }

    #[test]
    fn the_table_holds_the_methods_of_the_schema_and_no_others() {
        let stable: BTreeSet<_> = schema(STABLE).into_keys().collect();
        let unstable: BTreeSet<_> = schema(UNSTABLE).into_keys().collect();
        assert_eq!(names(|row| row.stable), stable);
        assert_eq!(names(|row| !row.legacy), unstable);
        assert_eq!(names(|row| row.legacy), BTreeSet::from(["session/set_model".to_owned()]));
    }

    #[test]
    fn every_method_travels_the_way_the_schema_says() {
        for (name, groups) in schema(UNSTABLE) {
            let direction = method(&name).unwrap().direction;
            let is = |group| groups.contains(group);
            let expected = match (is("agentMethods"), is("clientMethods")) {
                (true, false) => Direction::ToAgent,
                (false, true) => Direction::ToClient,
                (true, true) => Direction::Both,
                // The schema does not say for the protocol's own methods and for proxies.
                (false, false) => continue,
            };
            assert_eq!(direction, expected, "{name}");
        }
    }

    #[test]
    fn only_what_wants_an_answer_goes_to_those_who_answer() {
        for row in METHODS {
            match row.audience {
                Audience::Everyone | Audience::Driver => {
                    assert_ne!(row.kind, MethodKind::Notification, "{}", row.name);
                }
                Audience::Subscribers => assert_eq!(row.kind, MethodKind::Notification),
                Audience::Hub | Audience::Agent => assert_ne!(row.direction, Direction::ToClient),
            }
        }
    }

    #[test]
    fn a_method_is_found_by_its_whole_name() {
        for row in METHODS {
            assert_eq!(method(row.name), Some(row));
        }
        assert_eq!(method("session/prompts"), None);
        assert_eq!(method("_jackfield/attach"), None);
    }
}
