//! Lookups for the gateway: the owner of a session, hosts that may adopt it, the list of sessions;
//! and opening host connections. Each is a task that sends its result to the loop.

use super::takeover::{
    RecentAdoptions, describe_no_candidate, offline_last_host, placement_needs, takeover_candidates,
};
use crate::gateway::{
    GatewayInput, HostConnectionId, HostId, ListedSession, PlacementNeeds, SessionPage,
};
use crate::{
    FleetConnection, FleetConnectionError, HostEntry, HostInstance, HostRequest, HostResponse,
    open_host_connection,
};
use jackfield_events::{SessionEvent, SessionSummary, TenantName};
use jackfield_hub::{Seq, SessionId, Time, limits::READ_BYTES_MAX, tenant_of};
use jackfield_journal::{AdoptError, StreamOwnership};
use jackfield_protocol::{Fault, chain};
use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    net::UnixStream,
    sync::{mpsc::Sender, watch},
};

/// How long a host may take to adopt a session: it claims the log and may have to read much of it.
const ADOPT_TIMEOUT: Duration = Duration::from_secs(10);
const HOST_CONNECTION_TIMEOUT: Duration = Duration::from_secs(5);
/// How long to wait for a draining host to write the last event of a session, and how often.
const RELEASE_POLL_INTERVAL: Duration = Duration::from_millis(100);
const RELEASE_POLLS_MAX: usize = 50;
/// Events per read of a log.
const EVENTS_MAX: usize = 256;
/// Sessions per page.
const PAGE_LEN: usize = 50;

#[derive(Clone)]
pub(crate) struct SessionLocator {
    pub(crate) connection: FleetConnection,
    pub(crate) ownership: StreamOwnership,
    pub(crate) hosts: watch::Receiver<Arc<Vec<HostEntry>>>,
    pub(crate) results: Sender<GatewayInput>,
    pub(crate) recent: Arc<Mutex<RecentAdoptions>>,
}

/// Which sessions are listed.
pub(crate) struct SessionFilter {
    pub(crate) cwd: Option<String>,
    pub(crate) tenant: Option<TenantName>,
}

impl SessionLocator {
    fn spawn_lookup(&self, work: impl Future<Output = GatewayInput> + Send + 'static) {
        let results = self.results.clone();
        tokio::spawn(async move {
            let _ignored = results.send(work.await).await;
        });
    }

    fn recent(&self) -> MutexGuard<'_, RecentAdoptions> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The live instance of a host.
    fn live_instance(&self, name: &str) -> Option<HostInstance> {
        self.hosts.borrow().iter().map(|it| &it.host).find(|it| &*it.name == name).cloned()
    }

    pub(crate) fn open_host_conn(
        &self,
        host_conn: HostConnectionId,
        host: HostId,
        stream: UnixStream,
    ) {
        let locator = self.clone();
        self.spawn_lookup(async move {
            match locator.connect_host(&host, stream).await {
                Ok(()) => GatewayInput::HostConnectionOpened { host_conn },
                Err(error) => GatewayInput::HostConnectionGone { host_conn, reason: chain(&error) },
            }
        });
    }

    async fn connect_host(
        &self,
        host: &str,
        stream: UnixStream,
    ) -> Result<(), FleetConnectionError> {
        let offline = || FleetConnectionError::Unavailable(format!("host `{host}` is not online"));
        let host = self.live_instance(host).ok_or_else(offline)?;
        let request_connection = async |id: String| match self
            .connection
            .send_request(&host, &HostRequest::OpenConnection(id), HOST_CONNECTION_TIMEOUT)
            .await?
        {
            HostResponse::Done => Ok(()),
            other => Err(FleetConnectionError::Unavailable(format!(
                "host refused the connection: {other:?}"
            ))),
        };
        open_host_connection(&self.connection, stream, request_connection).await
    }

