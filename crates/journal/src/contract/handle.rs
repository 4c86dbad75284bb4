//! A journal as the suite uses it. If it has an archive, whatever has been written is cold at once, so that every
//! read meets segments.

use crate::{
    Append, AppendError, Claim, Curator, Event, Fellows, Journal, ReadError, Stream, UpkeepError,
};
use std::{future::Future, path::Path, sync::Arc, time::Duration};

pub(super) struct Handle {
    journal: Journal,
    /// Who moves everything to the archive.
    curator: Option<Curator>,
}

impl Clone for Handle {
    fn clone(&self) -> Handle {
        Handle { journal: self.journal.clone(), curator: self.curator.clone() }
    }
}

impl Handle {
    pub(super) fn new(journal: Journal) -> Handle {
        Handle { journal, curator: None }
    }

    pub(super) fn with_archive(self, dir: &Path) -> Handle {
        let curator = self.journal.curator().unwrap();
        curator.open_archive(&format!("file://{}", dir.display())).unwrap();
        Handle { curator: Some(curator), ..self }
    }

    pub(super) fn claim(&self, stream: &str) -> Result<Claim, AppendError> {
        self.journal.claim(stream)
    }

    pub(super) fn append(&self, batch: &[Append]) -> Vec<Result<u64, AppendError>> {
        let outcomes = self.journal.append(batch);
        if let Some(curator) = &self.curator {
            wait(curator.move_own(Duration::ZERO)).unwrap();
            assert_eq!(curator.gauges().hot_streams, 0);
        }
        outcomes
    }

    pub(super) fn read(
        &self,
        stream: &str,
        after: u64,
        events_max: usize,
        bytes_max: usize,
    ) -> Result<Vec<Event>, ReadError> {
        self.journal.read(stream, after, events_max, bytes_max)
    }

    pub(super) fn streams(&self) -> Result<Vec<Stream>, ReadError> {
        self.journal.streams()
    }

    pub(super) fn delete(&self, stream: &str) -> Result<(), AppendError> {
        self.journal.delete(stream)
    }

    /// Moves also what somebody else has written.
    pub(super) fn upkeep(&self) -> Result<(), UpkeepError> {
        if let Some(curator) = &self.curator {
            let fellows = Fellows { is_alive: Arc::new(|_| false), is_ours: Arc::new(|_| true) };
            wait(curator.move_left(Duration::ZERO, fellows)).unwrap();
        }
        self.journal.upkeep()
    }
}

fn wait<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
}
