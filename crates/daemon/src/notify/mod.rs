//! Telling people, by a command of theirs or a web hook, that an agent needs them, is done or failed.
//!
//! Nothing waits for it: messages go into a bounded queue, and a task tells a few at once, each within
//! a bound. A message that cannot be told is a line in the log.

mod message;
mod settings;
mod tell;

pub use settings::{Event, NotifySettings};

use crate::{clock, effects::Ground, environment};
use jackfield_hub::{Hub, Note};
use jackfield_protocol::redact::Redactor;
use message::Message;
use std::{sync::Arc, time::Duration};
use tell::Teller;
use tokio::{
    sync::{Semaphore, mpsc},
    task::{JoinHandle, JoinSet},
};

/// Messages that wait to be told; people do not read more at once.
const WAITING_MAX: usize = 64;
/// Hooks that run at once.
const AT_ONCE_MAX: usize = 4;
/// What a daemon that ends still gives to those who are being told.
const LAST_GRACE: Duration = Duration::from_secs(2);

pub(crate) struct Notify {
    settings: Option<NotifySettings>,
    ground: Ground,
    /// Made when there is something to tell: most daemons never do.
    queue: Option<Queue>,
}

struct Queue {
    messages: mpsc::Sender<Message>,
    redactor: Redactor,
    task: JoinHandle<()>,
}

impl Notify {
    pub(crate) fn new(settings: Option<NotifySettings>, ground: Ground) -> Notify {
        Notify { settings, ground, queue: None }
    }

    /// Something happened that people may want to know.
    pub(crate) fn on_note(&mut self, note: &Note, hub: &Hub) {
        let Some(settings) = &self.settings else { return };
        let Some((event, session)) = message::about(note) else { return };
        if !settings.wants(event) {
            return;
        }
        let queue = self.queue.get_or_insert_with(|| Queue::new(settings, &self.ground));
        let message = Message::new(note, hub.session(session), clock::now(), &queue.redactor);
        let Some(message) = message else { return };
        if queue.messages.try_send(message).is_err() {
            tracing::warn!(%session, event = event.as_str(), "too much to tell; nobody is told this");
        }
    }

    /// From now on messages are told as these settings say; those that wait are told as before.
    pub(crate) fn change_settings(&mut self, settings: Option<NotifySettings>) {
        (self.settings, self.queue) = (settings, None);
    }

    /// The daemon ends: who is being told may hear the rest, for a moment.
    pub(crate) async fn finish(self) {
        let Some(Queue { messages, task, .. }) = self.queue else { return };
        drop(messages);
        // After that, the guards of commands end them by themselves.
        let _cut_short = tokio::time::timeout(LAST_GRACE, task).await;
    }
}

impl Queue {
    fn new(settings: &NotifySettings, ground: &Ground) -> Queue {
        let (messages, waiting) = mpsc::channel(WAITING_MAX);
        let redactor = Redactor::new(&environment::ours().collect::<Vec<_>>());
        let teller = Teller::new(settings, ground.clone());
        Queue { messages, redactor, task: tokio::spawn(run(waiting, Arc::new(teller))) }
    }
}

async fn run(mut waiting: mpsc::Receiver<Message>, teller: Arc<Teller>) {
    let places = Arc::new(Semaphore::new(AT_ONCE_MAX));
    let mut telling = JoinSet::new();
    let mut number = 0;
    while let Some(message) = waiting.recv().await {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        number += 1;
        let teller = Arc::clone(&teller);
        telling.spawn(async move {
            teller.tell(number, message).await;
            drop(place);
        });
        while telling.try_join_next().is_some() {}
    }
    while telling.join_next().await.is_some() {}
}
