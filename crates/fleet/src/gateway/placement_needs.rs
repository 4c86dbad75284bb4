//! Which hosts may own an existing session: those with the labels of the session and with its
//! directories. A directory of the same name on another host is a different directory, unless both
//! hosts list it as shared.

use super::config::{Host, HostId};
use jackfield_events::SessionSummary;
use std::path::{Component, Path, PathBuf};

/// What a session requires of its host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacementNeeds {
    pub labels: Vec<String>,
    /// `None` if unknown.
    pub dirs: Option<Vec<PathBuf>>,
    /// The host that owned it last.
    pub last_host: Option<HostId>,
}

impl PlacementNeeds {
    /// The needs of a session with this summary, which this host owned last.
    pub fn new(state: Option<&SessionSummary>, last_host: Option<HostId>) -> PlacementNeeds {
        let labels = state.map(SessionSummary::labels).unwrap_or_default();
        PlacementNeeds { labels, dirs: state.map(SessionSummary::dirs), last_host }
    }
}

impl Host {
    /// Processes that it may still start for this agent, or for a command of the client.
    pub(super) fn free_processes(&self, agent: Option<&str>) -> Option<usize> {
        let own = agent.and_then(|it| self.agents.get(it)).copied();
        own.into_iter().chain(self.free).min()
    }

    /// The first need that the host does not meet.
    pub fn unmet_need(&self, needs: &PlacementNeeds) -> Option<String> {
        if let Some(label) = needs.labels.iter().find(|it| !self.has_label(it)) {
            return Some(format!("lacks label `{label}`"));
        }
        if self.was_last_host(needs) {
            return None;
        }
        match &needs.dirs {
            None => Some("is not its last host, and its directories are unknown".to_owned()),
            Some(dirs) => {
                let dir = dirs.iter().find(|it| !self.shares_dir(it))?;
                Some(format!("does not share `{}`", dir.display()))
            }
        }
    }

    /// Whether it owned the session last, or no host did.
    pub fn was_last_host(&self, needs: &PlacementNeeds) -> bool {
        needs.last_host.as_ref().is_none_or(|it| *it == self.name)
    }

    pub(super) fn has_label(&self, label: &str) -> bool {
        match label.strip_prefix("host=") {
            Some(name) => *name == *self.name,
            None => self.labels.contains(label),
        }
    }

    fn shares_dir(&self, dir: &Path) -> bool {
        // Only the host itself can resolve `..`.
        let has_no_parent = !dir.components().any(|it| it == Component::ParentDir);
        has_no_parent && self.shared.iter().any(|it| dir.starts_with(it))
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

    /// The needs of a session that was on host `x`.
    fn needs(cwd: &str, params: &serde_json::Value) -> PlacementNeeds {
        let params = RawJson::trusted(params.to_string());
        let state = SessionSummary { cwd: cwd.to_owned(), params, ..SessionSummary::default() };
        PlacementNeeds::new(Some(&state), Some("x".into()))
    }

    #[test]
    fn session_stays_on_its_host_unless_its_directories_are_shared() {
        let unmet =
            |shared: &[&str], cwd: &str, params| host("y", shared).unmet_need(&needs(cwd, &params));
        assert_eq!(host("x", &[]).unmet_need(&needs("/srv/one", &json!({}))), None);
        assert_eq!(unmet(&[], "/srv/one", json!({})).unwrap(), "does not share `/srv/one`");
        assert_eq!(unmet(&["/data", "/srv"], "/srv/one", json!({})), None);
        assert_eq!(unmet(&["/"], "/srv/one", json!({})), None);
        assert!(unmet(&["/srv"], "/srv2/one", json!({})).is_some());
        assert!(unmet(&["/srv"], "/srv/../data", json!({})).is_some());
        assert!(unmet(&["/srv"], "srv/one", json!({})).is_some());
        let more = json!({ "additionalDirectories": ["/srv/two", "/data"] });
        assert_eq!(unmet(&["/srv"], "/srv/one", more).unwrap(), "does not share `/data`");
    }

    #[test]
    fn labels_of_a_session_always_apply() {
        let unmet = |label: &str| {
            let params = json!({ "_meta": { "jackfield": { "labels": [label] } } });
            host("y", &["/"]).unmet_need(&needs("/srv", &params))
        };
        assert_eq!((unmet("zone=a"), unmet("host=y")), (None, None));
        assert_eq!(unmet("zone=b").unwrap(), "lacks label `zone=b`");
        assert_eq!(unmet("host=x").unwrap(), "lacks label `host=x`");
    }

    #[test]
    fn session_with_unknown_needs_stays_on_its_last_host() {
        let unknown = |last_host: &str| PlacementNeeds::new(None, Some(last_host.into()));
        assert_eq!(host("x", &[]).unmet_need(&unknown("x")), None);
        assert!(host("y", &["/"]).unmet_need(&unknown("x")).is_some());
        assert_eq!(host("y", &[]).unmet_need(&PlacementNeeds::new(None, None)), None);
    }
}