    pub(crate) fn locate_session(&self, session: SessionId, avoid: Option<HostId>) {
        let locator = self.clone();
        self.spawn_lookup(async move {
            let owner = locator.find_owner(&session, avoid.as_deref()).await;
            GatewayInput::SessionLocated { session, owner }
        });
    }

    /// The current owner of the session. A draining owner releases it in a moment; then other hosts
    /// can adopt it.
    async fn find_owner(&self, session: &SessionId, avoid: Option<&str>) -> Result<HostId, Fault> {
        for _ in 0..RELEASE_POLLS_MAX {
            match self.try_find_owner(session, avoid).await? {
                Some(owner) => return Ok(owner),
                None => tokio::time::sleep(RELEASE_POLL_INTERVAL).await,
            }
        }
        Err(host_lost("its host is draining and has not released it yet".to_owned()))
    }

    /// The owner, if it is alive and confirms it; otherwise a host that adopts the session. `None`
    /// if the owner is about to release it.
    async fn try_find_owner(
        &self,
        session: &SessionId,
        avoid: Option<&str>,
    ) -> Result<Option<HostId>, Fault> {
        let (ownership, name) = (self.ownership.clone(), session.clone());
        let lookup = tokio::task::spawn_blocking(move || {
            let writer = ownership.last_writer(&name)?;
            let summary = ownership.read_summary(&name).unwrap_or_default();
            Ok::<_, AdoptError>((writer, SessionSummary::from_summary(&summary).ok()))
        });
        let (writer, state) = match lookup.await {
            Ok(Ok(found)) => found,
            Ok(Err(AdoptError::Missing { .. })) => {
                return Err(Fault::SessionNotFound { session: session.to_string() });
            }
            Ok(Err(error)) => return Err(host_lost(chain(&error))),
            Err(error) => return Err(host_lost(error.to_string())),
        };
        let owner = writer.owner().and_then(HostInstance::parse);
        if let Some(owner) = owner.filter(|it| self.live_instance(&it.name).as_ref() == Some(it)) {
            return match self.adopt(&owner, session).await? {
                HostResponse::Draining => Ok(None),
                answer => interpret_response(&owner, session, answer).map(Some),
            };
        }
        let needs = placement_needs(state.as_ref(), &writer);
        let mut why = None;
        for (number, host) in
            self.choose_candidates(state.as_ref(), &needs, avoid).iter().enumerate()
        {
            if 0 < number {
                self.recent().add(host);
            }
            let answer = self.adopt(host, session).await;
            match answer.and_then(|it| interpret_response(host, session, it)) {
                Ok(owner) => return Ok(Some(owner)),
                Err(Fault::NoHost { why: reason } | Fault::HostLost { why: reason }) => {
                    why = Some(reason);
                }
                Err(other) => return Err(other),
            }
            self.recent().remove(host);
        }
        let why = match why {
            Some(why) => why,
            None => self.explain_no_candidate(&needs).await,
        };
        Err(Fault::NoHost { why })
    }

    /// The hosts that may adopt a session, the best first. The first one is counted as having
    /// adopted it.
    fn choose_candidates(
        &self,
        state: Option<&SessionSummary>,
        needs: &PlacementNeeds,
        avoid: Option<&str>,
    ) -> Vec<HostInstance> {
        let (hosts, mut recent) = (self.hosts.borrow(), self.recent());
        recent.remove_old();
        let candidates = takeover_candidates(&hosts, state, needs, avoid, &recent);
        if let Some(first) = candidates.first() {
            recent.add(first);
        }
        candidates
    }

    async fn explain_no_candidate(&self, needs: &PlacementNeeds) -> String {
        let last_host = offline_last_host(&self.hosts.borrow(), needs).map(str::to_owned);
        let last_renewal = match &last_host {
            Some(name) => self.connection.last_renewal(name).await,
            None => None,
        };
        describe_no_candidate(&self.hosts.borrow(), needs, last_renewal)
    }

