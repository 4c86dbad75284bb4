//! Lets the loop stop and resume the reading of one peer; the kernel then slows the peer itself.

use std::{
    sync::{Mutex, PoisonError},
    task::{Context, Poll, Waker},
};

/// Open at first. Whoever reads asks [`Valve::poll_open`] before each read.
#[derive(Debug, Default)]
pub struct Valve {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    closed: bool,
    waiting: Option<Waker>,
}

impl Valve {
    pub fn set_closed(&self, closed: bool) {
        let waiting = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.closed = closed;
            if closed { None } else { state.waiting.take() }
        };
        if let Some(waker) = waiting {
            waker.wake();
        }
    }

    /// Ready while it is open. For one task alone: the last that asked is woken.
    pub fn poll_open(&self, cx: &Context<'_>) -> Poll<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.closed {
            return Poll::Ready(());
        }
        state.waiting = Some(cx.waker().clone());
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    #[derive(Default)]
    struct Bell(AtomicUsize);

    impl Wake for Bell {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn whoever_waits_at_a_closed_valve_is_woken_once_when_it_opens() {
        let (valve, bell) = (Valve::default(), Arc::new(Bell::default()));
        let waker = Waker::from(Arc::clone(&bell));
        let cx = Context::from_waker(&waker);
        assert_eq!(valve.poll_open(&cx), Poll::Ready(()));
        valve.set_closed(true);
        assert_eq!(valve.poll_open(&cx), Poll::Pending);
        valve.set_closed(true);
        assert_eq!(bell.0.load(Ordering::Relaxed), 0);
        valve.set_closed(false);
        valve.set_closed(false);
        assert_eq!(bell.0.load(Ordering::Relaxed), 1);
        assert_eq!(valve.poll_open(&cx), Poll::Ready(()));
    }
}
