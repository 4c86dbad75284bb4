//! `web_fetch`: a page of the public web, as text.
//!
//! A model names the address, and a page may have told it which: so nothing of this machine or of its
//! network is asked, whatever a name resolves to, and no page leads to another host unasked.

mod html;
mod reach;

use super::{
    Grant, Job, Outcome, Work,
    args::Args,
    cut::{OUTPUT_CHARS_MAX, cut},
};
use crate::http;
use jackfield_wire::chain;
use reqwest::{
    Response, Url,
    header::{ACCEPT, CONTENT_TYPE, LOCATION},
    redirect::Policy,
};
use std::{
    error::Error as _,
    net::{IpAddr, SocketAddr},
    time::Duration,
};

const FETCH_MAX: Duration = Duration::from_secs(30);
const HOPS_MAX: usize = 5;
/// Pages are smaller; what is not is not read to its end.
const PAGE_BYTES_MAX: usize = 2 << 20;
/// Of a page that only says what went wrong.
const ERROR_CHARS_MAX: usize = 2_000;
const TEXT_CHARS_MAX: usize = OUTPUT_CHARS_MAX - 300;
const ACCEPTED: &str = "text/html, text/*;q=0.9, application/json;q=0.9, */*;q=0.1";

#[derive(Debug)]
pub(crate) struct Fetch {
    url: Url,
    /// Which addresses may be asked.
    may_reach: fn(IpAddr) -> bool,
}

pub(super) fn prepare(args: &Args) -> Result<Job<Work>, String> {
    let text = args.text("url")?;
    let url = Url::parse(text.trim()).map_err(|error| format!("`{text}` is no URL: {error}."))?;
    let is_web = matches!(url.scheme(), "http" | "https");
    let Some(host) = url.host_str().filter(|_| is_web) else {
        return Err(format!("`{text}` is no page: only http and https can be fetched."));
    };
    if !url.username().is_empty() || url.password().is_some() {
        return Err("A URL with a name or a password in it is not fetched.".to_owned());
    }
    let port = url.port().map(|it| format!(":{it}")).unwrap_or_default();
    Ok(Job {
        input: args.input(),
        title: url.to_string(),
        kind: args.tool().kind,
        locations: Vec::new(),
        content: Vec::new(),
        grant: Grant::Ask(format!("fetch {host}{port}")),
        work: Work::Fetch(Fetch { url, may_reach: reach::is_public }),
    })
}

impl Fetch {
    pub(super) async fn run(self) -> Outcome {
        let outcome = tokio::time::timeout(FETCH_MAX, self.follow()).await;
        Outcome::or_failed(outcome.unwrap_or_else(|_| {
            let secs = FETCH_MAX.as_secs();
            Err(format!("`{}` has not answered within {secs} s.", self.url))
        }))
    }

    async fn follow(&self) -> Result<Outcome, String> {
        let mut url = self.url.clone();
        for _ in 0..HOPS_MAX {
            let answer = self.ask(&url).await?;
            let Some(next) = next(&url, &answer) else { return tell(&url, answer).await };
            if next.origin() != url.origin() && !is_same_host_made_safe(&url, &next) {
                let text = format!("`{url}` leads to another host: `{next}`. Fetch that instead.");
                return Ok(Outcome::told(text));
            }
            url = next;
        }
        Err(format!(
            "`{}` leads from one address to the next, more than {HOPS_MAX} times.",
            self.url
        ))
    }

    async fn ask(&self, url: &Url) -> Result<Response, String> {
        let addresses = self.find(url).await?;
        let host = url.host_str().unwrap_or_default();
        // It asks the very addresses that were looked at, and follows nobody by itself.
        let client =
            http::client().redirect(Policy::none()).no_proxy().resolve_to_addrs(host, &addresses);
        let client = client.build().map_err(|error| format!("No page can be fetched: {error}."))?;
        let answer = client.get(url.clone()).header(ACCEPT, ACCEPTED).send().await;
        answer.map_err(|error| why(url, &error))
    }

    async fn find(&self, url: &Url) -> Result<Vec<SocketAddr>, String> {
        let host = url.host_str().unwrap_or_default();
        let name = host.trim_start_matches('[').trim_end_matches(']');
        let port = url.port_or_known_default().unwrap_or(80);
        let found = tokio::net::lookup_host((name, port)).await;
        let found = found.map_err(|error| format!("`{host}` is not known: {error}."))?;
        let addresses: Vec<SocketAddr> = found.collect();
        match addresses.iter().find(|it| !(self.may_reach)(it.ip())) {
            None => Ok(addresses),
            Some(address) => Err(format!(
                "`{host}` is {}, an address of this machine or of its network. Only pages of the \
                 public web are fetched; for others, the user can allow a command in `shell`.",
                address.ip()
            )),
        }
    }
}

fn next(url: &Url, answer: &Response) -> Option<Url> {
    let location = answer.headers().get(LOCATION).filter(|_| answer.status().is_redirection())?;
    url.join(location.to_str().ok()?).ok()
}

/// Most pages of http are the same of https.
fn is_same_host_made_safe(url: &Url, next: &Url) -> bool {
    url.host() == next.host()
        && (url.scheme(), next.scheme()) == ("http", "https")
        && url.port().is_none()
        && next.port().is_none()
}

async fn tell(url: &Url, answer: Response) -> Result<Outcome, String> {
    let status = answer.status();
    let kind = answer.headers().get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let kind = kind.unwrap_or("text/plain").to_ascii_lowercase();
    if !is_text(&kind) {
        return Err(format!("`{url}` is no text, but {kind} (HTTP {status})."));
    }
    let (bytes, is_whole) = read(url, answer).await?;
    let text = String::from_utf8_lossy(&bytes);
    let text = if kind.contains("html") { html::to_text(&text) } else { text.into_owned() };
    if !status.is_success() {
        let text = cut(&text, ERROR_CHARS_MAX, "it is only what the server says about it");
        return Err(format!("`{url}` was answered with HTTP {status}.\n{text}"));
    }
    let mut text = cut(&text, TEXT_CHARS_MAX, "fetch a page about less");
    if text.trim().is_empty() {
        text = format!("`{url}` has no text; a script may make it in a browser.");
    }
    if !is_whole {
        text.push_str("\n[… the page is longer than what is read of one …]");
    }
    Ok(Outcome::told(text))
}

async fn read(url: &Url, mut answer: Response) -> Result<(Vec<u8>, bool), String> {
    let mut bytes = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(|error| why(url, &error))? {
        let room = PAGE_BYTES_MAX - bytes.len();
        bytes.extend_from_slice(&chunk[..room.min(chunk.len())]);
        if room < chunk.len() {
            return Ok((bytes, false));
        }
    }
    Ok((bytes, true))
}

fn is_text(kind: &str) -> bool {
    kind.starts_with("text/") || ["json", "xml", "javascript"].iter().any(|it| kind.contains(it))
}

/// An error of the HTTP client with its causes: the first words alone say little.
fn why(url: &Url, error: &reqwest::Error) -> String {
    let why = error.source().map(|it| format!(": {}", chain(it))).unwrap_or_default();
    format!("`{url}` could not be fetched{why}.")
}

#[cfg(test)]
mod tests;
