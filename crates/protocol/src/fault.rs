//! Every error we send: a JSON-RPC code, a short public sentence, and a stable name to match on.
//!
//! Codes of our own start at -31000 and go down: -32768 to -32000 and -32899 to -32800 are
//! reserved, and ACP uses several of those.

use serde_json::{Map, Value, json};

/// What we say when we cannot do what a peer asked. `Display` is the public sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("not JSON")]
    Parse,
    #[error("invalid request: {why}")]
    InvalidRequest { why: String },
    #[error("no method `{method}`")]
    MethodNotFound { method: String },
    /// A method we know and do not serve.
    #[error("method `{method}` is not served here")]
    NotServed { method: String },
    #[error("invalid params: {why}")]
    InvalidParams { why: String },
    #[error("internal error: {why}")]
    Internal { why: String },
    #[error("no session `{session}`")]
    SessionNotFound { session: String },
    #[error("no file `{path}`")]
    FileNotFound { path: String },
    #[error("request cancelled")]
    Cancelled,
    #[error("agent `{agent}` ended: {status}")]
    AgentGone { agent: String, status: String, stderr: String },
    #[error("agent `{agent}` could not be started: {why}")]
    AgentNotStarted { agent: String, why: String, stderr: String },
    /// Of a request, the id is known if it stands at its beginning, as JSON text.
    #[error("message too large: {size} bytes, and the limit is {limit}")]
    TooLarge { size: usize, limit: usize, request: Option<Box<str>> },
    #[error("too much at once: {what}")]
    Overloaded { what: String },
    #[error("session `{session}` cannot be resumed: {why}")]
    CannotResume { session: String, why: String },
    #[error("no agent to use: {why}")]
    NoAgent { why: String },
    #[error("session `{session}` is served by another hub")]
    Fenced { session: String },
    #[error("interrupted: {why}")]
    Interrupted { why: String },
    #[error("the hub is stopping")]
    Stopping,
    #[error("no ask {ask} in session `{session}`")]
    AskNotFound { session: String, ask: String },
    /// Somebody else's answer counts, or nobody's any more.
    #[error("ask {ask} of `{session}` is settled: {how}")]
    AskSettled { session: String, ask: String, how: String },
    #[error("no prompt {prompt} waits in session `{session}`")]
    PromptNotWaiting { session: String, prompt: String },
    /// It kept failing, and is left alone for a while.
    #[error("agent `{agent}` is not started now: {why}")]
    AgentSuspended { agent: String, why: String, until: String },
    #[error("a worker of pool `{pool}` ended: {status}")]
    WorkerGone { pool: String, status: String, stderr: String },
    #[error("no worker for this: {why}")]
    NoWorker { why: String },
    #[error("no client to answer this: {why}")]
    NoClient { why: String },
    /// None of the hosts may be given this, or there is none.
    #[error("no host for this: {why}")]
    NoHost { why: String },
    /// The host that had it is gone, and no other has taken its place in time.
    #[error("the host was lost: {why}")]
    HostLost { why: String },
    /// Whoever runs the hub has not allowed it to this client.
    #[error("not allowed: {why}")]
    NotAllowed { why: String },
    /// What the request needs to be written cannot be written until somebody has done something about it.
    #[error("the journal cannot be written: {why}")]
    StorageFailing { why: String },
    #[error(
        "key `{key}` was used for another request, in session `{session}`; use a new key for a new request"
    )]
    KeyReused { key: String, session: String },
    #[error(
        "the first request with key `{key}` is still opening its session; repeat this one later"
    )]
    KeyInUse { key: String },
    #[error("agent `{agent}` did not reply to `{method}` within {limit}")]
    NoReply { agent: String, method: String, limit: String },
    /// A client approves everything, and no option of a permission request allows it.
    #[error("permission request `{request}` was not approved: {why}")]
    NotApproved { request: String, why: String },
    /// A tenant has as much as it may have.
    #[error("quota reached: {why}")]
    Quota { why: String },
}

impl Fault {
    /// The JSON-RPC code.
    pub fn code(&self) -> i32 {
        match self {
            Fault::Parse => -32700,
            Fault::InvalidRequest { .. } => -32600,
            Fault::MethodNotFound { .. } | Fault::NotServed { .. } => -32601,
            Fault::InvalidParams { .. } => -32602,
            Fault::Internal { .. } => -32603,
            Fault::SessionNotFound { .. } | Fault::FileNotFound { .. } => -32002,
            Fault::Cancelled => -32800,
            Fault::AgentGone { .. } => -31000,
            Fault::AgentNotStarted { .. } => -31001,
            Fault::Overloaded { .. } => -31002,
            Fault::CannotResume { .. } => -31003,
            Fault::NoAgent { .. } => -31004,
            Fault::Fenced { .. } => -31005,
            Fault::Interrupted { .. } => -31006,
            Fault::Stopping => -31007,
            Fault::AskNotFound { .. } => -31008,
            Fault::AskSettled { .. } => -31009,
            Fault::PromptNotWaiting { .. } => -31010,
            Fault::WorkerGone { .. } => -31011,
            Fault::NoWorker { .. } => -31012,
            Fault::NoClient { .. } => -31013,
            Fault::AgentSuspended { .. } => -31014,
            Fault::NoHost { .. } => -31015,
            Fault::HostLost { .. } => -31016,
            Fault::NotAllowed { .. } => -31017,
            Fault::Quota { .. } => -31018,
            Fault::TooLarge { .. } => -31019,
            Fault::KeyReused { .. } => -31020,
            Fault::KeyInUse { .. } => -31021,
            Fault::StorageFailing { .. } => -31022,
            Fault::NoReply { .. } => -31023,
            Fault::NotApproved { .. } => -31024,
        }
    }

