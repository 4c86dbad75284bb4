//! The table agrees with the schemas of ACP and with itself.

use super::{Audience, Direction, Durability, Method, MethodKind, MethodStability};
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

/// The names of the methods that one of these specifications defines.
fn names(wanted: &[MethodStability]) -> BTreeSet<String> {
    let methods = Method::ALL.iter().filter(|it| wanted.contains(&it.row().stability));
    methods.map(|it| it.name().to_owned()).collect()
}

#[test]
fn table_has_the_methods_of_the_schema_and_no_others() {
    let stable: BTreeSet<_> = schema(STABLE).into_keys().collect();
    let unstable: BTreeSet<_> = schema(UNSTABLE).into_keys().collect();
    assert_eq!(names(&[MethodStability::Stable]), stable);
    assert_eq!(names(&[MethodStability::Stable, MethodStability::Unstable]), unstable);
    assert_eq!(names(&[MethodStability::Legacy]), BTreeSet::from(["session/set_model".to_owned()]));
    let ours = names(&[MethodStability::Ours]);
    assert!(ours.iter().all(|it| it.starts_with("_jackfield/")), "{ours:?}");
}

#[test]
fn direction_of_every_method_is_that_of_the_schema() {
    for (name, groups) in schema(UNSTABLE) {
        let direction = Method::from_name(&name).unwrap().row().direction;
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
fn audience_that_answers_receives_requests_only() {
    for method in Method::ALL {
        let row = method.row();
        match row.audience {
            Audience::Everyone | Audience::Driver => {
                assert_ne!(row.kind, MethodKind::Notification, "{method:?}");
            }
            Audience::Subscribers => assert_eq!(row.kind, MethodKind::Notification),
            Audience::Hub | Audience::Agent => assert_ne!(row.direction, Direction::ToClient),
        }
    }
}

#[test]
fn control_methods_are_not_journaled_as_messages() {
    for method in Method::ALL.iter().filter(|it| it.row().stability == MethodStability::Ours) {
        assert_eq!(method.row().durability, Durability::Passing, "{method:?}");
    }
}

#[test]
fn methods_are_found_by_their_whole_name() {
    for method in Method::ALL {
        assert_eq!(Method::from_name(method.name()), Some(*method));
    }
    assert_eq!(Method::from_name("session/prompts"), None);
}
