//! Which hosts may adopt a session that no host has, in which order, and why none may.

use super::host_of;
use crate::gateway::PlacementNeeds;
use crate::{HostEntry, HostInstance};
use jackfield_events::SessionSummary;
use jackfield_hub::rfc3339;
use jackfield_journal::LastWriter;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Hosts of which it is told why they may not.
const REASONS: usize = 3;

/// What a session needs that this one wrote to last.
pub fn needs_of(state: Option<&SessionSummary>, writer: &LastWriter) -> PlacementNeeds {
    let was_on = writer.name.as_deref().and_then(HostInstance::parse);
    PlacementNeeds::of(state, was_on.map(|it| it.name.into()))
}

/// How long a session that a host was asked to adopt is counted here. Hosts report once a second, and gateways read
/// the reports once a second.
const REPORTED_AFTER: Duration = Duration::from_secs(3);

/// Sessions that hosts were asked to adopt, and that the reports of these hosts may not count yet. Without it, all
/// sessions that a draining host lets go at once would go to the same host.
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

/// The best first: hosts that know its agent, have places, had it last (its agent may have left something there),
/// and have little to do.
pub(crate) fn heirs(
    hosts: &[HostEntry],
    state: Option<&SessionSummary>,
    needs: &PlacementNeeds,
    avoid: Option<&str>,
    recent: &RecentAdoptions,
) -> Vec<HostInstance> {
    let knows = |it: &HostEntry| {
        state.is_none_or(|state| {
            !state.argv.is_empty() || it.agents.iter().any(|agent| **agent == *state.agent)
        })
    };
    let mut heirs: Vec<&HostEntry> =
        hosts.iter().filter(|it| !it.draining && host_of(it).lacks(needs).is_none()).collect();
    heirs.sort_by_key(|it| {
        let unwanted = avoid == Some(&*it.host.name);
        let had_it = needs.was_on.as_deref() == Some(&*it.host.name);
        let recent = recent.count_on(&it.host);
        let is_full = it.free.is_some_and(|free| free as usize <= recent);
        (unwanted, !knows(it), is_full, !had_it, host_of(it).load + recent)
    });
    heirs.into_iter().map(|it| it.host.clone()).collect()
}

/// The host that had the session last, if it is away.
pub(crate) fn absent_home<'a>(hosts: &[HostEntry], needs: &'a PlacementNeeds) -> Option<&'a str> {
    let name = needs.was_on.as_deref()?;
    hosts.iter().all(|it| *it.host.name != *name).then_some(name)
}

/// Why no host may adopt the session. `heard` is when the host that had it was heard of last.
pub(crate) fn nowhere(
    hosts: &[HostEntry],
    needs: &PlacementNeeds,
    heard: Option<SystemTime>,
) -> String {
    let was = needs.was_on.as_ref().and_then(|name| {
        match hosts.iter().find(|it| *it.host.name == **name) {
            Some(it) if it.draining => Some(format!("`{name}`, where it was, drains")),
            Some(_) => None,
            None => {
                let since = heard.and_then(|it| it.duration_since(UNIX_EPOCH).ok());
                let since = since.and_then(|it| u64::try_from(it.as_millis()).ok());
                let since = since.map(|it| format!(" since {}", rfc3339(it))).unwrap_or_default();
                Some(format!("its host `{name}` is away{since}"))
            }
        }
    });
    let open = hosts.iter().filter(|it| !it.draining);
    let lacking =
        open.filter_map(|it| Some(format!("`{}` {}", it.host.name, host_of(it).lacks(needs)?)));
    let why: Vec<_> = was.into_iter().chain(lacking.take(REASONS)).collect();
    if why.is_empty() { "there is no host".to_owned() } else { why.join(", ") }
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
        let heirs = heirs(hosts, Some(state), needs, avoid, &RecentAdoptions::default());
        heirs.iter().map(|it| &*it.name).collect::<Vec<_>>().join(" ")
    }

    fn session(agent: &str) -> (SessionSummary, PlacementNeeds) {
        let state = SessionSummary {
            cwd: "/srv/one".into(),
            agent: agent.into(),
            ..SessionSummary::default()
        };
        let needs = PlacementNeeds::of(Some(&state), Some("a".into()));
        (state, needs)
    }

    #[test]
    fn a_session_goes_home_and_else_to_who_shares_its_directory_and_has_least_to_do() {
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
            let first = heirs(&hosts, Some(&state), &needs, None, &recent).swap_remove(0);
            recent.add(&first);
        }
        let counts = hosts.each_ref().map(|it| recent.count_on(&it.host));
        assert_eq!(counts, [4, 4, 1], "the last one has one place");
        recent.remove(&hosts[0].host);
        assert_eq!(recent.count_on(&hosts[0].host), 3);
    }

    #[test]
    fn it_is_told_why_nobody_may_have_it() {
        let (state, needs) = session("echo");
        assert_eq!(nowhere(&[], &needs, None), "its host `a` is away");
        let heard = UNIX_EPOCH + Duration::from_hours(24);
        let since = "its host `a` is away since 1970-01-02T00:00:00.000Z";
        assert_eq!(nowhere(&[], &needs, Some(heard)), since);
        let unknown = PlacementNeeds { was_on: None, ..needs.clone() };
        assert_eq!(nowhere(&[], &unknown, None), "there is no host");
        assert_eq!((absent_home(&[], &needs), absent_home(&[], &unknown)), (Some("a"), None));
        let mut hosts = vec![host("b", &["/data"], 0)];
        assert_eq!(names(&hosts, &state, &needs, None), "");
        let alone = "its host `a` is away, `b` does not share `/srv/one`";
        assert_eq!(nowhere(&hosts, &needs, None), alone);
        hosts.push(HostEntry { draining: true, ..host("a", &["/"], 0) });
        let drains = "`a`, where it was, drains, `b` does not share `/srv/one`";
        assert_eq!(
            (names(&hosts, &state, &needs, None), nowhere(&hosts, &needs, None)),
            (String::new(), drains.to_owned())
        );
    }
}
