//! Talking to the server over HTTP.
//!
//! Dropping a future of this file closes the connection it uses: that is how a request is cancelled.

#[cfg(test)]
mod tests;

use super::{
    Answer, Ask, Delta, Listed,
    ask::{Refused, body},
    endpoint::{Endpoint, shown},
    fold::{Complaint, Fold},
    listed::listed,
    retry::{Patience, may_pass, retry_after},
    secrets::Secrets,
    stream::Stream,
    trouble::{Trouble, said},
};
use crate::{Settings, http};
use jackfield_wire::chain;
use reqwest::{
    Client, RequestBuilder, Response, Url,
    header::{ACCEPT, CONTENT_TYPE, LOCATION, RETRY_AFTER},
    redirect::Policy,
};
use serde_json::Value;
use std::{
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
    time::{Duration, SystemTime},
};
use tokio::time::{Instant, sleep, timeout, timeout_at};

/// Who does not take a connection within it will not.
const CONNECT_MAX: Duration = Duration::from_secs(15);
/// A list of models is no answer of a model.
const LIST_MAX: Duration = Duration::from_secs(20);
const PAGE_MAX: Duration = Duration::from_secs(5);
/// What a server says in an error.
const ERROR_BYTES_MAX: usize = 64 * 1024;
const LIST_BYTES_MAX: usize = 16 * 1024 * 1024;
const REDIRECTS_MAX: usize = 5;

pub(crate) struct Model {
    /// Made at the first use: it reads the machine's certificates. Or why there is none.
    client: OnceLock<Result<Client, String>>,
    endpoint: Endpoint,
    settings: Settings,
    secrets: Secrets,
    refused: Mutex<Refused>,
}

impl Model {
    pub(crate) fn new(settings: &Settings) -> Result<Model, Trouble> {
        Ok(Model {
            client: OnceLock::new(),
            endpoint: Endpoint::new(settings)?,
            settings: settings.clone(),
            secrets: Secrets::of(&settings.api_key),
            refused: Mutex::default(),
        })
    }

