//! Looking after the logs, now and then: what is cold goes to the archive, what is not kept is deleted.
//!
//! Each host sees to what it has written. What dead hosts have left is shared by all who live, and one of
//! them sees to what is not kept. Nobody waits for any of it.

use super::office::heir;
use jackfield_fleet::{HostEntry, HostInstance};
use jackfield_journal::{
    Archiver, ArchivingReport, LogMaintenanceError, PeerHosts, RetentionLimits,
};
use jackfield_protocol::chain;
use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
    time::Duration,
};
use tokio::sync::watch;

/// What others have left, and what is not kept, is looked for once in so many rounds.
const SELDOM: u64 = 12;

/// After this many rounds at most it is tried again.
const PAUSE_MAX: u32 = 12;

/// How the logs of a cell are looked after. The same for all hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Care {
    /// `file:///DIR` or `s3://BUCKET/PREFIX`.
    pub archive: Option<String>,
    /// Events that are as old as this are cold.
    pub after: Duration,
    pub retention: RetentionLimits,
    /// Between two rounds.
    pub every: Duration,
}

pub(super) struct Caretaker {
    pub(super) host: HostInstance,
    pub(super) hosts: watch::Receiver<Arc<Vec<HostEntry>>>,
    pub(super) curator: Archiver,
    pub(super) care: Care,
}

impl Caretaker {
    /// For as long as the daemon runs, if there is anything to do.
    pub(super) async fn run(self) {
        if self.care.archive.is_none() && self.care.retention == RetentionLimits::default() {
            return;
        }
        let mut pause = self.care.every;
        // So that not all hosts that were started together do the same at the same time.
        let mut hasher = DefaultHasher::new();
        self.host.hash(&mut hasher);
        let mut round = hasher.finish() % SELDOM;
        loop {
            tokio::time::sleep(pause).await;
            let done = self.look(round.is_multiple_of(SELDOM)).await;
            round += 1;
            let failing = self.care.every < pause;
            match done {
                Ok(()) => {
                    if failing {
                        tracing::info!("the logs are looked after again");
                    }
                    pause = self.care.every;
                }
                Err(error) => {
                    pause = (pause * 2).min(self.care.every * PAUSE_MAX);
                    let why = chain(&error);
                    tracing::warn!(why, next_try = ?pause, "the logs grow, because they cannot be looked after");
                }
            }
        }
    }

    async fn look(&self, everywhere: bool) -> Result<(), LogMaintenanceError> {
        if self.care.archive.is_some() {
            let after = self.care.after;
            tell(self.curator.archive_own_streams(after).await?);
            if everywhere {
                tell(self.curator.archive_abandoned_streams(after, self.fellows()).await?);
            }
        }
        if everywhere
            && self.care.retention != RetentionLimits::default()
            && self.is_ours("retention")
        {
            let expired =
                self.curator.delete_expired_streams(self.care.retention, self.fellows()).await?;
            for session in expired.streams {
                tracing::info!(%session, "a session was deleted, because it is not to be kept");
            }
        }
        Ok(())
    }

    /// Whether it falls to us, among all who live.
    fn is_ours(&self, what: &str) -> bool {
        (self.fellows().is_ours)(what)
    }

    fn fellows(&self) -> PeerHosts {
        let (ours, hosts) = (self.host.clone(), self.hosts.clone());
        let living =
            move || hosts.borrow().iter().map(|it| it.host.clone()).collect::<Vec<HostInstance>>();
        let all = living.clone();
        let is_alive =
            move |it: &str| HostInstance::parse(it).is_some_and(|it| living().contains(&it));
        let is_ours = move |it: &str| heir(it, &all()) == Some(&ours);
        PeerHosts { is_alive: Arc::new(is_alive), is_ours: Arc::new(is_ours) }
    }
}

fn tell(moved: ArchivingReport) {
    let ArchivingReport { segments, raw_bytes, stored_bytes, .. } = moved;
    if segments != 0 {
        tracing::info!(segments, raw_bytes, stored_bytes, "cold events are in the archive");
    }
}
