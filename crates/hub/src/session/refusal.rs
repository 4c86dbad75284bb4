//! Why an agent refused a session, as far as it decides which step is tried next.

use jackfield_protocol::Frame;
use serde_json::Value;

/// Why an agent refused a session.
pub(super) struct AgentRefusal {
    code: i64,
    message: String,
}

impl AgentRefusal {
    pub(super) fn of(frame: &Frame) -> AgentRefusal {
        let error: Value = serde_json::from_str(&crate::agent::error_of(frame)).unwrap_or_default();
        let message = error["message"].as_str().unwrap_or_default();
        let details = error["data"]["details"].as_str().or_else(|| error["data"].as_str());
        let details = details.map(|it| format!(": {it}")).unwrap_or_default();
        let message = format!("{message}{details}");
        AgentRefusal { code: error["code"].as_i64().unwrap_or(0), message }
    }

    pub(super) fn message(&self) -> String {
        format!("{} ({})", self.message, self.code)
    }

    fn contains_one_of(&self, phrases: &[&str]) -> bool {
        let message = self.message.to_lowercase();
        phrases.iter().any(|it| message.contains(it))
    }

    pub(super) fn is_lock(&self) -> bool {
        self.contains_one_of(&[
            "locked",
            "in use",
            "already open",
            "already active",
            "another process",
        ])
    }

    /// The error code of ACP for a required login.
    pub(super) fn wants_login(&self) -> bool {
        self.code == -32000
    }

    /// The agent has no such session. The error code of ACP for a missing resource is -32002.
    pub(super) fn is_unknown(&self) -> bool {
        let unknown =
            ["not found", "unknown session", "no such session", "no session", "does not exist"];
        let invalid = ["invalid session", "session id", "sessionid"];
        self.code == -32002
            || (self.contains_one_of(&["session"]) && self.contains_one_of(&unknown))
            || (self.contains_one_of(&["invalid"]) && self.contains_one_of(&invalid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(code: i64, message: &str) -> AgentRefusal {
        AgentRefusal { code, message: message.to_owned() }
    }

    #[test]
    fn agents_say_in_many_words_that_there_is_no_session() {
        assert!(refusal(-32002, "Resource not found").is_unknown());
        assert!(refusal(-32603, "Internal error: Session not found: 7").is_unknown());
        assert!(refusal(-32602, "Invalid session identifier").is_unknown());
        assert!(!refusal(-32603, "model not found").is_unknown());
        assert!(!refusal(-32000, "Authentication required").is_unknown());
    }

    #[test]
    fn a_lock_and_a_login_are_told_from_a_loss() {
        assert!(refusal(-32603, "session is Locked by pid 7").is_lock());
        assert!(!refusal(-32002, "no such session").is_lock());
        assert!(refusal(-32000, "Authentication required").wants_login());
    }
}
