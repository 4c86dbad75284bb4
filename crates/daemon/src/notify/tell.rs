//! Telling one message: by a command under a guard, and by a web hook.

use super::{message::Message, settings::NotifySettings};
use crate::{effects::Ground, environment};
use bytes::Bytes;
use jackfield_agents::{AgentEvent, AgentExit, LaunchCommand, StdoutFormat, StopUrgency};
use jackfield_protocol::chain;
use reqwest::{Client, Url, header::CONTENT_TYPE, redirect::Policy};
use std::{path::PathBuf, sync::OnceLock, time::Duration};
use tokio::{sync::mpsc, time::timeout};

/// Whoever needs longer to tell somebody something is stuck.
const TELL_MAX: Duration = Duration::from_secs(10);
/// What is ours in the daemon's environment, its token above all.
const OURS: &str = "JACKFIELD_";

pub(super) struct Teller {
    command: Option<Vec<String>>,
    url: Option<Url>,
    ground: Ground,
    /// Made at the first use: it reads the machine's certificates.
    client: OnceLock<Option<Client>>,
}

impl Teller {
    pub(super) fn new(settings: &NotifySettings, ground: Ground) -> Teller {
        let url = settings.url.as_deref().and_then(|it| Url::parse(it).ok());
        Teller { command: settings.command.clone(), url, ground, client: OnceLock::new() }
    }

    pub(super) async fn tell(&self, number: u64, message: Message) {
        let event = message.event.as_str();
        if let Some(argv) = &self.command
            && let Err(why) = self.run(argv, number, &message).await
        {
            tracing::warn!(session = %message.session, event, why, "the notify command failed");
        }
        if let Some(url) = &self.url
            && let Err(why) = self.post(url, message.json).await
        {
            tracing::warn!(session = %message.session, event, why, "the notify hook failed");
        }
    }

    async fn run(&self, argv: &[String], number: u64, message: &Message) -> Result<(), String> {
        let ours = environment::ours().filter(|(name, _)| !name.starts_with(OURS));
        let about = [
            ("JACKFIELD_EVENT".to_owned(), message.event.as_str().to_owned()),
            ("JACKFIELD_SESSION".to_owned(), message.session.to_string()),
        ];
        let (env, cwd) = (ours.chain(about).collect(), PathBuf::from("/"));
        let launch =
            LaunchCommand { argv: argv.to_vec(), cwd, env, stdout_format: StdoutFormat::Bytes };
        let Ground { guard, ledger, mark } = &self.ground;
        let (mark, (events, mut heard)) = (format!("{mark}-n{number}"), mpsc::channel(16));
        let mut hook = jackfield_agents::spawn_agent(guard, &launch, &mark, ledger, events, ())
            .map_err(|error| chain(&error))?;
        // A fresh pipe takes so little, and a command that does not read it is no fault.
        let _full = hook.send(Bytes::from(message.json.clone()));
        hook.close_stdin();
        let ended = timeout(TELL_MAX, end_of(&mut heard)).await;
        if ended.is_err() {
            hook.stop(StopUrgency::Now);
        }
        while heard.recv().await.is_some() {}
        match ended {
            Ok(Some(exit)) if exit.code == Some(0) => Ok(()),
            Ok(Some(exit)) => Err(exit.to_string()),
            Ok(None) => Err("it was lost".to_owned()),
            Err(_) => Err(format!("it had not ended after {} s and was ended", TELL_MAX.as_secs())),
        }
    }

    async fn post(&self, url: &Url, json: String) -> Result<(), String> {
        let Some(client) = self.client.get_or_init(client) else {
            return Err("there is no TLS on this machine".to_owned());
        };
        let request = client.post(url.clone()).header(CONTENT_TYPE, "application/json").body(json);
        let answer = request.send().await.map_err(|error| chain(&error.without_url()))?;
        let status = answer.status();
        if status.is_success() { Ok(()) } else { Err(format!("it was answered with {status}")) }
    }
}

/// Drops what is printed, up to the end.
async fn end_of(heard: &mut mpsc::Receiver<((), AgentEvent)>) -> Option<AgentExit> {
    loop {
        if let ((), AgentEvent::Gone(exit)) = heard.recv().await? {
            return Some(exit);
        }
    }
}

/// It follows nobody elsewhere: the address was checked, and another one was not.
fn client() -> Option<Client> {
    // Somebody else in this process may have chosen one already.
    let _chosen = rustls::crypto::ring::default_provider().install_default();
    let client = Client::builder().timeout(TELL_MAX).redirect(Policy::none()).no_proxy();
    let client = client.user_agent(concat!("jackfield/", env!("CARGO_PKG_VERSION")));
    client.build().inspect_err(|error| tracing::warn!(why = chain(error), "no web hooks")).ok()
}
