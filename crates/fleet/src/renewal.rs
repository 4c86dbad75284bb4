//! One renewal of a host's entry in the list of hosts, and the last entry of a name.

use crate::{
    connection::{FleetConnection, REQUEST_TIMEOUT},
    host_entry::HostEntry,
};
use async_nats::{
    Client, HeaderMap, Request,
    client::RequestErrorKind,
    jetstream::{self, Context},
};
use serde::Deserialize;
use std::{collections::BTreeSet, time::Duration};
use tokio::task::JoinSet;

/// The time reserved for the last attempt before the deadline.
pub(crate) const LAST_ATTEMPT_TIMEOUT: Duration = Duration::from_millis(700);
/// The timeout of a reply in the last attempt, once a server is reached.
const LAST_REPLY_TIMEOUT: Duration = Duration::from_millis(400);

const EXPECTED_LAST_HEADER: &str = "Nats-Expected-Last-Subject-Sequence";

#[derive(Debug, thiserror::Error)]
pub(crate) enum RenewalError {
    #[error("another entry was written for this name")]
    Superseded,
    #[error("the list of hosts has no leader")]
    NoLeader,
    #[error("no reply in time")]
    TimedOut,
    #[error("{0}")]
    Unavailable(String),
}

#[derive(Deserialize)]
struct PublishReply {
    seq: Option<u64>,
    error: Option<PublishError>,
}

#[derive(Deserialize)]
struct PublishError {
    err_code: u64,
    description: String,
}

/// "Wrong last sequence".
const WRONG_LAST_SEQUENCE: u64 = 10071;
/// "Wrong last sequence" while an earlier message is in progress. A leader that has lost its
/// majority answers this until it steps down, so it is equivalent to a late reply.
const EARLIER_MESSAGE_PENDING: u64 = 10164;

/// Writes the entry if `last` is the position of the last entry of this name. Returns the new
/// position.
pub(crate) async fn renew(
    connection: &FleetConnection,
    entry: &HostEntry,
    last: u64,
) -> Result<u64, RenewalError> {
    renew_through(&connection.client, REQUEST_TIMEOUT, connection, entry, last).await
}

/// Renews through every server that can be reached, each with a connection of its own. `NoLeader`
/// has a stronger meaning here: so many servers found no leader that the unreachable ones are too
/// few to have elected one. A leader that is only slow receives our entry before it can report that
/// there is none.
///
/// This holds only if `--fleet` names all servers that may store the list.
pub(crate) async fn renew_through_any_server(
    connection: &FleetConnection,
    entry: &HostEntry,
    last: u64,
) -> Result<u64, RenewalError> {
    let advertised = connection.client.server_info().connect_urls;
    let urls: BTreeSet<String> =
        connection.servers.urls().iter().cloned().chain(advertised).collect();
    let mut attempts: JoinSet<_> = urls
        .into_iter()
        .map(|url| renew_through_server(url, connection.clone(), entry.clone(), last))
        .collect();
    let server_count = connection.servers.urls().len().max(connection.replicas);
    let majority = connection.replicas / 2 + 1;
    let mut leaderless = BTreeSet::new();
    let deadline = tokio::time::Instant::now() + LAST_ATTEMPT_TIMEOUT;
    while let Ok(Some(attempt)) = tokio::time::timeout_at(deadline, attempts.join_next()).await {
        match attempt {
            Ok(Some((server, Err(RenewalError::NoLeader | RenewalError::TimedOut)))) => {
                leaderless.insert(server);
            }
            Ok(Some((_, Err(RenewalError::Unavailable(_)))) | None) | Err(_) => {}
            Ok(Some((_, renewal))) => return renewal,
        }
        if server_count < leaderless.len() + majority {
            return Err(RenewalError::NoLeader);
        }
    }
    Err(RenewalError::Unavailable("too few servers can be reached".to_owned()))
}

/// Returns the id of the server and the result of the renewal. `None` if the server cannot be
/// reached.
async fn renew_through_server(
    url: String,
    connection: FleetConnection,
    entry: HostEntry,
    last: u64,
) -> Option<(String, Result<u64, RenewalError>)> {
    let client = connection.servers.connect_options().connect(url).await.ok()?;
    let renew_after =
        |last: u64| renew_through(&client, LAST_REPLY_TIMEOUT, &connection, &entry, last);
    let mut renewal = renew_after(last).await;
    if let Err(RenewalError::Superseded) = renewal {
        let context = jetstream::new(client.clone());
        match read_entry_through(&context, &connection, &entry.host.name).await {
            // An earlier renewal of ours whose reply was lost.
            Ok(Some((position, last))) if last.host == entry.host => {
                renewal = renew_after(position).await;
            }
            Ok(None) => renewal = renew_after(0).await,
            Ok(Some(_)) => {}
            Err(error) => renewal = Err(RenewalError::Unavailable(error)),
        }
    }
    Some((client.server_info().server_id, renewal))
}

async fn renew_through(
    client: &Client,
    timeout: Duration,
    connection: &FleetConnection,
    entry: &HostEntry,
    last: u64,
) -> Result<u64, RenewalError> {
    let body = serde_json::to_vec(entry).expect("an entry is plain data");
    let mut headers = HeaderMap::new();
    headers.insert(EXPECTED_LAST_HEADER, last.to_string());
    let request = Request::new().headers(headers).payload(body.into()).timeout(Some(timeout));
    let reply = client.send_request(connection.host_subject(&entry.host.name), request).await;
    let reply = reply.map_err(|it| match it.kind() {
        RequestErrorKind::NoResponders => RenewalError::NoLeader,
        RequestErrorKind::TimedOut => RenewalError::TimedOut,
        _ => RenewalError::Unavailable(it.to_string()),
    })?;
    let reply: PublishReply = serde_json::from_slice(&reply.payload)
        .map_err(|it| RenewalError::Unavailable(it.to_string()))?;
    match (reply.seq, reply.error) {
        (_, Some(it)) if it.err_code == WRONG_LAST_SEQUENCE => Err(RenewalError::Superseded),
        (_, Some(it)) if it.err_code == EARLIER_MESSAGE_PENDING => Err(RenewalError::TimedOut),
        (_, Some(it)) => Err(RenewalError::Unavailable(it.description)),
        (Some(seq), None) => Ok(seq),
        (None, None) => Err(RenewalError::Unavailable(
            "the reply of the server contains neither a sequence number nor an error".to_owned(),
        )),
    }
}

/// Reads the last entry of a name and its position from the leader.
pub(crate) async fn read_entry(
    connection: &FleetConnection,
    name: &str,
) -> Result<Option<(u64, HostEntry)>, String> {
    read_entry_through(&connection.context, connection, name).await
}

async fn read_entry_through(
    context: &Context,
    connection: &FleetConnection,
    name: &str,
) -> Result<Option<(u64, HostEntry)>, String> {
    use jetstream::stream::LastRawMessageErrorKind as Kind;
    let entries = context.get_stream_no_info(connection.hosts_stream()).await;
    let entries = entries.map_err(|it| it.to_string())?;
    match entries.get_last_raw_message_by_subject(&connection.host_subject(name)).await {
        Ok(it) => {
            let entry = serde_json::from_slice(&it.payload).map_err(|it| it.to_string())?;
            Ok(Some((it.sequence, entry)))
        }
        Err(it) if it.kind() == Kind::NoMessageFound => Ok(None),
        Err(it) => Err(it.to_string()),
    }
}
