//! Looking things up for the gateway: who owns a session, who could, which sessions there are; and opening
//! host connections. Each is a task whose outcome is sent to the loop.

use super::heirs::{RecentAdoptions, absent_home, heirs, needs_of, nowhere};
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
/// For a host that drains to write the last word of a session.
const LETTING_GO_PAUSE: Duration = Duration::from_millis(100);
const LETTING_GO_TRIES: usize = 50;
/// Events of a log that are read at once.
const EVENTS_MAX: usize = 256;
/// Sessions on a page.
const PAGE: usize = 50;

#[derive(Clone)]
pub(crate) struct Seeker {
    pub(crate) link: FleetConnection,
    pub(crate) owners: StreamOwnership,
    pub(crate) hosts: watch::Receiver<Arc<Vec<HostEntry>>>,
    pub(crate) found: Sender<GatewayInput>,
    pub(crate) recent: Arc<Mutex<RecentAdoptions>>,
}

/// Which sessions are listed.
pub(crate) struct Wanted {
    pub(crate) cwd: Option<String>,
    pub(crate) tenant: Option<TenantName>,
}

impl Seeker {
    fn tell(&self, work: impl Future<Output = GatewayInput> + Send + 'static) {
        let found = self.found.clone();
        tokio::spawn(async move {
            let _unheard = found.send(work.await).await;
        });
    }

    fn recent(&self) -> MutexGuard<'_, RecentAdoptions> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This start of a host, if it lives.
    fn living(&self, name: &str) -> Option<HostInstance> {
        self.hosts.borrow().iter().map(|it| &it.host).find(|it| &*it.name == name).cloned()
    }

    pub(crate) fn open_host_conn(
        &self,
        host_conn: HostConnectionId,
        host: HostId,
        stream: UnixStream,
    ) {
        let seeker = self.clone();
        self.tell(async move {
            match seeker.dial(&host, stream).await {
                Ok(()) => GatewayInput::HostConnectionOpened { host_conn },
                Err(error) => GatewayInput::HostConnectionGone { host_conn, why: chain(&error) },
            }
        });
    }

    async fn dial(&self, host: &str, stream: UnixStream) -> Result<(), FleetConnectionError> {
        let gone = || FleetConnectionError::Unavailable(format!("host `{host}` is not there"));
        let host = self.living(host).ok_or_else(gone)?;
        let tell = async |id: String| match self
            .link
            .send_request(&host, &HostRequest::OpenConnection(id), HOST_CONNECTION_TIMEOUT)
            .await?
        {
            HostResponse::Done => Ok(()),
            other => Err(FleetConnectionError::Unavailable(format!(
                "it does not take the host connection: {other:?}"
            ))),
        };
        open_host_connection(&self.link, stream, tell).await
    }

    pub(crate) fn locate(&self, session: SessionId, avoid: Option<HostId>) {
        let seeker = self.clone();
        self.tell(async move {
            let owner = seeker.owner(&session, avoid.as_deref()).await;
            GatewayInput::Located { session, owner }
        });
    }

    /// Who owns the session now. An owner that drains lets go of it in a moment, and then others can have it.
    async fn owner(&self, session: &SessionId, avoid: Option<&str>) -> Result<HostId, Fault> {
        for _ in 0..LETTING_GO_TRIES {
            match self.try_owner(session, avoid).await? {
                Some(owner) => return Ok(owner),
                None => tokio::time::sleep(LETTING_GO_PAUSE).await,
            }
        }
        Err(lost("its host drains, and has not let go of it yet".to_owned()))
    }