    /// Asks a host to adopt a session. Fails at once if the host dies, since other hosts may adopt
    /// the session from then on.
    async fn adopt(&self, host: &HostInstance, session: &SessionId) -> Result<HostResponse, Fault> {
        let request = HostRequest::AdoptSession(session.to_string());
        let mut hosts = self.hosts.clone();
        let is_gone = hosts.wait_for(|all| all.iter().all(|it| it.host != *host));
        tokio::select! {
            answer = self.connection.send_request(host, &request, ADOPT_TIMEOUT) => {
                answer.map_err(|error| host_lost(chain(&error)))
            }
            _ = is_gone => Err(host_lost(format!("host `{}` went offline", host.name))),
        }
    }

    /// Reads a log without taking the session over.
    pub(crate) fn read_log(&self, token: u64, session: SessionId, after: u64) {
        let ownership = self.ownership.clone();
        self.spawn_lookup(async move {
            let read =
                tokio::task::spawn_blocking(move || read_events(&ownership, &session, after));
            let events = read.await.unwrap_or_else(|error| Err(host_lost(error.to_string())));
            GatewayInput::LogRead { token, events }
        });
    }

    pub(crate) fn list_sessions(&self, token: u64, cursor: Option<String>, filter: SessionFilter) {
        let ownership = self.ownership.clone();
        self.spawn_lookup(async move {
            let page = tokio::task::spawn_blocking(move || {
                read_page(&ownership, cursor.as_deref(), &filter)
            });
            let page = page.await.unwrap_or_else(|error| Err(host_lost(error.to_string())));
            GatewayInput::SessionsListed { token, page }
        });
    }
}

/// The next events of a log.
fn read_events(
    ownership: &StreamOwnership,
    session: &SessionId,
    after: u64,
) -> Result<Vec<SessionEvent>, Fault> {
    let damaged = |why: String| Fault::Internal { why: format!("session `{session}`: {why}") };
    let lines = ownership.read_events(session, after, EVENTS_MAX, READ_BYTES_MAX);
    let lines = lines.map_err(|error| host_lost(chain(&error)))?;
    let decode = |it: &jackfield_journal::StoredEvent| {
        SessionEvent::decode(Seq(it.seq), &it.line).map_err(|error| damaged(error.why))
    };
    lines.iter().map(decode).collect()
}

/// The position of a client in the list. Summaries are ordered by the time they were written, so
/// one that is written while the pages are read comes after `end`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LocatorCursor {
    /// The end of the list when the first page was read.
    end: u64,
    next: NextPage,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum NextPage {
    /// Summaries before this position.
    Before(u64),
    /// Sessions with a greater id that were used since the first page.
    ChangedAfter(String),
}

impl LocatorCursor {
    fn parse(text: &str) -> Option<LocatorCursor> {
        let (end, next) = text.split_once('.')?;
        let next = match next.strip_prefix('.') {
            Some(name) => NextPage::ChangedAfter(name.to_owned()),
            None => NextPage::Before(next.parse().ok()?),
        };
        Some(LocatorCursor { end: end.parse().ok()?, next })
    }
}

impl fmt::Display for LocatorCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.next {
            NextPage::Before(place) => write!(f, "{}.{place}", self.end),
            NextPage::ChangedAfter(name) => write!(f, "{}..{name}", self.end),
        }
    }
}

