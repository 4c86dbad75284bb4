//! Memory of clients that have left. The allocator keeps what is freed in small pieces: after 200 clients that did not
//! read had left, 250 MB stayed with the daemon. It gives them back when it is asked to.

use jackfield_agents::release_free_memory;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// After this many clients have left, free memory is returned. What fewer clients free is soon used again.
const CLIENTS: usize = 32;
/// Clients that leave together leave within this time.
const PAUSE: Duration = Duration::from_secs(1);

/// Counts clients that leave, and has their memory given back.
#[derive(Debug, Default)]
pub(crate) struct FreedMemory {
    left: usize,
    is_due: Arc<AtomicBool>,
}

impl FreedMemory {
    pub(crate) fn on_client_gone(&mut self) {
        self.left += 1;
        if CLIENTS <= self.left && !self.is_due.swap(true, Ordering::SeqCst) {
            self.left = 0;
            let is_due = Arc::clone(&self.is_due);
            // Not on the loop: it takes milliseconds. A thread that cannot be started is tried with the next client.
            let thread = thread::Builder::new().name("freed memory".into());
            let started = thread.spawn(move || {
                thread::sleep(PAUSE);
                is_due.store(false, Ordering::SeqCst);
                let begin = Instant::now();
                release_free_memory();
                let ms = begin.elapsed().as_millis();
                tracing::debug!(%ms, "memory of clients that left was given back");
            });
            if started.is_err() {
                self.is_due.store(false, Ordering::SeqCst);
            }
        }
    }
}
