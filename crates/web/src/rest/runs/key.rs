//! `Idempotency-Key`: a request that is sent again makes no second run.
//!
//! The key goes with `session/new` and `session/prompt`, so it is kept in the log of the session, and the hub finds it
//! there. Here are only the requests that have no run in the log yet: one with the same key waits for the same run.

use super::{Begun, Run, RunId, course::run_of, drive::RunResultSender, find::find};
use crate::rest::{
    Api,
    check::RunBody,
    error::{ApiError, Code},
    hub::{Entry, Trouble},
};
use axum::{extract::FromRequestParts, http::request::Parts};
use jackfield_protocol::acp::Method;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::{
    collections::BTreeMap,
    fmt::Write as _,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// As the draft of the IETF suggests, and as the hub takes it.
const KEY_CHARS_MAX: usize = 255;
/// Bytes of the hash that are kept: two requests of one client do not collide by chance.
const FINGERPRINT_BYTES: usize = 16;

/// The header of a request, if it has one.
#[derive(Debug)]
pub(crate) struct IdempotencyKey(pub(crate) Option<String>);

impl<S: Send + Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<IdempotencyKey, ApiError> {
        let mut values = parts.headers.get_all("idempotency-key").iter();
        let Some(value) = values.next() else { return Ok(IdempotencyKey(None)) };
        let key = value.to_str().ok().filter(|_| values.next().is_none()).and_then(parse_key);
        let why = format!(
            "`Idempotency-Key` must be one text of 1 to {KEY_CHARS_MAX} printable ASCII characters, as it is or \
             in double quotes; a UUID will do"
        );
        key.map(|it| IdempotencyKey(Some(it))).ok_or_else(|| ApiError::bad(why))
    }
}

/// A string of RFC 8941, or the bare text that many clients send.
fn parse_key(value: &str) -> Option<String> {
    let value = value.trim();
    let key = match value.strip_prefix('"') {
        Some(quoted) => unquote(quoted)?,
        None if value.contains('"') => return None,
        None => value.to_owned(),
    };
    let printable = key.bytes().all(|it| (b' '..=b'~').contains(&it));
    ((1..=KEY_CHARS_MAX).contains(&key.len()) && printable).then_some(key)
}

/// What is behind the opening quote, up to the closing one, which must be the end.
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

/// A key, and the fingerprint of what is asked for under it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyedRequest {
    key: String,
    fingerprint: String,
}

