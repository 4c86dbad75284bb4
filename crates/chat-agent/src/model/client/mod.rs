//! Sends requests to the model server over HTTP.
//!
//! Dropping a future of this module closes the connection it uses. This is how a request is
//! canceled.

#[cfg(test)]
mod tests;

use super::{
    ModelInfo, ModelRequest, ModelResponse, ResponseDelta,
    accumulator::{InStreamError, ResponseAccumulator},
    endpoint::{ModelEndpoint, redact_url},
    error::{ModelError, extract_server_message},
    model_list::parse_model_list,
    request_body::{RejectedFields, build_body},
    response_stream::ResponseStream,
    retry::{RetryBackoff, is_retryable, parse_retry_after},
};
use crate::{ChatSettings, http};
use jackfield_protocol::{chain, redact::SecretRedactor};
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

/// A server that does not accept a connection within this time is considered unreachable.
const CONNECT_MAX: Duration = Duration::from_secs(15);
/// A list of models needs no inference, so it comes sooner than a response of a model.
const MODEL_LIST_MAX: Duration = Duration::from_secs(20);
const EXTRA_PAGE_MAX: Duration = Duration::from_secs(5);
/// The limit of an error body.
const ERROR_BYTES_MAX: usize = 64 * 1024;
const MODEL_LIST_BYTES_MAX: usize = 16 * 1024 * 1024;
const REDIRECTS_MAX: usize = 5;

pub(crate) struct ModelClient {
    /// Created on first use, because it loads the root certificates. Or why this failed.
    http_client: OnceLock<Result<Client, String>>,
    endpoint: ModelEndpoint,
    settings: ChatSettings,
    /// Redacts the API key, which a server may repeat.
    redactor: SecretRedactor,
    rejected_fields: Mutex<RejectedFields>,
}

impl ModelClient {
    pub(crate) fn new(settings: &ChatSettings) -> Result<ModelClient, ModelError> {
        let secrets = [("OPENAI_API_KEY".to_owned(), settings.api_key.clone())];
        Ok(ModelClient {
            http_client: OnceLock::new(),
            endpoint: ModelEndpoint::new(settings)?,
            settings: settings.clone(),
            redactor: SecretRedactor::new(&secrets),
            rejected_fields: Mutex::default(),
        })
    }

