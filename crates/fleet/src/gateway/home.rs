//! Which hosts may have a session that is there already: those with the labels that it was opened with, and
//! with its directories. A directory of the same name is not the same directory. It is where the session was
//! before, and where hosts say that they share it.

use super::{Host, HostId};
use jackfield_events::SessionSummary;

use std::path::{Component, Path, PathBuf};

/// What a session needs of its host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacementNeeds {
    pub labels: Vec<String>,
    /// None, if nobody knows.
    pub dirs: Option<Vec<PathBuf>>,
    /// Who had it last.
    pub was_on: Option<HostId>,
}

impl PlacementNeeds {
    /// Of a session in this state, which this host had last.
    pub fn of(state: Option<&SessionSummary>, was_on: Option<HostId>) -> PlacementNeeds {
        let labels = state.map(SessionSummary::labels).unwrap_or_default();
        PlacementNeeds { labels, dirs: state.map(SessionSummary::dirs), was_on }
    }
}

impl Host {
    /// Processes that it may still start for this agent, or for a command of the client.
    pub(super) fn places(&self, agent: Option<&str>) -> Option<usize> {
        let own = agent.and_then(|it| self.agents.get(it)).copied();
        own.into_iter().chain(self.free).min()
    }

    /// What it does not have of that.
    pub fn lacks(&self, needs: &PlacementNeeds) -> Option<String> {
        if let Some(label) = needs.labels.iter().find(|it| !self.has(it)) {
            return Some(format!("is not `{label}`"));
        }
        if self.is_home(needs) {
            return None;
        }
        match &needs.dirs {
            None => Some("does not know what it needs".to_owned()),
            Some(dirs) => {
                let dir = dirs.iter().find(|it| !self.shares(it))?;
                Some(format!("does not share `{}`", dir.display()))
            }
        }
    }

    /// Whether it had the session last, or nobody did.
    pub fn is_home(&self, needs: &PlacementNeeds) -> bool {
        needs.was_on.as_ref().is_none_or(|it| *it == self.name)
    }

    pub(super) fn has(&self, label: &str) -> bool {
        match label.strip_prefix("host=") {
            Some(name) => *name == *self.name,
            None => self.labels.contains(label),
        }
    }

    fn shares(&self, dir: &Path) -> bool {
        // Where `..` leads only that machine can tell.
        let is_plain = !dir.components().any(|it| it == Component::ParentDir);
        is_plain && self.shared.iter().any(|it| dir.starts_with(it))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jackfield_events::RawJson;

    use serde_json::json;
    use std::collections::{BTreeMap, BTreeSet};

    fn host(name: &str, shared: &[&str]) -> Host {
        Host {
            name: name.into(),
            incarnation: 1,
            labels: BTreeSet::from(["zone=a".into()]),
            shared: shared.iter().map(PathBuf::from).collect(),
            agents: BTreeMap::new(),
            free: None,
            load: 0,
            sessions: 0,
            draining: false,
            tenants: BTreeMap::new(),
        }
    }

    /// Of a session that was on `x`.
    fn needs(cwd: &str, params: &serde_json::Value) -> PlacementNeeds {
        let params = RawJson::trusted(params.to_string());
        let state = SessionSummary { cwd: cwd.to_owned(), params, ..SessionSummary::default() };
        PlacementNeeds::of(Some(&state), Some("x".into()))
    }

    #[test]
    fn a_directory_is_where_it_was_and_where_it_is_shared() {
        let lack =
            |shared: &[&str], cwd: &str, params| host("y", shared).lacks(&needs(cwd, &params));
        assert_eq!(host("x", &[]).lacks(&needs("/srv/one", &json!({}))), None);
        assert_eq!(lack(&[], "/srv/one", json!({})).unwrap(), "does not share `/srv/one`");
        assert_eq!(lack(&["/data", "/srv"], "/srv/one", json!({})), None);
        assert_eq!(lack(&["/"], "/srv/one", json!({})), None);
        assert!(lack(&["/srv"], "/srv2/one", json!({})).is_some());
        assert!(lack(&["/srv"], "/srv/../data", json!({})).is_some());
        assert!(lack(&["/srv"], "srv/one", json!({})).is_some());
        let more = json!({ "additionalDirectories": ["/srv/two", "/data"] });
        assert_eq!(lack(&["/srv"], "/srv/one", more).unwrap(), "does not share `/data`");
    }

    #[test]
    fn labels_hold_for_as_long_as_the_session_lives() {
        let lack = |label: &str| {
            let params = json!({ "_meta": { "jackfield": { "labels": [label] } } });
            host("y", &["/"]).lacks(&needs("/srv", &params))
        };
        assert_eq!((lack("zone=a"), lack("host=y")), (None, None));
        assert_eq!(lack("zone=b").unwrap(), "is not `zone=b`");
        assert_eq!(lack("host=x").unwrap(), "is not `host=x`");
    }

    #[test]
    fn what_nobody_knows_is_left_to_whoever_had_it() {
        let unknown = |was_on: &str| PlacementNeeds::of(None, Some(was_on.into()));
        assert_eq!(host("x", &[]).lacks(&unknown("x")), None);
        assert!(host("y", &["/"]).lacks(&unknown("x")).is_some());
        assert_eq!(host("y", &[]).lacks(&PlacementNeeds::of(None, None)), None);
    }
}
