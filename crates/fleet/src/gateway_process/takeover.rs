//! Which hosts may take over a session that no host owns, in which order, and why none may.

use super::to_gateway_host;
use crate::gateway::PlacementNeeds;
use crate::{HostEntry, HostInstance};
use jackfield_events::SessionSummary;
use jackfield_hub::rfc3339;
use jackfield_journal::LastWriter;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The number of hosts in an error text for which the reason is given.
const REASONS_MAX: usize = 3;

/// The placement needs of a session, given its last writer.
pub fn placement_needs(state: Option<&SessionSummary>, writer: &LastWriter) -> PlacementNeeds {
    let last_host = writer.name.as_deref().and_then(HostInstance::parse);
    PlacementNeeds::new(state, last_host.map(|it| it.name.into()))
}

/// How long a session that a host was asked to adopt is counted here. Hosts report once a second,
/// and gateways read the reports once a second.
const REPORTED_AFTER: Duration = Duration::from_secs(3);

/// Sessions that hosts were asked to adopt and that the reports of these hosts may not include yet.
/// Without it, all sessions that a draining host releases at once would go to the same host.
#[derive(Debug, Default)]
pub(crate) struct RecentAdoptions(Vec<(Instant, HostInstance)>);

impl RecentAdoptions {
    pub(crate) fn add(&mut self, host: &HostInstance) {
        self.0.push((Instant::now(), host.clone()));
    }

    /// The host did not adopt the session.
    pub(crate) fn remove(&mut self, host: &HostInstance) {
        if let Some(at) = self.0.iter().rposition(|(_, it)| it == host) {
            self.0.remove(at);
        }
    }

    pub(crate) fn remove_old(&mut self) {
        self.0.retain(|(since, _)| since.elapsed() < REPORTED_AFTER);
    }

    fn count_on(&self, host: &HostInstance) -> usize {
        self.0.iter().filter(|(_, it)| it == host).count()
    }
}

/// The best candidate first: hosts that have the agent, have free processes, owned the session last
/// (its agent may have left files there), and have a low load.
pub(crate) fn takeover_candidates(
    hosts: &[HostEntry],
    state: Option<&SessionSummary>,
    needs: &PlacementNeeds,
    avoid: Option<&str>,
    recent: &RecentAdoptions,
) -> Vec<HostInstance> {
    let has_agent = |it: &HostEntry| {
        state.is_none_or(|state| {
            !state.argv.is_empty() || it.agents.iter().any(|agent| **agent == *state.agent)
        })
    };
    let mut candidates: Vec<&HostEntry> = hosts
        .iter()
        .filter(|it| !it.draining && to_gateway_host(it).unmet_need(needs).is_none())
        .collect();
    candidates.sort_by_key(|it| {
        let is_avoided = avoid == Some(&*it.host.name);
        let was_last_host = needs.last_host.as_deref() == Some(&*it.host.name);
        let recent = recent.count_on(&it.host);
        let is_full = it.free.is_some_and(|free| free as usize <= recent);
        (is_avoided, !has_agent(it), is_full, !was_last_host, to_gateway_host(it).load + recent)
    });
    candidates.into_iter().map(|it| it.host.clone()).collect()
}

/// The host that owned the session last, if it is not online.
pub(crate) fn offline_last_host<'a>(
    hosts: &[HostEntry],
    needs: &'a PlacementNeeds,
) -> Option<&'a str> {
    let name = needs.last_host.as_deref()?;
    hosts.iter().all(|it| *it.host.name != *name).then_some(name)
}

