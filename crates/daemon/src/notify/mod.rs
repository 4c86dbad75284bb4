//! Notifies the user with a command, a webhook or Web Push when an agent needs them, is done or failed.
//!
//! The loop never waits for it: notifications go into a bounded queue, and a task delivers a few at once,
//! each with a timeout. A failed notification is logged.

mod delivery;
mod message;
mod push;
mod settings;

pub use settings::{NotifyEvent, NotifySettings};

use crate::{clock, environment, spawn_context::SpawnContext};
use delivery::NotificationSender;
use jackfield_hub::{Hub, Note};
use jackfield_protocol::redact::SecretRedactor;
use jackfield_web::login::DeviceLogins;
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
    /// The browsers that may have subscribed to notifications.
    logins: Option<Arc<DeviceLogins>>,
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
        UserNotifier { settings, spawn_context, logins: None, queue: None }
    }

    /// Also notifies the browsers that have subscribed.
    pub(crate) fn set_logins(&mut self, logins: Arc<DeviceLogins>) {
        (self.logins, self.queue) = (Some(logins), None);
    }

    /// Sends a notification if the settings want it.
    pub(crate) fn on_note(&mut self, note: &Note, hub: &Hub) {
        let Some((event, session)) = message::event_of_note(note) else { return };
        if self.settings.as_ref().is_some_and(|it| !it.wants(event)) || !self.has_recipients() {
            return;
        }
        let queue = self.queue.get_or_insert_with(|| {
            let settings = self.settings.clone().unwrap_or_default();
            NotificationQueue::new(&settings, &self.spawn_context, self.logins.clone())
        });
        let message =
            UserNotification::new(note, hub.session(session), clock::now(), &queue.redactor);
        let Some(message) = message else { return };
        if queue.messages.try_send(message).is_err() {
            tracing::warn!(%session, event = event.as_str(), "notification queue is full; dropping notification");
        }
    }

    fn has_recipients(&self) -> bool {
        self.settings.is_some() || self.logins.as_ref().is_some_and(|it| it.has_subscriptions())
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
    fn new(
        settings: &NotifySettings,
        spawn_context: &SpawnContext,
        logins: Option<Arc<DeviceLogins>>,
    ) -> NotificationQueue {
        let (messages, queued) = mpsc::channel(QUEUE_MAX);
        let redactor = SecretRedactor::new(&environment::process_env().collect::<Vec<_>>());
        let sender = NotificationSender::new(settings, spawn_context.clone(), logins);
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
