//! `Idempotency-Key`: a repeated request starts no second run.
//!
//! The key is sent with `session/new` and `session/prompt`, so it is in the log of the session, where the hub finds
//! it. This module tracks the requests whose run is not in the log yet: a request with the same key waits for the same
//! run.

use super::{
    PendingRun, RunId, TrackedRun, find::find_run, pending::RunResultSender, progress::run_id_of,
};
use crate::rest::{
    RestState,
    check::RunBody,
    error::{ApiError, ErrorCode},
};
use axum::{extract::FromRequestParts, http::request::Parts};
use jackfield_hub_client::{HubClientError, LogEntry};
use jackfield_protocol::acp::Method;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::{
    collections::BTreeMap,
    fmt::Write as _,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The limit of the hub, which follows the IETF draft.
const KEY_CHARS_MAX: usize = 255;
/// The number of hash bytes in a fingerprint: enough to avoid collisions between requests of one client.
const FINGERPRINT_BYTES: usize = 16;

/// The `Idempotency-Key` header of a request, if present.
#[derive(Debug)]
pub(crate) struct IdempotencyKey(pub(crate) Option<String>);

impl<S: Send + Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<IdempotencyKey, ApiError> {
        let mut values = parts.headers.get_all("idempotency-key").iter();
        let Some(value) = values.next() else { return Ok(IdempotencyKey(None)) };
        let key = value.to_str().ok().filter(|_| values.next().is_none()).and_then(parse_key);
        let why = format!(
            "`Idempotency-Key` must be one text of 1 to {KEY_CHARS_MAX} printable ASCII characters, plain or \
             in double quotes, for example a UUID"
        );
        key.map(|it| IdempotencyKey(Some(it))).ok_or_else(|| ApiError::bad_request(why))
    }
}

/// Parses a string of RFC 8941, or the plain text that many clients send.
fn parse_key(value: &str) -> Option<String> {
    let value = value.trim();
    let key = match value.strip_prefix('"') {
        Some(quoted) => unquote(quoted)?,
        None if value.contains('"') => return None,
        None => value.to_owned(),
    };
    let is_printable = key.bytes().all(|it| (b' '..=b'~').contains(&it));
    ((1..=KEY_CHARS_MAX).contains(&key.len()) && is_printable).then_some(key)
}

/// The text after the opening quote, up to the closing quote, which must end the value.
fn unquote(quoted: &str) -> Option<String> {
    let mut key = String::new();
    let mut chars = quoted.chars();
    loop {
        match chars.next()? {
            '"' => return chars.next().is_none().then_some(key),
            '\\' => key.push(chars.next().filter(|it| matches!(it, '"' | '\\'))?),
            char => key.push(char),
        }
    }
}

/// A key, and the fingerprint of the request with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyedRequest {
    key: String,
    fingerprint: String,
}

impl KeyedRequest {
    /// Two requests are the same if they start the same run, also by different routes.
    pub(crate) fn new(key: String, body: &RunBody) -> KeyedRequest {
        let mut body = serde_json::to_value(body).unwrap_or_default();
        if let Some(members) = body.as_object_mut() {
            // Whether the client stays connected, and what becomes of the agent, does not change the run. Missing members are removed, because an
            // earlier version may not know them.
            members.remove("cancelOnDisconnect");
            members.remove("keep");
            members.retain(|_, it| !it.is_null());
        }
        let digest = Sha256::digest(body.to_string());
        let fingerprint =
            digest.iter().take(FINGERPRINT_BYTES).fold(String::new(), |mut hex, it| {
                let _infallible = write!(hex, "{it:02x}");
                hex
            });
        KeyedRequest { key, fingerprint }
    }

    /// Adds the key to `_meta.jackfield` of `session/new` or `session/prompt`.
    pub(super) fn add_to(&self, meta: &mut Value) {
        meta["key"] = json!(self.key);
        meta["fingerprint"] = json!(self.fingerprint);
    }

    fn key_reused_error(&self) -> ApiError {
        let message = format!(
            "`Idempotency-Key` `{}` was used for another request: use a new key for a new request",
            self.key
        );
        ApiError::new(ErrorCode::IdempotencyKeyReused, message)
    }
}

/// Requests whose run is not in the log yet, by key.
#[derive(Debug, Clone, Default)]
pub(super) struct OpenRequests(Arc<Mutex<BTreeMap<String, (String, PendingRun)>>>);

/// Removes a request from [`OpenRequests`] when dropped.
#[derive(Debug)]
pub(super) struct OpenRequestGuard {
    requests: OpenRequests,
    key: String,
}

impl Drop for OpenRequestGuard {
    fn drop(&mut self) {
        self.requests.lock().remove(&self.key);
    }
}

impl OpenRequests {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, (String, PendingRun)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a request and returns the sender for its run. If another request with this key is open, returns
    /// its run.
    fn register(
        &self,
        request: &KeyedRequest,
    ) -> Result<RunResultSender, Result<PendingRun, ApiError>> {
        let mut open = self.lock();
        if let Some((fingerprint, pending)) = open.get(&request.key) {
            let is_same = *fingerprint == request.fingerprint;
            return Err(if is_same {
                Ok(pending.clone())
            } else {
                Err(request.key_reused_error())
            });
        }
        let mut sender = RunResultSender::new();
        let pending = sender.pending_run().into_repeat();
        open.insert(request.key.clone(), (request.fingerprint.clone(), pending));
        sender.open_request =
            Some(OpenRequestGuard { requests: self.clone(), key: request.key.clone() });
        Ok(sender)
    }
}