    /// The stable name, sent as `data.jackfield.code`.
    pub fn name(&self) -> &'static str {
        match self {
            Fault::Parse => "parse_error",
            Fault::InvalidRequest { .. } => "invalid_request",
            Fault::MethodNotFound { .. } => "method_not_found",
            Fault::NotServed { .. } => "not_served",
            Fault::InvalidParams { .. } => "invalid_params",
            Fault::Internal { .. } => "internal",
            Fault::SessionNotFound { .. } => "session_not_found",
            Fault::FileNotFound { .. } => "file_not_found",
            Fault::Cancelled => "cancelled",
            Fault::AgentGone { .. } => "agent_gone",
            Fault::AgentNotStarted { .. } => "agent_not_started",
            Fault::Overloaded { .. } => "overloaded",
            Fault::CannotResume { .. } => "cannot_resume",
            Fault::NoAgent { .. } => "no_agent",
            Fault::Fenced { .. } => "fenced",
            Fault::Interrupted { .. } => "interrupted",
            Fault::Stopping => "stopping",
            Fault::AskNotFound { .. } => "ask_not_found",
            Fault::AskSettled { .. } => "ask_settled",
            Fault::PromptNotWaiting { .. } => "prompt_not_waiting",
            Fault::WorkerGone { .. } => "worker_gone",
            Fault::NoWorker { .. } => "no_worker",
            Fault::NoClient { .. } => "no_client",
            Fault::AgentSuspended { .. } => "agent_suspended",
            Fault::NoHost { .. } => "no_host",
            Fault::HostLost { .. } => "host_lost",
            Fault::NotAllowed { .. } => "not_allowed",
            Fault::Quota { .. } => "quota",
            Fault::TooLarge { .. } => "too_large",
            Fault::StorageFailing { .. } => "storage_failing",
            Fault::KeyReused { .. } => "key_reused",
            Fault::KeyInUse { .. } => "key_in_use",
            Fault::NoReply { .. } => "no_reply",
            Fault::NotApproved { .. } => "not_approved",
        }
    }

    /// The id of the request that it answers, as JSON text; `null` where it is not known.
    pub fn request_id(&self) -> &str {
        match self {
            Fault::TooLarge { request: Some(id), .. } => id,
            _ => "null",
        }
    }

    /// The JSON-RPC error object.
    pub fn to_json(&self) -> String {
        let mut extension = Map::new();
        extension.insert("code".to_owned(), self.name().into());
        for (key, detail) in self.details() {
            extension.insert(key.to_owned(), detail.into());
        }
        let mut data = Map::new();
        if let Fault::SessionNotFound { session } = self {
            // Where ACP's own "resource not found" says it.
            data.insert("sessionId".to_owned(), session.as_str().into());
        }
        data.insert("jackfield".to_owned(), Value::Object(extension));
        json!({ "code": self.code(), "message": self.to_string(), "data": data }).to_string()
    }

    fn details(&self) -> Vec<(&'static str, &str)> {
        match self {
            Fault::Parse | Fault::Cancelled | Fault::Stopping | Fault::TooLarge { .. } => vec![],
            Fault::InvalidRequest { why }
            | Fault::InvalidParams { why }
            | Fault::Internal { why }
            | Fault::NoAgent { why }
            | Fault::NoWorker { why }
            | Fault::NoClient { why }
            | Fault::NoHost { why }
            | Fault::HostLost { why }
            | Fault::NotAllowed { why }
            | Fault::Quota { why }
            | Fault::StorageFailing { why }
            | Fault::Interrupted { why } => vec![("why", why)],
            Fault::MethodNotFound { method } | Fault::NotServed { method } => {
                vec![("method", method)]
            }
            Fault::SessionNotFound { session } | Fault::Fenced { session } => {
                vec![("session", session)]
            }
            Fault::AgentGone { agent, status, stderr } => {
                vec![("agent", agent), ("status", status), ("stderr", stderr)]
            }
            Fault::AgentNotStarted { agent, why, stderr } => {
                vec![("agent", agent), ("why", why), ("stderr", stderr)]
            }
            Fault::NoReply { agent, method, limit } => {
                vec![("agent", agent), ("method", method), ("limit", limit)]
            }
            Fault::AgentSuspended { agent, why, until } => {
                vec![("agent", agent), ("why", why), ("until", until)]
            }
            Fault::KeyReused { key, session } => vec![("key", key), ("session", session)],
            Fault::KeyInUse { key } => vec![("key", key)],
            Fault::NotApproved { request, why } => vec![("request", request), ("why", why)],
            Fault::FileNotFound { path } => vec![("path", path)],
            Fault::Overloaded { what } => vec![("what", what)],
            Fault::CannotResume { session, why } => vec![("session", session), ("why", why)],
            Fault::AskNotFound { session, ask } => vec![("session", session), ("ask", ask)],
            Fault::AskSettled { session, ask, how } => {
                vec![("session", session), ("ask", ask), ("how", how)]
            }
            Fault::PromptNotWaiting { session, prompt } => {
                vec![("session", session), ("prompt", prompt)]
            }
            Fault::WorkerGone { pool, status, stderr } => {
                vec![("pool", pool), ("status", status), ("stderr", stderr)]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Fault;
    use crate::frame::Frame;
    use serde_json::Value;
    use std::collections::BTreeSet;

    fn every_fault() -> Vec<Fault> {
        let odd = || "odd \"text\"\n\u{7}é".to_owned();
        vec![
            Fault::Parse,
            Fault::InvalidRequest { why: odd() },
            Fault::MethodNotFound { method: odd() },
            Fault::NotServed { method: odd() },
            Fault::InvalidParams { why: odd() },
            Fault::Internal { why: odd() },
            Fault::SessionNotFound { session: odd() },
            Fault::FileNotFound { path: odd() },
            Fault::Cancelled,
            Fault::AgentGone { agent: odd(), status: odd(), stderr: odd() },
            Fault::AgentNotStarted { agent: odd(), why: odd(), stderr: odd() },
            Fault::Overloaded { what: odd() },
            Fault::CannotResume { session: odd(), why: odd() },
            Fault::NoAgent { why: odd() },
            Fault::Fenced { session: odd() },
            Fault::Interrupted { why: odd() },
            Fault::Stopping,
            Fault::AskNotFound { session: odd(), ask: odd() },
            Fault::AskSettled { session: odd(), ask: odd(), how: odd() },
            Fault::PromptNotWaiting { session: odd(), prompt: odd() },
            Fault::WorkerGone { pool: odd(), status: odd(), stderr: odd() },
            Fault::NoWorker { why: odd() },
            Fault::NoClient { why: odd() },
            Fault::NoHost { why: odd() },
            Fault::HostLost { why: odd() },
            Fault::NotAllowed { why: odd() },
            Fault::Quota { why: odd() },
            Fault::KeyReused { key: odd(), session: odd() },
            Fault::KeyInUse { key: odd() },
            Fault::NoReply { agent: odd(), method: odd(), limit: odd() },
            Fault::NotApproved { request: odd(), why: odd() },
            Fault::AgentSuspended { agent: odd(), why: odd(), until: odd() },
        ]
    }

    #[test]
    fn every_fault_is_json_with_its_code_its_name_and_its_details() {
        for fault in every_fault() {
            let frame = Frame::error_for("7", &fault);
            let error: Value = serde_json::from_str(frame.error().unwrap()).unwrap();
            assert_eq!(error["code"], fault.code());
            assert_eq!(error["message"], fault.to_string());
            let ours = error["data"]["jackfield"].as_object().unwrap();
            assert_eq!(ours["code"], fault.name());
            assert_eq!(ours.len(), 1 + fault.details().len());
            for (key, detail) in fault.details() {
                assert_eq!(ours[key], detail);
            }
        }
    }

    #[test]
    fn every_fault_has_a_name_of_its_own() {
        let names: BTreeSet<_> = every_fault().iter().map(Fault::name).collect();
        assert_eq!(names.len(), every_fault().len());
    }

    #[test]
    fn our_own_codes_keep_out_of_the_reserved_ranges() {
        let theirs = [-32700, -32600, -32601, -32602, -32603, -32002, -32800];
        let ours = |fault: &Fault| !theirs.contains(&fault.code());
        let codes: BTreeSet<_> =
            every_fault().iter().filter(|it| ours(it)).map(Fault::code).collect();
        assert_eq!(codes.len(), 23, "one code each");
        assert!(codes.iter().all(|code| (-31999..=-31000).contains(code)));
    }

    #[test]
    fn a_missing_session_is_named_where_acp_names_it() {
        let fault = Fault::SessionNotFound { session: "s-1".to_owned() };
        let error: Value = serde_json::from_str(&fault.to_json()).unwrap();
        assert_eq!(error["data"]["sessionId"], "s-1");
        assert_eq!(error["code"], -32002);
    }
}
