//! Notifies the user with a command or a webhook when an agent needs them, is done or failed.
//!
//! The loop never waits for it: notifications go into a bounded queue, and a task delivers a few at once,
//! each with a timeout. A failed notification is logged.

mod delivery;
mod message;
mod settings;

pub use settings::{NotifyEvent, NotifySettings};

use crate::{clock, environment, spawn_context::SpawnContext};
use delivery::NotificationSender;
use jackfield_hub::{Hub, Note};
use jackfield_protocol::redact::SecretRedactor;
use message::UserNotification;
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::{Semaphore, mpsc},
    task::{JoinHandle, JoinSet},
};

/// Queued notifications.
const QUEUE_MAX: usize = 64;
/// Hooks that run at once.
const HOOKS_MAX: usize = 4;
/// How long a stopping daemon waits for running hooks.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

pub(crate) struct UserNotifier {
    settings: Option<NotifySettings>,
    spawn_context: SpawnContext,
    /// Created on first use.
    queue: Option<NotificationQueue>,
}

struct NotificationQueue {
    messages: mpsc::Sender<UserNotification>,
    redactor: SecretRedactor,
    task: JoinHandle<()>,
}

impl UserNotifier {
    pub(crate) fn new(
        settings: Option<NotifySettings>,
        spawn_context: SpawnContext,
    ) -> UserNotifier {
        UserNotifier { settings, spawn_context, queue: None }
    }

    /// Sends a notification if the settings want it.
    pub(crate) fn on_note(&mut self, note: &Note, hub: &Hub) {
        let Some(settings) = &self.settings else { return };
        let Some((event, session)) = message::event_of_note(note) else { return };
        if !settings.wants(event) {
            return;
        }
        let queue =
            self.queue.get_or_insert_with(|| NotificationQueue::new(settings, &self.spawn_context));
        let message =
            UserNotification::new(note, hub.session(session), clock::now(), &queue.redactor);
        let Some(message) = message else { return };
        if queue.messages.try_send(message).is_err() {
            tracing::warn!(%session, event = event.as_str(), "notification queue is full; dropping notification");
        }
    }

    /// Applies new settings; queued notifications still use the old ones.
    pub(crate) fn change_settings(&mut self, settings: Option<NotifySettings>) {
        (self.settings, self.queue) = (settings, None);
    }

    /// Waits a moment for running hooks.
    pub(crate) async fn finish(self) {
        let Some(NotificationQueue { messages, task, .. }) = self.queue else { return };
        drop(messages);
        // After that, the guards of commands end them.
        let _timed_out = tokio::time::timeout(STOP_TIMEOUT, task).await;
    }
}

impl NotificationQueue {
    fn new(settings: &NotifySettings, spawn_context: &SpawnContext) -> NotificationQueue {
        let (messages, queued) = mpsc::channel(QUEUE_MAX);
        let redactor = SecretRedactor::new(&environment::process_env().collect::<Vec<_>>());
        let sender = NotificationSender::new(settings, spawn_context.clone());
        NotificationQueue {
            messages,
            redactor,
            task: tokio::spawn(deliver_queued(queued, Arc::new(sender))),
        }
    }
}

async fn deliver_queued(
    mut queued: mpsc::Receiver<UserNotification>,
    sender: Arc<NotificationSender>,
) {
    let permits = Arc::new(Semaphore::new(HOOKS_MAX));
    let mut deliveries = JoinSet::new();
    let mut number = 0;
    while let Some(message) = queued.recv().await {
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
        number += 1;
        let sender = Arc::clone(&sender);
        deliveries.spawn(async move {
            sender.deliver(number, message).await;
            drop(permit);
        });
        while deliveries.try_join_next().is_some() {}
    }
    while deliveries.join_next().await.is_some() {}
}