/// An earlier request with the same key, as found in the logs.
#[derive(Debug)]
pub(super) enum EarlierRequest {
    Nothing,
    /// It opened a session, but its prompt is not in the log.
    Session(String),
    Run(Arc<TrackedRun>),
}

/// Which request with a key starts the run.
pub(super) enum RunMaker {
    /// An earlier request starts or has started it.
    Earlier(PendingRun),
    /// This request starts it, in the session that an earlier request opened, if any.
    This(RunResultSender, Option<String>),
    /// An earlier request started it, the run has not ended, and no driver follows it.
    EarlierUnfollowed(RunResultSender, Arc<TrackedRun>),
}

/// Finds which request with this key starts the run.
pub(super) async fn find_run_maker(
    state: &RestState,
    request: &KeyedRequest,
) -> Result<RunMaker, ApiError> {
    let sender = match state.runs.open_requests.register(request) {
        Ok(sender) => sender,
        Err(other) => return other.map(RunMaker::Earlier),
    };
    match find_earlier_request(state, request).await? {
        EarlierRequest::Nothing => Ok(RunMaker::This(sender, None)),
        EarlierRequest::Session(session) => Ok(RunMaker::This(sender, Some(session))),
        EarlierRequest::Run(run) if run.is_current() => {
            Ok(RunMaker::Earlier(PendingRun::from_earlier(run)))
        }
        EarlierRequest::Run(run) => Ok(RunMaker::EarlierUnfollowed(sender, run)),
    }
}

async fn find_earlier_request(
    state: &RestState,
    request: &KeyedRequest,
) -> Result<EarlierRequest, ApiError> {
    let found = state.hub.call_method(Method::ControlFindKey, &json!({ "key": request.key })).await;
    let found = match found {
        // Without the reply of every host the result would be a guess.
        Err(HubClientError::Refused(error)) if error.error_name() == "host_lost" => {
            let why = error.message().unwrap_or_default();
            return Err(ApiError::new(ErrorCode::UpstreamUnavailable, why));
        }
        found => found?,
    };
    let Some(session) = found["sessionId"].as_str() else { return Ok(EarlierRequest::Nothing) };
    if found["fingerprint"] != request.fingerprint {
        return Err(request.key_reused_error());
    }
    match found["seq"].as_u64() {
        None => Ok(EarlierRequest::Session(session.to_owned())),
        Some(seq) => {
            let id =
                run_id_at(state, session, seq).await?.ok_or_else(|| request.key_reused_error())?;
            find_run(state, id.as_str()).await.map(EarlierRequest::Run)
        }
    }
}

/// The id of the run whose prompt is this event.
async fn run_id_at(state: &RestState, session: &str, seq: u64) -> Result<Option<RunId>, ApiError> {
    let mut log = state.hub.open_log(session, seq.saturating_sub(1)).await?;
    match log.next_entry().await? {
        LogEntry::Event(line) => Ok(line.to_event().and_then(|it| run_id_of(&it))),
        LogEntry::Live => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keyed(body: &Value) -> KeyedRequest {
        KeyedRequest::new("k".to_owned(), &serde_json::from_value(body.clone()).unwrap())
    }

    #[test]
    fn key_is_a_quoted_string_or_plain_text() {
        for (value, key) in [
            ("8e03978e-40d5", Some("8e03978e-40d5")),
            ("\"8e03978e-40d5\"", Some("8e03978e-40d5")),
            ("\"a\\\"b\\\\c\"", Some("a\"b\\c")),
            ("two words", Some("two words")),
            ("", None),
            ("\"\"", None),
            ("\"open", None),
            ("\"a\" b", None),
            ("a\"b", None),
            ("\"a\\b\"", None),
        ] {
            assert_eq!(parse_key(value).as_deref(), key, "{value}");
        }
        let longest = "x".repeat(KEY_CHARS_MAX);
        assert_eq!(parse_key(&longest), Some(longest.clone()));
        assert_eq!(parse_key(&format!("{longest}x")), None);
    }

    #[test]
    fn requests_differ_if_their_runs_differ() {
        let body = json!({ "agentId": "fake", "message": "hi" });
        let same = json!({ "message": "hi", "agentId": "fake", "model": null, "cancelOnDisconnect": true, "keep": true });
        assert_eq!(keyed(&body), keyed(&same));
        for other in [
            json!({ "agentId": "fake", "message": "ho" }),
            json!({ "agentId": "fake", "message": "hi", "approve": "all" }),
            json!({ "sessionId": "s-abcdefghijkl", "message": "hi" }),
        ] {
            assert_ne!(keyed(&body), keyed(&other));
        }
    }

    #[tokio::test]
    async fn repeated_request_waits_for_the_run_of_the_first() {
        let open = OpenRequests::default();
        let request = keyed(&json!({ "agentId": "fake", "message": "hi" }));
        let first = open.register(&request).unwrap();
        let second = open.register(&request).unwrap_err().unwrap();
        assert!(second.is_repeat);
        let other = keyed(&json!({ "agentId": "fake", "message": "ho" }));
        let refused = open.register(&other).unwrap_err().unwrap_err();
        assert_eq!(refused.code, ErrorCode::IdempotencyKeyReused);
        first.announce(Err(ApiError::bad_request("no")));
        assert_eq!(second.wait().await.unwrap_err().message, "no");
        drop(first);
        // An error is not kept: the next request tries again, and a dropped request makes room.
        drop(open.register(&request).unwrap());
        assert!(open.register(&other).is_ok());
    }
}
