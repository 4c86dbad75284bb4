//! Delivers a notification by a command under a guard, by a webhook, and to browsers.

use super::{message::UserNotification, push::PushSender, settings::NotifySettings};
use crate::{environment, spawn_context::SpawnContext};
use bytes::Bytes;
use jackfield_agents::{AgentExit, AgentProcessEvent, LaunchCommand, StdoutFormat, StopUrgency};
use jackfield_protocol::chain;
use jackfield_web::login::DeviceLogins;
use reqwest::{Client, Url, header::CONTENT_TYPE, redirect::Policy};
use std::{
    path::PathBuf,
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio::{sync::mpsc, time::timeout};

/// The timeout of a hook.
const HOOK_TIMEOUT: Duration = Duration::from_secs(10);
/// The daemon's own variables, which include its token.
const OWN_PREFIX: &str = "JACKFIELD_";

pub(super) struct NotificationSender {
    command: Option<Vec<String>>,
    url: Option<Url>,
    spawn_context: SpawnContext,
    /// Created on first use, since it reads the machine's certificates.
    client: OnceLock<Option<Client>>,
    push: Option<PushSender>,
}

impl NotificationSender {
    pub(super) fn new(
        settings: &NotifySettings,
        spawn_context: SpawnContext,
        logins: Option<Arc<DeviceLogins>>,
    ) -> NotificationSender {
        let url = settings.url.as_deref().and_then(|it| Url::parse(it).ok());
        NotificationSender {
            command: settings.command.clone(),
            url,
            spawn_context,
            client: OnceLock::new(),
            push: logins.map(|it| PushSender::new(it, settings.push_content)),
        }
    }

    pub(super) async fn deliver(&self, number: u64, message: UserNotification) {
        let event = message.event.as_str();
        if let Some(push) = &self.push {
            push.deliver(&message).await;
        }
        if let Some(argv) = &self.command
            && let Err(why) = self.run_command(argv, number, &message).await
        {
            tracing::warn!(session = %message.session, event, why, "notify command failed");
        }
        if let Some(url) = &self.url
            && let Err(why) = self.post(url, message.json).await
        {
            tracing::warn!(session = %message.session, event, why, "notify webhook failed");
        }
    }

    async fn run_command(
        &self,
        argv: &[String],
        number: u64,
        message: &UserNotification,
    ) -> Result<(), String> {
        let inherited =
            environment::process_env().filter(|(name, _)| !name.starts_with(OWN_PREFIX));
        let event_env = [
            ("JACKFIELD_EVENT".to_owned(), message.event.as_str().to_owned()),
            ("JACKFIELD_SESSION".to_owned(), message.session.to_string()),
        ];
        let (env, cwd) = (inherited.chain(event_env).collect(), PathBuf::from("/"));
        let launch =
            LaunchCommand { argv: argv.to_vec(), cwd, env, stdout_format: StdoutFormat::Bytes };
        let SpawnContext { guard, ledger, mark } = &self.spawn_context;
        let (mark, (events, mut events_rx)) = (format!("{mark}-n{number}"), mpsc::channel(16));
        let mut hook = jackfield_agents::spawn_agent(guard, &launch, &mark, ledger, events, ())
            .map_err(|error| chain(&error))?;
        // It fits into a new pipe, and a command need not read it.
        let _full = hook.send(Bytes::from(message.json.clone()));
        hook.close_stdin();
        let ended = timeout(HOOK_TIMEOUT, wait_for_exit(&mut events_rx)).await;
        if ended.is_err() {
            hook.stop(StopUrgency::Now);
        }
        while events_rx.recv().await.is_some() {}
        match ended {
            Ok(Some(exit)) if exit.code == Some(0) => Ok(()),
            Ok(Some(exit)) => Err(exit.to_string()),
            Ok(None) => Err("the command was lost".to_owned()),
            Err(_) => Err(format!("the command did not end within {} s", HOOK_TIMEOUT.as_secs())),
        }
    }

    async fn post(&self, url: &Url, json: String) -> Result<(), String> {
        let Some(client) = self.client.get_or_init(create_client) else {
            return Err("TLS is not available on this machine".to_owned());
        };
        let request = client.post(url.clone()).header(CONTENT_TYPE, "application/json").body(json);
        let answer = request.send().await.map_err(|error| chain(&error.without_url()))?;
        let status = answer.status();
        if status.is_success() {
            Ok(())
        } else {
            Err(format!("the server responded with {status}"))
        }
    }
}

/// Discards the output until the command ends.
async fn wait_for_exit(
    events_rx: &mut mpsc::Receiver<((), AgentProcessEvent)>,
) -> Option<AgentExit> {
    loop {
        if let ((), AgentProcessEvent::Gone(exit)) = events_rx.recv().await? {
            return Some(exit);
        }
    }
}

/// Redirects are not followed, since only the configured address was checked.
fn create_client() -> Option<Client> {
    // Another part of this process may have installed one.
    let _ignored = rustls::crypto::ring::default_provider().install_default();
    let client = Client::builder().timeout(HOOK_TIMEOUT).redirect(Policy::none()).no_proxy();
    let client = client.user_agent(concat!("jackfield/", env!("CARGO_PKG_VERSION")));
    client
        .build()
        .inspect_err(|error| {
            tracing::warn!(why = chain(error), "failed to create the webhook client");
        })
        .ok()
}