/// Why no host may adopt the session. `last_renewal` is the last lease renewal of its last host.
pub(crate) fn describe_no_candidate(
    hosts: &[HostEntry],
    needs: &PlacementNeeds,
    last_renewal: Option<SystemTime>,
) -> String {
    let last_host_state = needs.last_host.as_ref().and_then(|name| {
        match hosts.iter().find(|it| *it.host.name == **name) {
            Some(it) if it.draining => Some(format!("its last host `{name}` is draining")),
            Some(_) => None,
            None => {
                let since = last_renewal.and_then(|it| it.duration_since(UNIX_EPOCH).ok());
                let since = since.and_then(|it| u64::try_from(it.as_millis()).ok());
                let since = since.map(|it| format!(" since {}", rfc3339(it))).unwrap_or_default();
                Some(format!("its host `{name}` is away{since}"))
            }
        }
    });
    let open = hosts.iter().filter(|it| !it.draining);
    let unmet = open.filter_map(|it| {
        Some(format!("`{}` {}", it.host.name, to_gateway_host(it).unmet_need(needs)?))
    });
    let why: Vec<_> = last_host_state.into_iter().chain(unmet.take(REASONS_MAX)).collect();
    if why.is_empty() { "no host is online".to_owned() } else { why.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn host(name: &str, shared: &[&str], live: u32) -> HostEntry {
        HostEntry {
            host: HostInstance { name: name.into(), incarnation: "1".into() },
            version: String::new(),
            labels: BTreeMap::new(),
            shared: shared.iter().map(Into::into).collect(),
            agents: vec!["echo".to_owned()],
            free: None,
            sessions: 0,
            live,
            tenants: BTreeMap::new(),
            draining: false,
            gone: false,
        }
    }

    fn names(
        hosts: &[HostEntry],
        state: &SessionSummary,
        needs: &PlacementNeeds,
        avoid: Option<&str>,
    ) -> String {
        let candidates =
            takeover_candidates(hosts, Some(state), needs, avoid, &RecentAdoptions::default());
        candidates.iter().map(|it| &*it.name).collect::<Vec<_>>().join(" ")
    }

    fn session(agent: &str) -> (SessionSummary, PlacementNeeds) {
        let state = SessionSummary {
            cwd: "/srv/one".into(),
            agent: agent.into(),
            ..SessionSummary::default()
        };
        let needs = PlacementNeeds::new(Some(&state), Some("a".into()));
        (state, needs)
    }

    #[test]
    fn candidates_are_the_last_host_then_sharing_hosts_by_load() {
        let (state, needs) = session("echo");
        let mut hosts =
            [host("a", &[], 9), host("b", &[], 0), host("c", &["/srv"], 5), host("d", &["/"], 2)];
        assert_eq!(names(&hosts, &state, &needs, None), "a d c");
        assert_eq!(names(&hosts, &state, &needs, Some("a")), "d c a");
        hosts[3].free = Some(0);
        assert_eq!(names(&hosts, &state, &needs, Some("a")), "c d a");
        let (other, needs) = session("other");
        hosts[2].agents.push("other".to_owned());
        assert_eq!(names(&hosts, &other, &needs, None), "c a d");
    }

    #[test]
    fn sessions_that_are_adopted_at_once_are_spread_evenly() {
        let (state, needs) = session("echo");
        let mut hosts = [host("b", &["/"], 0), host("c", &["/"], 0), host("d", &["/"], 0)];
        hosts[2].free = Some(1);
        let mut recent = RecentAdoptions::default();
        for _ in 0..9 {
            let first =
                takeover_candidates(&hosts, Some(&state), &needs, None, &recent).swap_remove(0);
            recent.add(&first);
        }
        let counts = hosts.each_ref().map(|it| recent.count_on(&it.host));
        assert_eq!(counts, [4, 4, 1], "the last one has one free process");
        recent.remove(&hosts[0].host);
        assert_eq!(recent.count_on(&hosts[0].host), 3);
    }

    #[test]
    fn error_names_why_no_host_may_adopt() {
        let (state, needs) = session("echo");
        assert_eq!(describe_no_candidate(&[], &needs, None), "its host `a` is away");
        let last_renewal = UNIX_EPOCH + Duration::from_hours(24);
        let since = "its host `a` is away since 1970-01-02T00:00:00.000Z";
        assert_eq!(describe_no_candidate(&[], &needs, Some(last_renewal)), since);
        let unknown = PlacementNeeds { last_host: None, ..needs.clone() };
        assert_eq!(describe_no_candidate(&[], &unknown, None), "no host is online");
        assert_eq!(
            (offline_last_host(&[], &needs), offline_last_host(&[], &unknown)),
            (Some("a"), None)
        );
        let mut hosts = vec![host("b", &["/data"], 0)];
        assert_eq!(names(&hosts, &state, &needs, None), "");
        let alone = "its host `a` is away, `b` does not share `/srv/one`";
        assert_eq!(describe_no_candidate(&hosts, &needs, None), alone);
        hosts.push(HostEntry { draining: true, ..host("a", &["/"], 0) });
        let drains = "its last host `a` is draining, `b` does not share `/srv/one`";
        assert_eq!(
            (names(&hosts, &state, &needs, None), describe_no_candidate(&hosts, &needs, None)),
            (String::new(), drains.to_owned())
        );
    }
}