    /// The owner, if it lives and says so itself; otherwise whoever adopts the session. Nobody, if the owner
    /// is about to let go.
    async fn try_owner(
        &self,
        session: &SessionId,
        avoid: Option<&str>,
    ) -> Result<Option<HostId>, Fault> {
        let (owners, name) = (self.owners.clone(), session.clone());
        let looked = tokio::task::spawn_blocking(move || {
            let writer = owners.last_writer(&name)?;
            let summary = owners.read_summary(&name).unwrap_or_default();
            Ok::<_, AdoptError>((writer, SessionSummary::from_summary(&summary).ok()))
        });
        let (writer, state) = match looked.await {
            Ok(Ok(found)) => found,
            Ok(Err(AdoptError::Missing { .. })) => {
                return Err(Fault::SessionNotFound { session: session.to_string() });
            }
            Ok(Err(error)) => return Err(lost(chain(&error))),
            Err(error) => return Err(lost(error.to_string())),
        };
        let owner = writer.owner().and_then(HostInstance::parse);
        if let Some(owner) = owner.filter(|it| self.living(&it.name).as_ref() == Some(it)) {
            return match self.adopt(&owner, session).await? {
                HostResponse::Draining => Ok(None),
                answer => taken(&owner, session, answer).map(Some),
            };
        }
        let needs = needs_of(state.as_ref(), &writer);
        let mut why = None;
        for (number, host) in self.choose_heirs(state.as_ref(), &needs, avoid).iter().enumerate() {
            if 0 < number {
                self.recent().add(host);
            }
            let answer = self.adopt(host, session).await;
            match answer.and_then(|it| taken(host, session, it)) {
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
            None => self.why_nowhere(&needs).await,
        };
        Err(Fault::NoHost { why })
    }

    /// The hosts that may adopt a session, the best first, which counts as having it.
    fn choose_heirs(
        &self,
        state: Option<&SessionSummary>,
        needs: &PlacementNeeds,
        avoid: Option<&str>,
    ) -> Vec<HostInstance> {
        let (hosts, mut recent) = (self.hosts.borrow(), self.recent());
        recent.remove_old();
        let heirs = heirs(&hosts, state, needs, avoid, &recent);
        if let Some(first) = heirs.first() {
            recent.add(first);
        }
        heirs
    }

    async fn why_nowhere(&self, needs: &PlacementNeeds) -> String {
        let home = absent_home(&self.hosts.borrow(), needs).map(str::to_owned);
        let heard = match &home {
            Some(name) => self.link.last_renewal(name).await,
            None => None,
        };
        nowhere(&self.hosts.borrow(), needs, heard)
    }

    /// Whoever dies meanwhile is not waited for: others may have the session from then on.
    async fn adopt(&self, host: &HostInstance, session: &SessionId) -> Result<HostResponse, Fault> {
        let question = HostRequest::AdoptSession(session.to_string());
        let mut hosts = self.hosts.clone();
        let is_gone = hosts.wait_for(|all| all.iter().all(|it| it.host != *host));
        tokio::select! {
            answer = self.link.send_request(host, &question, ADOPT_TIMEOUT) => {
                answer.map_err(|error| lost(chain(&error)))
            }
            _ = is_gone => Err(lost(format!("host `{}` is gone", host.name))),
        }
    }

    /// Reads a log without taking the session over.
    pub(crate) fn read_log(&self, token: u64, session: SessionId, after: u64) {
        let owners = self.owners.clone();
        self.tell(async move {
            let read = tokio::task::spawn_blocking(move || events(&owners, &session, after));
            let events = read.await.unwrap_or_else(|error| Err(lost(error.to_string())));
            GatewayInput::LogRead { token, events }
        });
    }

    pub(crate) fn list(&self, token: u64, cursor: Option<String>, wanted: Wanted) {
        let owners = self.owners.clone();
        self.tell(async move {
            let page =
                tokio::task::spawn_blocking(move || page(&owners, cursor.as_deref(), &wanted));
            let page = page.await.unwrap_or_else(|error| Err(lost(error.to_string())));
            GatewayInput::SessionsListed { token, page }
        });
    }
}

/// The next events of a log.
fn events(
    owners: &StreamOwnership,
    session: &SessionId,
    after: u64,
) -> Result<Vec<SessionEvent>, Fault> {
    let damaged = |why: String| Fault::Internal { why: format!("session `{session}`: {why}") };
    let lines = owners.read_events(session, after, EVENTS_MAX, READ_BYTES_MAX);
    let lines = lines.map_err(|error| lost(chain(&error)))?;
    let decode = |it: &jackfield_journal::StoredEvent| {
        SessionEvent::decode(Seq(it.seq), &it.line).map_err(|error| damaged(error.why))
    };
    lines.iter().map(decode).collect()
}

/// How far a client has read the list. Summaries stand in the order in which they were written, so one that is
/// written while the pages are read is behind the end that the first page had.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ListCursor {
    /// That end.
    end: u64,
    next: NextPage,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum NextPage {
    /// Summaries before this place.
    Before(u64),
    /// Sessions that were used since the first page, behind this name.
    ChangedAfter(String),
}

impl ListCursor {
    fn parse(text: &str) -> Option<ListCursor> {
        let (end, next) = text.split_once('.')?;
        let next = match next.strip_prefix('.') {
            Some(name) => NextPage::ChangedAfter(name.to_owned()),
            None => NextPage::Before(next.parse().ok()?),
        };
        Some(ListCursor { end: end.parse().ok()?, next })
    }
}

impl fmt::Display for ListCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.next {
            NextPage::Before(place) => write!(f, "{}.{place}", self.end),
            NextPage::ChangedAfter(name) => write!(f, "{}..{name}", self.end),
        }
    }
}