/// Reads pages until one is full, since the filter may exclude most sessions. After the last one
/// come the sessions that were used since the first.
fn read_page(
    ownership: &StreamOwnership,
    cursor: Option<&str>,
    filter: &SessionFilter,
) -> Result<SessionPage, Fault> {
    let invalid_cursor =
        || Fault::InvalidParams { why: "`cursor` is not valid: leave it out to start over".into() };
    let cursor =
        cursor.map(|it| LocatorCursor::parse(it).ok_or_else(invalid_cursor)).transpose()?;
    let mut sessions = Vec::new();
    let (end, mut before) = match cursor {
        Some(LocatorCursor { end, next: NextPage::ChangedAfter(name) }) => {
            let next = add_changed(ownership, end, &name, filter, &mut sessions)?;
            return Ok(SessionPage { sessions, next });
        }
        Some(LocatorCursor { end, next: NextPage::Before(place) }) => (Some(end), Some(place)),
        None => (None, None),
    };
    let (is_first, mut end) = (end.is_none(), end);
    loop {
        let page =
            ownership.list_page(before, PAGE_LEN).map_err(|error| host_lost(chain(&error)))?;
        let end = *end.get_or_insert(page.end);
        let streams = page.streams.into_iter();
        sessions.extend(streams.filter_map(|(name, summary)| filter.list_entry(name, &summary)));
        before = page.before;
        let next = match before {
            Some(_) if sessions.len() < PAGE_LEN => continue,
            Some(place) => Some(LocatorCursor { end, next: NextPage::Before(place) }.to_string()),
            None if is_first => None,
            None => add_changed(ownership, end, "", filter, &mut sessions)?,
        };
        return Ok(SessionPage { sessions, next });
    }
}

/// Adds sessions with a greater id that were used since the first page; returns the cursor of the
/// next page.
fn add_changed(
    ownership: &StreamOwnership,
    end: u64,
    after: &str,
    filter: &SessionFilter,
    sessions: &mut Vec<ListedSession>,
) -> Result<Option<String>, Fault> {
    let changed = ownership.list_since(end).map_err(|error| host_lost(chain(&error)))?;
    let later = changed.into_iter().filter(|(name, _)| after < &**name);
    let mut listed = later.filter_map(|(name, summary)| filter.list_entry(name, &summary));
    sessions.extend(listed.by_ref().take(PAGE_LEN));
    let last = listed.next().and(sessions.last()).map(|it| it.session.to_string());
    Ok(last.map(|name| LocatorCursor { end, next: NextPage::ChangedAfter(name) }.to_string()))
}

impl SessionFilter {
    /// The list entry of a session, if the filter includes it.
    fn list_entry(&self, name: Arc<str>, summary: &[u8]) -> Option<ListedSession> {
        if self.tenant.is_some() && self.tenant.as_deref() != tenant_of(&name) {
            return None;
        }
        let state = SessionSummary::from_summary(summary).ok()?;
        let is_other_dir = self.cwd.as_ref().is_some_and(|cwd| *cwd != state.cwd);
        (!state.importing && !is_other_dir).then(|| to_listed_session(name.into(), &state))
    }
}

fn to_listed_session(session: SessionId, state: &SessionSummary) -> ListedSession {
    let state_name = if state.closed { "closed" } else { "asleep" };
    ListedSession {
        session,
        agent: state.agent.clone(),
        cwd: state.cwd.clone(),
        title: state.title.clone().or_else(|| state.hint.clone()),
        state: state_name.to_owned(),
        updated_at: Time(state.updated_at),
        host: None,
    }
}

fn interpret_response(
    host: &HostInstance,
    session: &SessionId,
    answer: HostResponse,
) -> Result<HostId, Fault> {
    match answer {
        HostResponse::Done => Ok(host.name.clone().into()),
        HostResponse::Missing => Err(Fault::SessionNotFound { session: session.to_string() }),
        HostResponse::OwnedBy(by) => Ok(host_name(&by)),
        HostResponse::Refused(why) => Err(Fault::NoHost { why: format!("`{}`: {why}", host.name) }),
        HostResponse::Draining => {
            Err(Fault::NoHost { why: format!("`{}` is draining", host.name) })
        }
        HostResponse::SessionsLeft(_) => {
            Err(host_lost(format!("`{}` sent an unexpected response", host.name)))
        }
    }
}

fn host_name(owner: &str) -> HostId {
    HostInstance::parse(owner).map_or_else(|| owner.into(), |it| it.name.into())
}

fn host_lost(why: String) -> Fault {
    Fault::HostLost { why }
}
