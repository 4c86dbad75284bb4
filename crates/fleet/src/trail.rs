//! The audit trail: what clients of the fleet have done, kept apart from the sessions and after their end.
//!
//! Each gateway writes what it has let happen, in order. A word that was acknowledged is kept by as many
//! servers as a session's log; one whose fate is unknown is said again under the same number, and kept once.

use crate::link::{Link, LinkError};
use async_nats::{
    HeaderMap,
    jetstream::{
        consumer::{DeliverPolicy, pull::OrderedConfig},
        stream::{Config, DiscardPolicy, StorageType},
    },
};
use futures_util::StreamExt as _;
use serde::{Deserialize, Serialize};
use std::time::{Duration, SystemTime};
use tokio::sync::mpsc;

/// A year and a bit: who is asked about last year can still answer.
const KEPT: Duration = Duration::from_hours(24 * 400);
/// How long the servers remember numbers. Longer than anybody goes on saying the same.
const DUPLICATE_WINDOW: Duration = Duration::from_mins(2);
/// Words that wait to be kept. More are counted, and the count is kept instead.
const WAITING_MAX: usize = 10_000;
const RETRY: Duration = Duration::from_millis(500);

/// One line of the trail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Word {
    /// Milliseconds since 1970.
    pub at: u64,
    /// Who let it happen.
    pub gateway: String,
    /// What was done: a method, or `lost` for words that could not be kept.
    pub what: String,
    /// In whose name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// One connection of a client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conn: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// How many words are missing here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
}

impl Word {
    /// Now.
    pub fn new(gateway: &str, what: impl Into<String>) -> Word {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Word {
            at: u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
            gateway: gateway.to_owned(),
            what: what.into(),
            tenant: None,
            client: None,
            conn: None,
            session: None,
            answer: None,
            refused: None,
            lost: None,
        }
    }
}

/// Where words are said. Nobody waits for them to be kept.
#[derive(Debug)]
pub struct Trail {
    words: mpsc::Sender<Word>,
    gateway: String,
    lost: u64,
}

impl Trail {
    /// Starts the task that has them kept; it ends with this.
    pub fn open(link: Link, gateway: &str) -> Trail {
        let (words, said) = mpsc::channel(WAITING_MAX);
        tokio::spawn(keep(link, said, crate::link::unique()));
        Trail { words, gateway: gateway.to_owned(), lost: 0 }
    }

    pub fn gateway(&self) -> &str {
        &self.gateway
    }

    pub fn say(&mut self, word: Word) {
        if self.lost != 0 {
            let lost = Word { lost: Some(self.lost), ..Word::new(&self.gateway, "lost") };
            if self.words.try_send(lost).is_ok() {
                self.lost = 0;
            }
        }
        if self.words.try_send(word).is_err() {
            self.lost += 1;
            if self.lost.is_power_of_two() {
                tracing::error!(lost = self.lost, "the servers do not keep the audit trail");
            }
        }
    }
}

async fn keep(link: Link, mut said: mpsc::Receiver<Word>, writer: String) {
    let mut number = 0_u64;
    while let Some(word) = said.recv().await {
        number += 1;
        let body = serde_json::to_vec(&word).expect("a word is plain data");
        let id = format!("{writer}-{number}");
        loop {
            let mut headers = HeaderMap::new();
            headers.insert("Nats-Msg-Id", id.as_str());
            let sent =
                link.context.publish_with_headers(link.words(), headers, body.clone().into());
            let kept = match sent.await {
                Ok(kept) => kept.await.map(drop).map_err(|it| it.to_string()),
                Err(why) => Err(why.to_string()),
            };
            match kept {
                Ok(()) => break,
                Err(why) => {
                    tracing::debug!(why, "a word of the audit trail is said again");
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
    }
}

impl Link {
    pub(crate) fn trail(&self, replicas: usize) -> Config {
        Config {
            name: self.trail_name(),
            subjects: vec![self.words()],
            max_age: KEPT,
            num_replicas: replicas,
            storage: StorageType::File,
            discard: DiscardPolicy::Old,
            duplicate_window: DUPLICATE_WINDOW,
            ..Config::default()
        }
    }

    fn trail_name(&self) -> String {
        format!("{}-audit", self.cell())
    }

    fn words(&self) -> String {
        format!("{}.audit", self.cell())
    }

    /// Hands on the words since a moment, in order; with `follow` also those to come. Ends when whoever
    /// takes them says so.
    pub async fn read_trail(
        &self,
        since: Option<SystemTime>,
        follow: bool,
        mut take: impl FnMut(Word) -> bool,
    ) -> Result<(), LinkError> {
        let away = |why: &dyn std::fmt::Display| LinkError::Away(why.to_string());
        let trail = self.context.get_stream(self.trail_name()).await.map_err(|it| away(&it))?;
        let deliver_policy = match since {
            Some(since) => DeliverPolicy::ByStartTime { start_time: since.into() },
            None => DeliverPolicy::All,
        };
        let config = OrderedConfig { deliver_policy, ..OrderedConfig::default() };
        let reader = trail.create_consumer(config).await.map_err(|it| away(&it))?;
        let mut left = reader.cached_info().num_pending;
        let mut words = reader.messages().await.map_err(|it| away(&it))?;
        while follow || left != 0 {
            let Some(word) = words.next().await else { return Ok(()) };
            let word = word.map_err(|it| away(&it))?;
            left = left.saturating_sub(1);
            // What a later version writes may be more than we know; what is no word at all is left out.
            let Ok(word) = serde_json::from_slice(&word.payload) else { continue };
            if !take(word) {
                return Ok(());
            }
        }
        Ok(())
    }
}
