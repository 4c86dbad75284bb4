//! Periodic maintenance of the logs: archives cold events and deletes expired sessions.
//!
//! Each host handles the logs it has written. The logs of dead hosts are divided among all live hosts,
//! and one of them deletes expired sessions. All of it runs in the background.

use super::host_service::rendezvous_owner;
use crate::fleet_config::LogMaintenanceConfig;
use jackfield_fleet::{HostEntry, HostInstance};
use jackfield_journal::{
    ArchivingReport, LogMaintenanceError, PeerHosts, RetentionLimits, StreamArchiver,
};
use jackfield_protocol::chain;
use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
};
use tokio::sync::watch;

/// Logs of dead hosts and expired sessions are handled once in this many rounds.
const SWEEP_ROUNDS: u64 = 12;

/// The longest delay after failures, in rounds.
const BACKOFF_ROUNDS_MAX: u32 = 12;

pub(super) struct LogMaintenance {
    pub(super) host: HostInstance,
    pub(super) hosts: watch::Receiver<Arc<Vec<HostEntry>>>,
    pub(super) archiver: StreamArchiver,
    pub(super) config: LogMaintenanceConfig,
}

impl LogMaintenance {
    /// Runs as long as the daemon, if there is anything to do.
    pub(super) async fn run(self) {
        if self.config.archive.is_none() && self.config.retention == RetentionLimits::default() {
            return;
        }
        let mut delay = self.config.every;
        // Spreads the work of hosts that were started at the same time.
        let mut hasher = DefaultHasher::new();
        self.host.hash(&mut hasher);
        let mut round = hasher.finish() % SWEEP_ROUNDS;
        loop {
            tokio::time::sleep(delay).await;
            let result = self.run_round(round.is_multiple_of(SWEEP_ROUNDS)).await;
            round += 1;
            let was_failing = self.config.every < delay;
            match result {
                Ok(()) => {
                    if was_failing {
                        tracing::info!("log maintenance works again");
                    }
                    delay = self.config.every;
                }
                Err(error) => {
                    delay = (delay * 2).min(self.config.every * BACKOFF_ROUNDS_MAX);
                    let why = chain(&error);
                    tracing::warn!(why, retry_in = ?delay, "log maintenance failed; the logs keep growing");
                }
            }
        }
    }

    async fn run_round(&self, is_sweep: bool) -> Result<(), LogMaintenanceError> {
        if self.config.archive.is_some() {
            let after = self.config.after;
            log_report(self.archiver.archive_own_streams(after).await?);
            if is_sweep {
                log_report(
                    self.archiver.archive_abandoned_streams(after, self.peer_hosts()).await?,
                );
            }
        }
        if is_sweep
            && self.config.retention != RetentionLimits::default()
            && self.is_ours("retention")
        {
            let expired = self
                .archiver
                .delete_expired_streams(self.config.retention, self.peer_hosts())
                .await?;
            for session in expired.streams {
                tracing::info!(%session, "deleted expired session");
            }
        }
        Ok(())
    }

    /// Whether this host is responsible, among all live hosts.
    fn is_ours(&self, what: &str) -> bool {
        (self.peer_hosts().is_ours)(what)
    }

    fn peer_hosts(&self) -> PeerHosts {
        let (this_host, hosts) = (self.host.clone(), self.hosts.clone());
        let list_live_hosts =
            move || hosts.borrow().iter().map(|it| it.host.clone()).collect::<Vec<HostInstance>>();
        let live_hosts = list_live_hosts.clone();
        let is_alive = move |it: &str| {
            HostInstance::parse(it).is_some_and(|it| list_live_hosts().contains(&it))
        };
        let is_ours = move |it: &str| rendezvous_owner(it, &live_hosts()) == Some(&this_host);
        PeerHosts { is_alive: Arc::new(is_alive), is_ours: Arc::new(is_ours) }
    }
}

fn log_report(report: ArchivingReport) {
    let ArchivingReport { segments, raw_bytes, stored_bytes, .. } = report;
    if segments != 0 {
        tracing::info!(segments, raw_bytes, stored_bytes, "archived cold events");
    }
}
