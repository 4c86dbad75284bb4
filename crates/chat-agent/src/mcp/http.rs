//! The streamable HTTP transport, and the HTTP client that the SSE transport uses too.

use super::connection::error_chain;
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

/// A response may take as long as a call, but a connection may not.
const CONNECT_MAX: Duration = Duration::from_secs(15);
const REDIRECTS_MAX: usize = 5;

/// Uses the SDK's own client.
pub(super) fn connect(
    config: &McpServerHttp,
) -> Result<StreamableHttpClientTransport<Client>, String> {
    let url = parse_url(&config.url)?;
    let client = build_client(&config.headers)?;
    let config = StreamableHttpClientTransportConfig::with_uri(url.as_str());
    Ok(StreamableHttpClientTransport::with_client(client, config))
}

pub(super) fn parse_url(url: &str) -> Result<Url, String> {
    let parsed = Url::parse(url).map_err(|error| format!("`{url}` is not a valid URL: {error}"))?;
    match parsed.scheme() {
        "http" | "https" => Ok(parsed),
        other => Err(format!("`{url}` is not an HTTP URL: its scheme is `{other}`")),
    }
}

/// Builds a client that sends these headers with every request. They may contain keys, so redirects
/// to another origin are not followed.
pub(super) fn build_client(headers: &[HttpHeader]) -> Result<Client, String> {
    let mut map = HeaderMap::new();
    for HttpHeader { name, value, .. } in headers {
        let invalid_header =
            || format!("the header `{name}` cannot be sent: its name or its value is invalid");
        let name = HeaderName::try_from(name.as_str()).map_err(|_| invalid_header())?;
        let mut value = HeaderValue::try_from(value.as_str()).map_err(|_| invalid_header())?;
        value.set_sensitive(true);
        map.append(name, value);
    }
    let client = crate::http::client_builder().default_headers(map).connect_timeout(CONNECT_MAX);
    let client = client.redirect(Policy::custom(|attempt| {
        if is_same_origin(&attempt) { attempt.follow() } else { attempt.stop() }
    }));
    client.build().map_err(|error| error_chain(&error))
}

fn is_same_origin(attempt: &Attempt<'_>) -> bool {
    let first = attempt.previous().first();
    attempt.previous().len() <= REDIRECTS_MAX
        && first.is_some_and(|it| it.origin() == attempt.url().origin())
}

/// Describes an error of a transport for the user.
pub(super) fn describe_transport_error(error: &(dyn Error + Send + Sync + 'static)) -> String {
    match error.downcast_ref() {
        Some(StreamableHttpError::<reqwest::Error>::Client(error)) => describe_request_error(error),
        Some(StreamableHttpError::AuthRequired(_) | StreamableHttpError::InsufficientScope(_)) => {
            "it requires authentication: configure a header with a key that it accepts".to_owned()
        }
        _ => error_chain(error),
    }
}

/// Describes an error without the URL, which may contain keys.
pub(super) fn describe_request_error(error: &reqwest::Error) -> String {
    if let Some(status) = error.status() {
        return format!("it answered with {status}");
    }
    let mut cause: &dyn Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    let failure = if error.is_connect() { "failed to connect" } else { "the request failed" };
    if cause.is::<reqwest::Error>() { failure.to_owned() } else { format!("{failure}: {cause}") }
}
