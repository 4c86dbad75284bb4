//! How many clients are still connected: the front ends when it has said goodbye to all of them.

use tokio::sync::watch;

/// Counts what is open.
#[derive(Debug, Clone)]
pub struct Open(watch::Sender<usize>);

/// One that is open, until it is dropped.
#[derive(Debug)]
pub(super) struct Guest(watch::Sender<usize>);

impl Open {
    pub(super) fn new() -> Open {
        Open(watch::Sender::new(0))
    }

    pub(super) fn enter(&self) -> Guest {
        self.0.send_modify(|count| *count += 1);
        Guest(self.0.clone())
    }

    /// Waits until everyone has left.
    pub async fn settled(&self) {
        // Our own sender keeps the channel open.
        let _ = self.0.subscribe().wait_for(|count| *count == 0).await;
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::Open;
    use futures_util::FutureExt as _;

    #[tokio::test]
    async fn it_is_settled_when_the_last_has_left() {
        let open = Open::new();
        open.settled().await;
        let [one, two] = [open.enter(), open.enter()];
        drop(one);
        assert!(open.settled().now_or_never().is_none());
        drop(two);
        open.settled().await;
    }
}
