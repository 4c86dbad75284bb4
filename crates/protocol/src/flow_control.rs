//! Lets the loop pause and resume the reading of one peer. While it is paused, the kernel's buffers
//! fill up and slow the peer down.

use std::{
    sync::{Mutex, PoisonError},
    task::{Context, Poll, Waker},
};

/// Shared by the loop and one reader, which calls [`FlowControl::poll_reading`] before each read.
/// Reading is allowed at first.
#[derive(Debug, Default)]
pub struct FlowControl {
    state: Mutex<FlowState>,
}

#[derive(Debug, Default)]
struct FlowState {
    is_paused: bool,
    /// The reader, if it waits.
    reader: Option<Waker>,
}

impl FlowControl {
    pub fn pause_reading(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).is_paused = true;
    }

    pub fn resume_reading(&self) {
        let reader = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.is_paused = false;
            state.reader.take()
        };
        if let Some(waker) = reader {
            waker.wake();
        }
    }

    /// Ready while reading is allowed. Only the task that called it last is woken.
    pub fn poll_reading(&self, cx: &Context<'_>) -> Poll<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.is_paused {
            return Poll::Ready(());
        }
        state.reader = Some(cx.waker().clone());
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
    struct WakeCounter(AtomicUsize);

    impl Wake for WakeCounter {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn paused_reader_is_woken_once_when_reading_resumes() {
        let (flow_control, counter) = (FlowControl::default(), Arc::new(WakeCounter::default()));
        let waker = Waker::from(Arc::clone(&counter));
        let cx = Context::from_waker(&waker);
        assert_eq!(flow_control.poll_reading(&cx), Poll::Ready(()));
        flow_control.pause_reading();
        assert_eq!(flow_control.poll_reading(&cx), Poll::Pending);
        flow_control.pause_reading();
        assert_eq!(counter.0.load(Ordering::Relaxed), 0);
        flow_control.resume_reading();
        flow_control.resume_reading();
        assert_eq!(counter.0.load(Ordering::Relaxed), 1);
        assert_eq!(flow_control.poll_reading(&cx), Poll::Ready(()));
    }
}
