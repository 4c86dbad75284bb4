//! Returns memory after clients disconnect. The allocator keeps small freed pieces: after 200
//! clients that did not read had disconnected, the daemon kept 250 MB. It returns them on request.

use jackfield_agents::release_free_memory;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// The number of disconnected clients after which free memory is returned. The memory of fewer
/// clients is soon reused.
const CLIENTS_MIN: usize = 32;
/// Clients that disconnect together do so within this time.
const SETTLE_TIME: Duration = Duration::from_secs(1);

/// Counts disconnected clients and returns their memory.
#[derive(Debug, Default)]
pub(crate) struct FreedMemory {
    disconnected: usize,
    is_due: Arc<AtomicBool>,
}

impl FreedMemory {
    pub(crate) fn on_client_gone(&mut self) {
        self.disconnected += 1;
        if CLIENTS_MIN <= self.disconnected && !self.is_due.swap(true, Ordering::SeqCst) {
            self.disconnected = 0;
            let is_due = Arc::clone(&self.is_due);
            // Not on the loop, since it takes milliseconds. If no thread can be started, the next
            // client tries again.
            let thread = thread::Builder::new().name("freed memory".into());
            let thread_result = thread.spawn(move || {
                thread::sleep(SETTLE_TIME);
                is_due.store(false, Ordering::SeqCst);
                let started_at = Instant::now();
                release_free_memory();
                let ms = started_at.elapsed().as_millis();
                tracing::debug!(%ms, "returned free memory of disconnected clients");
            });
            if thread_result.is_err() {
                self.is_due.store(false, Ordering::SeqCst);
            }
        }
    }
}