/// Pages are read until one is full: most of what there is may not be wanted. Behind the last one come the sessions
/// that were used since the first.
fn page(
    owners: &StreamOwnership,
    cursor: Option<&str>,
    wanted: &Wanted,
) -> Result<SessionPage, Fault> {
    let wrong = || Fault::InvalidParams {
        why: "`cursor` is none of ours: leave it out to start over".into(),
    };
    let cursor = cursor.map(|it| ListCursor::parse(it).ok_or_else(wrong)).transpose()?;
    let mut sessions = Vec::new();
    let (end, mut before) = match cursor {
        Some(ListCursor { end, next: NextPage::ChangedAfter(name) }) => {
            let next = add_changed(owners, end, &name, wanted, &mut sessions)?;
            return Ok(SessionPage { sessions, next });
        }
        Some(ListCursor { end, next: NextPage::Before(place) }) => (Some(end), Some(place)),
        None => (None, None),
    };
    let (is_first, mut end) = (end.is_none(), end);
    loop {
        let page = owners.list_page(before, PAGE).map_err(|error| lost(chain(&error)))?;
        let end = *end.get_or_insert(page.end);
        let streams = page.streams.into_iter();
        sessions.extend(streams.filter_map(|(name, summary)| wanted.listed(name, &summary)));
        before = page.before;
        let next = match before {
            Some(_) if sessions.len() < PAGE => continue,
            Some(place) => Some(ListCursor { end, next: NextPage::Before(place) }.to_string()),
            None if is_first => None,
            None => add_changed(owners, end, "", wanted, &mut sessions)?,
        };
        return Ok(SessionPage { sessions, next });
    }
}

/// Adds sessions that were used since the first page, behind a name; returns the cursor of the next page.
fn add_changed(
    owners: &StreamOwnership,
    end: u64,
    after: &str,
    wanted: &Wanted,
    sessions: &mut Vec<ListedSession>,
) -> Result<Option<String>, Fault> {
    let changed = owners.list_since(end).map_err(|error| lost(chain(&error)))?;
    let behind = changed.into_iter().filter(|(name, _)| after < &**name);
    let mut listed = behind.filter_map(|(name, summary)| wanted.listed(name, &summary));
    sessions.extend(listed.by_ref().take(PAGE));
    let last = listed.next().and(sessions.last()).map(|it| it.session.to_string());
    Ok(last.map(|name| ListCursor { end, next: NextPage::ChangedAfter(name) }.to_string()))
}

impl Wanted {
    /// A session as it is listed, if it is wanted.
    fn listed(&self, name: Arc<str>, summary: &[u8]) -> Option<ListedSession> {
        if self.tenant.is_some() && self.tenant.as_deref() != tenant_of(&name) {
            return None;
        }
        let state = SessionSummary::from_summary(summary).ok()?;
        let elsewhere = self.cwd.as_ref().is_some_and(|cwd| *cwd != state.cwd);
        (!state.importing && !elsewhere).then(|| listed(name.into(), &state))
    }
}

fn listed(session: SessionId, state: &SessionSummary) -> ListedSession {
    let shown = if state.closed { "closed" } else { "asleep" };
    ListedSession {
        session,
        agent: state.agent.clone(),
        cwd: state.cwd.clone(),
        title: state.title.clone().or_else(|| state.hint.clone()),
        state: shown.to_owned(),
        updated_at: Time(state.updated_at),
        host: None,
    }
}

fn taken(host: &HostInstance, session: &SessionId, answer: HostResponse) -> Result<HostId, Fault> {
    match answer {
        HostResponse::Done => Ok(host.name.clone().into()),
        HostResponse::Missing => Err(Fault::SessionNotFound { session: session.to_string() }),
        HostResponse::OwnedBy(by) => Ok(name_of(&by)),
        HostResponse::Refused(why) => Err(Fault::NoHost { why: format!("`{}`: {why}", host.name) }),
        HostResponse::Draining => Err(Fault::NoHost { why: format!("`{}` drains", host.name) }),
        HostResponse::SessionsLeft(_) => {
            Err(lost(format!("`{}` answers something else", host.name)))
        }
    }
}

fn name_of(owner: &str) -> HostId {
    HostInstance::parse(owner).map_or_else(|| owner.into(), |it| it.name.into())
}

fn lost(why: String) -> Fault {
    Fault::HostLost { why }
}
