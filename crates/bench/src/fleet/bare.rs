//! The servers without us: what the logs hold, and how fast messages like ours can be stored at all.

use super::world::SHARDS;
use anyhow::{Context as _, Result, bail};
use async_nats::{Client, HeaderMap, Request, jetstream};
use bytes::{Bytes, BytesMut};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// As a host has it.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);
const TRIES: usize = 20;

/// A cell on these servers.
pub(crate) struct Bare {
    servers: Vec<String>,
}

/// What the logs of a cell hold.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
}

/// Messages to be stored, each after the one before it is.
#[derive(Debug, Clone)]
pub(crate) struct Load {
    pub(crate) subjects: u64,
    /// Of each subject.
    pub(crate) messages: u64,
    /// Of each message.
    pub(crate) body: Bytes,
}

impl Bare {
    pub(crate) fn new(servers: Vec<String>) -> Bare {
        Bare { servers }
    }

    /// Does something with a connection of its own.
    fn with<T>(&self, work: impl AsyncFnOnce(Client) -> Result<T>) -> Result<T> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async { work(async_nats::connect(self.servers.clone()).await?).await })
    }

    pub(crate) fn extent(&self) -> Result<Extent> {
        self.with(extent)
    }

    /// What a message must say so that the servers count so many bytes for it: what ours have said, because
    /// servers pack what they send each other. `round` makes the names new.
    pub(crate) fn body(&self, bytes: u64, round: usize) -> Result<Bytes> {
        self.with(async move |client| {
            let before = extent(client.clone()).await?.bytes;
            publish(&client, &format!("jackfield.log.0.probe-{round}"), Bytes::new(), 1).await?;
            let overhead = extent(client.clone()).await?.bytes - before;
            said(client, usize::try_from(bytes.saturating_sub(overhead))?).await
        })
    }

    /// Stores messages as a host does: each says which one it follows, one of a subject is on its way, and
    /// all shards have their share. Returns how long it took.
    pub(crate) fn publish(&self, load: &Load, round: usize) -> Result<Duration> {
        self.with(async move |client| {
            let begin = Instant::now();
            let mut writers = JoinSet::new();
            for number in 0..load.subjects {
                let shard = number % u64::from(SHARDS);
                let subject = format!("jackfield.log.{shard}.bare-{round}-{number}");
                let (client, load) = (client.clone(), load.clone());
                let write =
                    async move { publish(&client, &subject, load.body, load.messages).await };
                writers.spawn(write);
            }
            while let Some(written) = writers.join_next().await {
                written??;
            }
            Ok(begin.elapsed())
        })
    }
}

async fn extent(client: Client) -> Result<Extent> {
    let context = jetstream::new(client);
    let mut extent = Extent { messages: 0, bytes: 0 };
    for shard in 0..SHARDS {
        let stream = context.get_stream(format!("jackfield-log-{shard}")).await;
        let state = stream.context("a shard")?.cached_info().state.clone();
        extent.messages += state.messages;
        extent.bytes += state.bytes;
    }
    Ok(extent)
}

/// So many bytes of the events that are in the logs.
async fn said(client: Client, bytes: usize) -> Result<Bytes> {
    let context = jetstream::new(client);
    let mut said = BytesMut::new();
    for shard in 1..SHARDS {
        let stream = context.get_stream(format!("jackfield-log-{shard}")).await?;
        let state = stream.cached_info().state.clone();
        for place in state.first_sequence..=state.last_sequence {
            if bytes <= said.len() {
                return Ok(said.split_to(bytes).freeze());
            }
            said.extend_from_slice(&stream.get_raw_message(place).await?.payload);
        }
    }
    bail!("the logs have only {} bytes", said.len())
}

/// So many messages to one subject, one after the other.
async fn publish(client: &Client, subject: &str, body: Bytes, messages: u64) -> Result<()> {
    let mut last = 0;
    for number in 1..=messages {
        last = store(client, subject, &body, number, last).await?;
    }
    Ok(())
}

/// Stores one message after that one. Without an answer it may have been stored: it is tried again until the
/// servers say so.
async fn store(
    client: &Client,
    subject: &str,
    body: &Bytes,
    number: u64,
    last: u64,
) -> Result<u64> {
    for _ in 0..TRIES {
        let request = Request::new().headers(headers(number, last)).payload(body.clone());
        let request = request.timeout(Some(REQUEST_TIMEOUT));
        let Ok(answer) = client.send_request(subject.to_owned(), request).await else { continue };
        let answer: serde_json::Value = serde_json::from_slice(&answer.payload)?;
        if let Some(place) = answer["seq"].as_u64() {
            return Ok(place);
        }
        // `wrong last sequence: N`: the message before this one was stored after all, and is the last.
        let why = answer["error"]["description"].as_str().unwrap_or_default();
        match why.rsplit(' ').next().and_then(|it| it.parse().ok()) {
            Some(place) if last < place => return Ok(place),
            _ => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
    bail!("not stored after {TRIES} tries")
}

/// What a message of ours has.
fn headers(number: u64, last: u64) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("S", (100 * number).to_string());
    headers.insert("N", "100");
    headers.insert("E", "1");
    headers.insert("C", "4000000000");
    headers.insert("O", "some-host/0123456789abcdef");
    headers.insert("Nats-Expected-Last-Subject-Sequence", last.to_string());
    headers
}
