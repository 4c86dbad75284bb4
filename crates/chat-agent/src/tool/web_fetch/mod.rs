//! The tool `web_fetch`: fetches a page of the public web as text.
//!
//! The model chooses the URL, and a page may have suggested it. Therefore no address of this
//! machine or of its network is contacted, whatever a name resolves to, and a redirect to another
//! host is not followed.

mod html_text;
mod public_address;
#[cfg(test)]
mod tests;

use super::{
    PreparedCall, RequiredPermission, ToolOutcome, ToolWork,
    arguments::ToolArguments,
    truncate::{OUTPUT_CHARS_MAX, truncate_middle},
};
use crate::http;
use jackfield_protocol::chain;
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
const REDIRECTS_MAX: usize = 5;
/// Longer pages are read up to this limit.
const PAGE_BYTES_MAX: usize = 2 << 20;
/// The limit of an error page.
const ERROR_CHARS_MAX: usize = 2_000;
const TEXT_CHARS_MAX: usize = OUTPUT_CHARS_MAX - 300;
const ACCEPTED_TYPES: &str = "text/html, text/*;q=0.9, application/json;q=0.9, */*;q=0.1";

#[derive(Debug)]
pub(crate) struct PageFetch {
    url: Url,
    /// Whether an address may be contacted.
    is_allowed: fn(IpAddr) -> bool,
}

pub(super) fn prepare(args: &ToolArguments) -> Result<PreparedCall<ToolWork>, String> {
    let text = args.required_text("url")?;
    let url = Url::parse(text.trim())
        .map_err(|error| format!("`{text}` is not a valid URL: {error}."))?;
    let is_http = matches!(url.scheme(), "http" | "https");
    let Some(host) = url.host_str().filter(|_| is_http) else {
        return Err(format!("`{text}` cannot be fetched: only http and https are supported."));
    };
    if !url.username().is_empty() || url.password().is_some() {
        return Err("A URL with a user name or a password is not fetched.".to_owned());
    }
    let port = url.port().map(|it| format!(":{it}")).unwrap_or_default();
    Ok(PreparedCall {
        input: args.to_input(),
        title: url.to_string(),
        kind: args.tool().kind,
        locations: Vec::new(),
        content: Vec::new(),
        permission: RequiredPermission::Named(format!("fetch {host}{port}")),
        work: ToolWork::Fetch(PageFetch { url, is_allowed: public_address::is_public }),
    })
}

impl PageFetch {
    pub(super) async fn run(self) -> ToolOutcome {
        let outcome = tokio::time::timeout(FETCH_MAX, self.fetch_page()).await;
        ToolOutcome::from_result(outcome.unwrap_or_else(|_| {
            let secs = FETCH_MAX.as_secs();
            Err(format!("`{}` has not answered within {secs} s.", self.url))
        }))
    }

    /// Fetches the page and follows redirects within the same host.
    async fn fetch_page(&self) -> Result<ToolOutcome, String> {
        let mut url = self.url.clone();
        for _ in 0..REDIRECTS_MAX {
            let response = self.send_request(&url).await?;
            let Some(target) = redirect_target(&url, &response) else {
                return to_outcome(&url, response).await;
            };
            if target.origin() != url.origin() && !is_https_upgrade(&url, &target) {
                let text =
                    format!("`{url}` redirects to another host: `{target}`. Fetch that instead.");
                return Ok(ToolOutcome::success(text));
            }
            url = target;
        }
        Err(format!("`{}` redirects more than {REDIRECTS_MAX} times.", self.url))
    }

    async fn send_request(&self, url: &Url) -> Result<Response, String> {
        let addresses = self.resolve_host(url).await?;
        let host = url.host_str().unwrap_or_default();
        // The client uses exactly the addresses that were checked, and follows no redirect by
        // itself.
        let client = http::client_builder()
            .redirect(Policy::none())
            .no_proxy()
            .resolve_to_addrs(host, &addresses);
        let client = client
            .build()
            .map_err(|error| format!("Failed to set up the HTTP client: {error}."))?;
        let response = client.get(url.clone()).header(ACCEPT, ACCEPTED_TYPES).send().await;
        response.map_err(|error| describe_error(url, &error))
    }

    async fn resolve_host(&self, url: &Url) -> Result<Vec<SocketAddr>, String> {
        let host = url.host_str().unwrap_or_default();
        let name = host.trim_start_matches('[').trim_end_matches(']');
        let port = url.port_or_known_default().unwrap_or(80);
        let found = tokio::net::lookup_host((name, port)).await;
        let found = found.map_err(|error| format!("`{host}` cannot be resolved: {error}."))?;
        let addresses: Vec<SocketAddr> = found.collect();
        match addresses.iter().find(|it| !(self.is_allowed)(it.ip())) {
            None => Ok(addresses),
            Some(address) => Err(format!(
                "`{host}` is {}, an address of this machine or of its network. Only pages of the \
                 public web are fetched; for others, the user can allow a command in `shell`.",
                address.ip()
            )),
        }
    }
}

fn redirect_target(url: &Url, response: &Response) -> Option<Url> {
    let is_redirect = response.status().is_redirection();
    let location = response.headers().get(LOCATION).filter(|_| is_redirect)?;
    url.join(location.to_str().ok()?).ok()
}

/// Whether a redirect leads from http to https on the same host, as most sites do.
fn is_https_upgrade(url: &Url, target: &Url) -> bool {
    url.host() == target.host()
        && (url.scheme(), target.scheme()) == ("http", "https")
        && url.port().is_none()
        && target.port().is_none()
}

async fn to_outcome(url: &Url, response: Response) -> Result<ToolOutcome, String> {
    let status = response.status();
    let content_type = response.headers().get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let content_type = content_type.unwrap_or("text/plain").to_ascii_lowercase();
    if !is_text_type(&content_type) {
        return Err(format!("`{url}` is not text, but {content_type} (HTTP {status})."));
    }
    let (bytes, is_complete) = read_body(url, response).await?;
    let text = String::from_utf8_lossy(&bytes);
    let is_html = content_type.contains("html");
    let text = if is_html { html_text::to_text(&text) } else { text.into_owned() };
    if !status.is_success() {
        let text = truncate_middle(&text, ERROR_CHARS_MAX, "it is only an error page");
        return Err(format!("`{url}` was answered with HTTP {status}.\n{text}"));
    }
    let mut text = truncate_middle(&text, TEXT_CHARS_MAX, "fetch a page about less");
    if text.trim().is_empty() {
        text = format!("`{url}` has no text; a browser may create it with a script.");
    }
    if !is_complete {
        text.push_str("\n[… the page is longer than the limit …]");
    }
    Ok(ToolOutcome::success(text))
}

/// Reads the body up to the limit. Returns whether it is complete.
async fn read_body(url: &Url, mut response: Response) -> Result<(Vec<u8>, bool), String> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| describe_error(url, &error))? {
        let room = PAGE_BYTES_MAX - bytes.len();
        bytes.extend_from_slice(&chunk[..room.min(chunk.len())]);
        if room < chunk.len() {
            return Ok((bytes, false));
        }
    }
    Ok((bytes, true))
}

fn is_text_type(content_type: &str) -> bool {
    let is_structured = |it: &&str| content_type.contains(*it);
    content_type.starts_with("text/") || ["json", "xml", "javascript"].iter().any(is_structured)
}

/// Describes an error of the HTTP client with its causes, because the first message says little.
fn describe_error(url: &Url, error: &reqwest::Error) -> String {
    let cause = error.source().map(|it| format!(": {}", chain(it))).unwrap_or_default();
    format!("`{url}` could not be fetched{cause}.")
}