impl KeyedRequest {
    /// Requests are the same if they make the same run, whatever route they take.
    pub(crate) fn new(key: String, body: &RunBody) -> KeyedRequest {
        let mut body = serde_json::to_value(body).unwrap_or_default();
        if let Some(members) = body.as_object_mut() {
            // How long the client stays is not part of the run. What is not given may not be known to an earlier
            // version.
            members.remove("cancelOnDisconnect");
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

    /// As it stands in `_meta.jackfield` of `session/new` and `session/prompt`.
    pub(super) fn add_to(&self, ours: &mut Value) {
        ours["key"] = json!(self.key);
        ours["fingerprint"] = json!(self.fingerprint);
    }

    fn reused(&self) -> ApiError {
        let message = format!(
            "`Idempotency-Key` `{}` was used for another request: use a new key for a new request",
            self.key
        );
        ApiError::new(Code::IdempotencyKeyReused, message)
    }
}

/// Requests whose runs do not stand in the log yet, by key.
#[derive(Debug, Clone, Default)]
pub(super) struct OpenRequests(Arc<Mutex<BTreeMap<String, (String, Begun)>>>);

/// One of them, until it is dropped.
#[derive(Debug)]
pub(super) struct OpenRequest {
    all: OpenRequests,
    key: String,
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.all.lock().remove(&self.key);
    }
}

impl OpenRequests {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, (String, Begun)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The way to announce the run, or the run that another request with this key makes.
    fn enter(&self, request: &KeyedRequest) -> Result<RunResultSender, Result<Begun, ApiError>> {
        let mut open = self.lock();
        if let Some((fingerprint, begun)) = open.get(&request.key) {
            let same = *fingerprint == request.fingerprint;
            return Err(if same { Ok(begun.clone()) } else { Err(request.reused()) });
        }
        let mut sender = RunResultSender::new();
        let begun = sender.begun().repeated();
        open.insert(request.key.clone(), (request.fingerprint.clone(), begun));
        sender.open = Some(OpenRequest { all: self.clone(), key: request.key.clone() });
        Ok(sender)
    }
}

/// What the logs know of a request.
#[derive(Debug)]
pub(super) enum EarlierRequest {
    Nothing,
    /// It has opened a session, and its prompt is not in the log.
    Session(String),
    Run(Arc<Run>),
}

/// Which request with a key makes the run.
pub(super) enum RunMaker {
    /// An earlier one does, or has done it.
    Earlier(Begun),
    /// This one does: in the session that an earlier one has opened, if there is one.
    This(RunResultSender, Option<String>),
    /// An earlier one has done it, and the run has not ended, and nothing here follows it.
    EarlierUnfollowed(RunResultSender, Arc<Run>),
}

/// Finds out what became of earlier requests with this key.
pub(super) async fn find_maker(api: &Api, request: &KeyedRequest) -> Result<RunMaker, ApiError> {
    let sender = match api.runs.open_requests.enter(request) {
        Ok(sender) => sender,
        Err(other) => return other.map(RunMaker::Earlier),
    };
    match find_known(api, request).await? {
        EarlierRequest::Nothing => Ok(RunMaker::This(sender, None)),
        EarlierRequest::Session(session) => Ok(RunMaker::This(sender, Some(session))),
        EarlierRequest::Run(run) if run.is_settled() => Ok(RunMaker::Earlier(Begun::known(run))),
        EarlierRequest::Run(run) => Ok(RunMaker::EarlierUnfollowed(sender, run)),
    }
}

async fn find_known(api: &Api, request: &KeyedRequest) -> Result<EarlierRequest, ApiError> {
    let found = api.hub.call(Method::ControlFindKey.name(), &json!({ "key": request.key })).await;
    let found = match found {
        // Without an answer of every host it would be a guess.
        Err(Trouble::Refused(error)) if error["data"]["jackfield"]["code"] == "host_lost" => {
            let why = error["message"].as_str().unwrap_or_default();
            return Err(ApiError::new(Code::UpstreamUnavailable, why));
        }
        found => found?,
    };
    let Some(session) = found["sessionId"].as_str() else { return Ok(EarlierRequest::Nothing) };
    if found["fingerprint"] != request.fingerprint {
        return Err(request.reused());
    }
    match found["seq"].as_u64() {
        None => Ok(EarlierRequest::Session(session.to_owned())),
        Some(seq) => {
            let id = run_at(api, session, seq).await?.ok_or_else(|| request.reused())?;
            find(api, id.as_str()).await.map(EarlierRequest::Run)
        }
    }
}

/// The run whose prompt is this event.
async fn run_at(api: &Api, session: &str, seq: u64) -> Result<Option<RunId>, ApiError> {
    let mut log = api.hub.log(session, seq.saturating_sub(1)).await?;
    match log.next().await? {
        Entry::Fact(fact) => Ok(fact.event().and_then(|it| run_of(&it))),
        Entry::Live => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keyed(body: &Value) -> KeyedRequest {
        KeyedRequest::new("k".to_owned(), &serde_json::from_value(body.clone()).unwrap())
    }

    #[test]
    fn a_key_is_a_string_of_the_draft_or_bare_text() {
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
    fn requests_differ_if_their_runs_would() {
        let body = json!({ "agentId": "fake", "message": "hi" });
        let same = json!({ "message": "hi", "agentId": "fake", "model": null, "cancelOnDisconnect": true });
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
    async fn a_second_request_waits_for_the_run_of_the_first_until_that_is_announced() {
        let open = OpenRequests::default();
        let request = keyed(&json!({ "agentId": "fake", "message": "hi" }));
        let first = open.enter(&request).unwrap();
        let second = open.enter(&request).unwrap_err().unwrap();
        assert!(second.is_repeat);
        let other = keyed(&json!({ "agentId": "fake", "message": "ho" }));
        let refused = open.enter(&other).unwrap_err().unwrap_err();
        assert_eq!(refused.code, Code::IdempotencyKeyReused);
        first.announce(Err(ApiError::bad("no")));
        assert_eq!(second.run().await.unwrap_err().message, "no");
        // An error is not kept: the next one tries again, and one that leaves makes room.
        drop(open.enter(&request).unwrap());
        assert!(open.enter(&other).is_ok());
    }
}
