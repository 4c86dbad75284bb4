//! One watch of the hub for all streams of a tenant.

use super::{
    ListEvent,
    list_state::{ChangeId, ListState},
};
use crate::rest::{RestState, runs::random_name};
use jackfield_hub_client::{HubClientError, HubConnection, HubMessage};
use jackfield_protocol::acp::Method;
use serde_json::{Value, json};
use std::{
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::sync::{Mutex as AsyncMutex, watch};

/// How long the watch continues without a stream. A client that reconnects finds the changes that it missed.
const LINGER: Duration = Duration::from_secs(10);
/// The delay before a lost connection is opened again.
const RECONNECT_DELAY: Duration = Duration::from_millis(250);

/// The watch of the hub, while there are streams.
#[derive(Debug, Default)]
pub(crate) struct ListWatch {
    current: AsyncMutex<Option<Arc<SharedLists>>>,
}

/// The lists, and a signal for their streams.
#[derive(Debug)]
struct SharedLists {
    state: Mutex<WatchState>,
    changed: watch::Sender<()>,
}

#[derive(Debug)]
struct WatchState {
    lists: ListState,
    has_ended: bool,
}

/// A stream that follows the lists. The watch ends some time after the last one.
#[derive(Debug)]
pub(super) struct ListSubscription {
    lists: Arc<SharedLists>,
    changed: watch::Receiver<()>,
}

impl ListWatch {
    /// Follows the lists. The first stream starts the watch.
    pub(super) async fn subscribe(
        &self,
        state: &Arc<RestState>,
    ) -> Result<ListSubscription, HubClientError> {
        let mut current = self.current.lock().await;
        if let Some(subscription) = current.as_ref().and_then(SharedLists::subscribe) {
            return Ok(subscription);
        }
        let mut lists = ListState::new(random_name().into());
        let (connection, mut answer) = open_watch(state).await?;
        lists.apply_lists(&mut answer);
        let (changed, _) = watch::channel(());
        let state_of_watch = Mutex::new(WatchState { lists, has_ended: false });
        let lists = Arc::new(SharedLists { state: state_of_watch, changed });
        let subscription = lists.subscribe().ok_or(HubClientError::Closed)?;
        *current = Some(lists.clone());
        tokio::spawn(run_watch(state.clone(), connection, lists));
        Ok(subscription)
    }
}

impl ListSubscription {
    /// Waits for a change.
    pub(super) async fn wait_changed(&mut self) {
        // The sender lives as long as `lists`.
        let _changed = self.changed.changed().await;
    }

    pub(super) fn last_id(&self) -> ChangeId {
        self.lists.lock().lists.last_id()
    }

    /// The changes after an id; `None` if they are not known any more.
    pub(super) fn changes_after(&self, id: &ChangeId) -> Option<Vec<(ChangeId, Arc<ListEvent>)>> {
        self.lists.lock().lists.changes_after(id)
    }

    /// All rows, and the id of the last change that they contain.
    pub(super) fn snapshot(&self) -> (ChangeId, Vec<Arc<ListEvent>>) {
        let state = self.lists.lock();
        (state.lists.last_id(), state.lists.rows())
    }
}

impl SharedLists {
    fn lock(&self) -> MutexGuard<'_, WatchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new stream, unless the watch has ended.
    fn subscribe(self: &Arc<SharedLists>) -> Option<ListSubscription> {
        let state = self.lock();
        let changed = (!state.has_ended).then(|| self.changed.subscribe())?;
        Some(ListSubscription { lists: self.clone(), changed })
    }

    fn update(&self, update: impl FnOnce(&mut ListState)) {
        update(&mut self.lock().lists);
        self.changed.send_replace(());
    }

    /// Waits until there was no stream for some time, and ends the watch.
    async fn wait_unused(&self) {
        loop {
            self.changed.closed().await;
            tokio::time::sleep(LINGER).await;
            let mut state = self.lock();
            if self.changed.receiver_count() == 0 {
                state.has_ended = true;
                return;
            }
        }
    }
}

/// Connects to the hub and starts a watch. Returns the current lists.
async fn open_watch(state: &RestState) -> Result<(HubConnection, Value), HubClientError> {
    let mut connection = state.hub.connect().await?;
    let lists = connection.call_method(Method::ControlWatch, &json!({})).await?;
    Ok((connection, lists))
}

/// Applies the changes of the hub until there are no streams.
async fn run_watch(state: Arc<RestState>, mut connection: HubConnection, lists: Arc<SharedLists>) {
    let mut unused = pin!(lists.wait_unused());
    loop {
        let message = tokio::select! {
            message = connection.next_message() => message,
            () = &mut unused => return,
        };
        match message {
            Ok(HubMessage::Frame(frame)) if frame.is_method(Method::ControlChanges) => {
                let mut changes = frame.params_value();
                if changes["restart"] == true {
                    // If this fails, the next message is an error, too.
                    let _sent = connection.send_request(Method::ControlWatch, &json!({})).await;
                } else {
                    lists.update(|it| it.apply_changes(&mut changes));
                }
            }
            Ok(HubMessage::Response(response)) => {
                if let Ok(mut answer) = response.into_result() {
                    lists.update(|it| it.apply_lists(&mut answer));
                }
            }
            Ok(HubMessage::Event(_) | HubMessage::Frame(_)) => {}
            Err(_) => {
                let reopened = tokio::select! {
                    reopened = reopen_watch(&state, &lists) => reopened,
                    () = &mut unused => return,
                };
                connection = reopened;
            }
        }
    }
}

/// Connects again; what changed meanwhile follows from the new lists.
async fn reopen_watch(state: &RestState, lists: &SharedLists) -> HubConnection {
    loop {
        tokio::time::sleep(RECONNECT_DELAY).await;
        if let Ok((connection, mut answer)) = open_watch(state).await {
            lists.update(|it| it.apply_lists(&mut answer));
            return connection;
        }
    }
}