    /// Sends a request and calls `on_delta` for each fragment of the response. Dropping the future
    /// cancels the request.
    pub(crate) async fn send_request(
        &self,
        request: &ModelRequest,
        mut on_delta: impl FnMut(ResponseDelta<'_>) + Send,
    ) -> Result<ModelResponse, ModelError> {
        let (response, deadline) = self.start_response(request).await?;
        let url = self.redact_url(&self.endpoint.chat_url);
        let names = request.tools.iter().filter_map(|it| it["function"]["name"].as_str());
        let names = names.map(str::to_owned).collect();
        let accumulator = ResponseAccumulator::new(names, &new_id_prefix());
        let stream = ResponseStream { response, deadline, accumulator };
        match stream.read(&url, &self.settings, &mut on_delta).await? {
            Ok(response) => Ok(response),
            Err(error) => Err(self.in_stream_error(url, &error)),
        }
    }

    pub(crate) async fn list_models(&self) -> Result<Vec<ModelInfo>, ModelError> {
        let url = &self.endpoint.models_url;
        let read = async {
            let response = self.send(self.http_client()?.get(url.clone()), url).await?;
            let status = response.status().as_u16();
            let body = self.read_body(response, MODEL_LIST_BYTES_MAX).await;
            if status != 200 {
                return Err(self.status_error(status, url, &body));
            }
            let list = serde_json::from_str(&body).ok().and_then(|it: Value| parse_model_list(&it));
            list.ok_or_else(|| ModelError::UnexpectedFormat {
                url: self.redact_url(url),
                server_message: None,
            })
        };
        timeout(MODEL_LIST_MAX, read).await.unwrap_or_else(|_| {
            let cause = format!("no response within {} s", MODEL_LIST_MAX.as_secs());
            Err(ModelError::Network { url: self.redact_url(url), cause })
        })
    }

    /// Reads a page that is specific to one kind of server, such as `/props` or `/api/ps`. Returns
    /// `None` if the server does not have it.
    pub(crate) async fn read_extra_page(&self, path: &str, body: Option<&Value>) -> Option<Value> {
        let mut url = self.endpoint.models_url.clone();
        let base = url.path().trim_end_matches("/models").trim_end_matches("/v1").to_owned();
        url.set_path(&format!("{base}{path}"));
        let client = self.http_client().ok()?;
        let request = match body {
            None => client.get(url.clone()),
            Some(body) => client.post(url.clone()).body(body.to_string()),
        };
        let read = async {
            let response = self.send(request, &url).await.ok()?;
            let is_success = response.status().is_success();
            let text = self.read_body(response, MODEL_LIST_BYTES_MAX).await;
            serde_json::from_str(&text).ok().filter(|_| is_success)
        };
        timeout(EXTRA_PAGE_MAX, read).await.ok().flatten()
    }

    /// Whether the server rejected a request because it offered tools to this model.
    pub(crate) fn rejects_tools(&self, model: &str) -> bool {
        self.rejected_fields().contains(model, "tools")
    }

    /// Sends the request until the server starts a response. Retries temporary errors, and leaves
    /// out optional fields that the server rejects.
    async fn start_response(
        &self,
        request: &ModelRequest,
    ) -> Result<(Response, Instant), ModelError> {
        let (url, mut backoff) = (&self.endpoint.chat_url, RetryBackoff::default());
        loop {
            let body = build_body(request, &self.settings, &self.rejected_fields());
            let post =
                self.http_client()?.post(url.clone()).header(CONTENT_TYPE, "application/json");
            let post = post.header(ACCEPT, "text/event-stream").body(body.to_string());
            let deadline = Instant::now() + self.settings.first_token_max;
            let sent = timeout_at(deadline, self.send(post, url)).await;
            let (error, retry_after) = match sent {
                Err(_) => return Err(self.first_token_timeout()),
                Ok(Ok(response)) if response.status().is_success() => {
                    return Ok((response, deadline));
                }
                Ok(Ok(response)) => {
                    let status = response.status().as_u16();
                    let retry_after = retry_after(&response);
                    let message = self.read_error_message(response).await;
                    if let Some(field) = self.rejected_fields().record(&body, status, &message) {
                        tracing::warn!(
                            model = request.model,
                            field,
                            "the server does not support a field; retrying without it"
                        );
                        continue;
                    }
                    let error = self.status_error(status, url, &message);
                    if !is_retryable(status) {
                        return Err(error);
                    }
                    (error, retry_after)
                }
                Ok(Err(error)) => (error, None),
            };
            let Some(wait) = backoff.next_wait(retry_after) else { return Err(error) };
            tracing::info!(wait_ms = wait.as_millis(), "retrying the model request");
            sleep(wait).await;
        }
    }

    /// Sends a request with the API key. An error means that no response arrived.
    async fn send(&self, request: RequestBuilder, url: &Url) -> Result<Response, ModelError> {
        let request = match &self.endpoint.key_header {
            Some((name, value)) => request.header(name, value),
            None => request,
        };
        let to_network_error = |error: reqwest::Error| {
            let cause = self.redactor.redact(&chain(&error.without_url()));
            ModelError::Network { url: self.redact_url(url), cause }
        };
        request.send().await.map_err(to_network_error)
    }

    /// Reads the body of an error response. For a redirect, returns a message with its target.
    async fn read_error_message(&self, response: Response) -> String {
        let location = response.headers().get(LOCATION).and_then(|it| it.to_str().ok());
        if let Some(target) = location {
            return format!(
                "It redirects to {target}. If you trust that server, set OPENAI_BASE_URL to it."
            );
        }
        self.read_body(response, ERROR_BYTES_MAX).await
    }

    /// Reads the body up to `limit` bytes or to the first error.
    async fn read_body(&self, mut response: Response, limit: usize) -> String {
        let mut bytes = Vec::new();
        while let Ok(Ok(Some(chunk))) = timeout(MODEL_LIST_MAX, response.chunk()).await {
            let room = limit.saturating_sub(bytes.len());
            bytes.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if room <= chunk.len() {
                break;
            }
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn http_client(&self) -> Result<&Client, ModelError> {
        let client = self.http_client.get_or_init(|| {
            build_http_client(&self.endpoint.chat_url).map_err(|error| chain(&error))
        });
        client.as_ref().map_err(|cause| {
            ModelError::Settings(format!("Failed to set up TLS on this machine: {cause}. Install the package `ca-certificates`, or set SSL_CERT_FILE."))
        })
    }

    fn status_error(&self, status: u16, url: &Url, body: &str) -> ModelError {
        let server_message = extract_server_message(body, &self.redactor);
        ModelError::Status { status, url: self.redact_url(url), server_message }
    }

    fn in_stream_error(&self, url: String, error: &InStreamError) -> ModelError {
        let server_message = extract_server_message(&error.json, &self.redactor);
        match error.status {
            Some(status) => ModelError::Status { status, url, server_message },
            None => ModelError::InStream { url, server_message },
        }
    }

    fn first_token_timeout(&self) -> ModelError {
        let url = self.redact_url(&self.endpoint.chat_url);
        ModelError::first_token_timeout(url, self.settings.first_token_max)
    }

    fn redact_url(&self, url: &Url) -> String {
        redact_url(url, &self.redactor)
    }

    fn rejected_fields(&self) -> MutexGuard<'_, RejectedFields> {
        self.rejected_fields.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Uses the proxies of the environment. Redirects are followed only within the same origin, so that
/// the API key is never sent to another server, and only if they keep the method.
fn build_http_client(server: &Url) -> Result<Client, reqwest::Error> {
    let policy = Policy::custom(|attempt| {
        let keeps_method = matches!(attempt.status().as_u16(), 307 | 308);
        let keeps_origin =
            attempt.previous().last().is_some_and(|it| it.origin() == attempt.url().origin());
        if keeps_method && keeps_origin && attempt.previous().len() <= REDIRECTS_MAX {
            attempt.follow()
        } else {
            attempt.stop()
        }
    });
    let mut client = http::client_builder().redirect(policy).connect_timeout(CONNECT_MAX);
    let is_local = matches!(server.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
    if is_local && server.scheme() == "http" {
        // No certificate is checked there, and the root certificates take megabytes of memory.
        client = client.tls_certs_only([]);
    }
    client.build()
}

fn retry_after(response: &Response) -> Option<Duration> {
    let header = response.headers().get(RETRY_AFTER)?.to_str().ok()?;
    parse_retry_after(header, SystemTime::now())
}

/// Returns a random prefix for the ids of calls to which the server gave none.
fn new_id_prefix() -> String {
    let mut bytes = [0; 6];
    // If this fails, the prefix is constant, and ids may repeat in later responses.
    let _ = getrandom::fill(&mut bytes);
    bytes.iter().fold("call_".to_owned(), |text, it| format!("{text}{it:02x}"))
}