    /// Asks, and tells what is heard as it comes. Dropping the future cancels the request.
    pub(crate) async fn ask(
        &self,
        ask: &Ask,
        mut heard: impl FnMut(Delta<'_>) + Send,
    ) -> Result<Answer, Trouble> {
        let (response, deadline) = self.begin(ask).await?;
        let url = self.shown(&self.endpoint.chat);
        let names = ask.tools.iter().filter_map(|it| it["function"]["name"].as_str());
        let fold = Fold::new(names.map(str::to_owned).collect(), &fresh_mark());
        let stream = Stream { response, deadline, fold };
        match stream.read(&url, &self.settings, &mut heard).await? {
            Ok(answer) => Ok(answer),
            Err(complaint) => Err(self.complain(url, &complaint)),
        }
    }

    /// The models the server has.
    pub(crate) async fn models(&self) -> Result<Vec<Listed>, Trouble> {
        let url = &self.endpoint.models;
        let read = async {
            let response = self.send(self.client()?.get(url.clone()), url).await?;
            let (status, said) =
                (response.status().as_u16(), self.rest(response, LIST_BYTES_MAX).await);
            if status != 200 {
                return Err(self.status(status, url, &said));
            }
            let list = serde_json::from_str(&said).ok().and_then(|it: Value| listed(&it));
            let foreign = || Trouble::Foreign { url: self.shown(url), said: None };
            list.ok_or_else(foreign)
        };
        timeout(LIST_MAX, read).await.unwrap_or_else(|_| {
            let why = format!("no answer within {} s", LIST_MAX.as_secs());
            Err(Trouble::Network { url: self.shown(url), why })
        })
    }

    /// A page of the server's own, beside the common interface: `/props`, `/api/ps`. None if it has
    /// no such page.
    pub(crate) async fn page(&self, path: &str, body: Option<&Value>) -> Option<Value> {
        let mut url = self.endpoint.models.clone();
        let base = url.path().trim_end_matches("/models").trim_end_matches("/v1").to_owned();
        url.set_path(&format!("{base}{path}"));
        let client = self.client().ok()?;
        let request = match body {
            None => client.get(url.clone()),
            Some(body) => client.post(url.clone()).body(body.to_string()),
        };
        let read = async {
            let response = self.send(request, &url).await.ok()?;
            let is_there = response.status().is_success();
            let text = self.rest(response, LIST_BYTES_MAX).await;
            serde_json::from_str(&text).ok().filter(|_| is_there)
        };
        timeout(PAGE_MAX, read).await.ok().flatten()
    }

    /// Whether this model was offered tools and its server would not have them.
    pub(crate) fn refuses_tools(&self, model: &str) -> bool {
        self.refused().has(model, "tools")
    }

    /// Asks until the server begins to answer, or has a reason not to that will not pass.
    async fn begin(&self, ask: &Ask) -> Result<(Response, Instant), Trouble> {
        let (url, mut patience) = (&self.endpoint.chat, Patience::default());
        loop {
            let body = body(ask, &self.settings, &self.refused());
            let request = self.client()?.post(url.clone()).header(CONTENT_TYPE, "application/json");
            let request = request.header(ACCEPT, "text/event-stream").body(body.to_string());
            let deadline = Instant::now() + self.settings.first_token_max;
            let sent = timeout_at(deadline, self.send(request, url)).await;
            let (trouble, wait) = match sent {
                Err(_) => return Err(self.silent()),
                Ok(Ok(response)) if response.status().is_success() => {
                    return Ok((response, deadline));
                }
                Ok(Ok(response)) => {
                    let status = response.status().as_u16();
                    let wait = asked_wait(&response);
                    let said = self.words(response).await;
                    if let Some(field) = self.refused().note(&body, status, &said) {
                        tracing::warn!(
                            model = ask.model,
                            field,
                            "the server refused a field: it is left out"
                        );
                        continue;
                    }
                    let trouble = self.status(status, url, &said);
                    if !may_pass(status) {
                        return Err(trouble);
                    }
                    (trouble, wait)
                }
                Ok(Err(trouble)) => (trouble, None),
            };
            let Some(wait) = patience.next(wait) else { return Err(trouble) };
            tracing::info!(wait_ms = wait.as_millis(), "the server is asked again");
            sleep(wait).await;
        }
    }

    /// Sends a request with the key. An error means that no answer came.
    async fn send(&self, request: RequestBuilder, url: &Url) -> Result<Response, Trouble> {
        let request = match &self.endpoint.key {
            Some((name, value)) => request.header(name, value),
            None => request,
        };
        let network = |error: reqwest::Error| {
            let why = self.secrets.hide(&chain(&error.without_url()));
            Trouble::Network { url: self.shown(url), why }
        };
        request.send().await.map_err(network)
    }

    /// What a server says that did not answer; where it points to, if that is elsewhere.
    async fn words(&self, response: Response) -> String {
        let elsewhere = response.headers().get(LOCATION).and_then(|it| it.to_str().ok());
        if let Some(place) = elsewhere {
            return format!("It points to {place}. If you trust that, set OPENAI_BASE_URL to it.");
        }
        self.rest(response, ERROR_BYTES_MAX).await
    }

    /// The body as far as it comes, and fits.
    async fn rest(&self, mut response: Response, limit: usize) -> String {
        let mut bytes = Vec::new();
        while let Ok(Ok(Some(chunk))) = timeout(LIST_MAX, response.chunk()).await {
            let room = limit.saturating_sub(bytes.len());
            bytes.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if room <= chunk.len() {
                break;
            }
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn client(&self) -> Result<&Client, Trouble> {
        let client =
            self.client.get_or_init(|| client(&self.endpoint.chat).map_err(|error| chain(&error)));
        client
            .as_ref()
            .map_err(|why| Trouble::Settings(format!("There is no TLS on this machine: {why}.")))
    }

    fn status(&self, status: u16, url: &Url, words: &str) -> Trouble {
        Trouble::Status { status, url: self.shown(url), said: said(words, &self.secrets) }
    }

    fn complain(&self, url: String, complaint: &Complaint) -> Trouble {
        let said = said(&complaint.json, &self.secrets);
        match complaint.status {
            Some(status) => Trouble::Status { status, url, said },
            None => Trouble::InStream { url, said },
        }
    }

    fn silent(&self) -> Trouble {
        Trouble::silent_before(self.shown(&self.endpoint.chat), self.settings.first_token_max)
    }

    fn shown(&self, url: &Url) -> String {
        shown(url, &self.secrets)
    }

    fn refused(&self) -> MutexGuard<'_, Refused> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Proxies are those of the environment. A key follows nobody to another server, and a question
/// stays one: only a redirect that keeps the method is followed.
fn client(server: &Url) -> Result<Client, reqwest::Error> {
    let policy = Policy::custom(|attempt| {
        let keeps_method = matches!(attempt.status().as_u16(), 307 | 308);
        let stays =
            attempt.previous().last().is_some_and(|it| it.origin() == attempt.url().origin());
        if keeps_method && stays && attempt.previous().len() <= REDIRECTS_MAX {
            attempt.follow()
        } else {
            attempt.stop()
        }
    });
    let mut client = http::client().redirect(policy).connect_timeout(CONNECT_MAX);
    let is_here = matches!(server.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
    if is_here && server.scheme() == "http" {
        // Nobody shows a certificate there, and those of the machine take megabytes.
        client = client.tls_certs_only([]);
    }
    client.build()
}

fn asked_wait(response: &Response) -> Option<Duration> {
    let header = response.headers().get(RETRY_AFTER)?.to_str().ok()?;
    retry_after(header, SystemTime::now())
}

/// What the ids of calls begin with whose server gave them none.
fn fresh_mark() -> String {
    let mut bytes = [0; 6];
    // Without randomness an id is merely likely to be used twice.
    let _ = getrandom::fill(&mut bytes);
    bytes.iter().fold("call_".to_owned(), |text, it| format!("{text}{it:02x}"))
}
