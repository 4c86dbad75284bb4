//! Servers that are reached over HTTP.

use super::server::chain;
use agent_client_protocol::v1::schema::{HttpHeader, McpServerHttp};
use reqwest::{
    Client, Url,
    header::{HeaderMap, HeaderName, HeaderValue},
    redirect::{Attempt, Policy},
};
use rmcp::transport::{
    StreamableHttpClientTransport,
    streamable_http_client::{StreamableHttpClientTransportConfig, StreamableHttpError},
};
use std::{error::Error, time::Duration};

/// An answer may take as long as a call; a connection may not.
const CONNECT_MAX: Duration = Duration::from_secs(15);
const REDIRECTS_MAX: usize = 5;

/// Streamable HTTP, by the SDK's own client.
pub(super) fn open(
    server: &McpServerHttp,
) -> Result<StreamableHttpClientTransport<Client>, String> {
    let url = parse(&server.url)?;
    let config = StreamableHttpClientTransportConfig::with_uri(url.as_str());
    Ok(StreamableHttpClientTransport::with_client(client(&server.headers)?, config))
}

pub(super) fn parse(url: &str) -> Result<Url, String> {
    let parsed = Url::parse(url).map_err(|error| format!("`{url}` is no address: {error}"))?;
    match parsed.scheme() {
        "http" | "https" => Ok(parsed),
        other => Err(format!("`{url}` is no address of a web server: it begins with `{other}:`")),
    }
}

/// Sends these headers with every request; there may be keys in them, so it goes nowhere else.
pub(super) fn client(headers: &[HttpHeader]) -> Result<Client, String> {
    let mut map = HeaderMap::new();
    for HttpHeader { name, value, .. } in headers {
        let bad =
            || format!("the header `{name}` cannot be sent: its name or its value is no good");
        let name = HeaderName::try_from(name.as_str()).map_err(|_| bad())?;
        let mut value = HeaderValue::try_from(value.as_str()).map_err(|_| bad())?;
        value.set_sensitive(true);
        map.append(name, value);
    }
    let client = crate::http::client().default_headers(map).connect_timeout(CONNECT_MAX);
    let client = client.redirect(Policy::custom(|attempt| {
        if is_home(&attempt) { attempt.follow() } else { attempt.stop() }
    }));
    client.build().map_err(|error| chain(&error))
}

fn is_home(attempt: &Attempt<'_>) -> bool {
    let first = attempt.previous().first();
    attempt.previous().len() <= REDIRECTS_MAX
        && first.is_some_and(|it| it.origin() == attempt.url().origin())
}

/// Why a transport failed, in words for people.
pub(super) fn why(error: &(dyn Error + Send + Sync + 'static)) -> String {
    match error.downcast_ref() {
        Some(StreamableHttpError::<reqwest::Error>::Client(error)) => why_not_asked(error),
        Some(StreamableHttpError::AuthRequired(_) | StreamableHttpError::InsufficientScope(_)) => {
            "it does not know who asks: give it a header with a key that it accepts".to_owned()
        }
        _ => chain(error),
    }
}

/// Without the address: there may be keys in it.
pub(super) fn why_not_asked(error: &reqwest::Error) -> String {
    if let Some(status) = error.status() {
        return format!("it answered with {status}");
    }
    let mut cause: &dyn Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    let what = if error.is_connect() { "there is no connection" } else { "the request failed" };
    if cause.is::<reqwest::Error>() { what.to_owned() } else { format!("{what}: {cause}") }
}
