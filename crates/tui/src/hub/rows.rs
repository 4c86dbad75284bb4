//! Rows of the lists that the hub sends: sessions, and open requests to the user.

use jackfield_views::UsageCost;
use serde::Deserialize;
use serde_json::Value;

/// The name of this interface in the lists of clients.
const OWN_NAME: &str = "jackfield-tui";

/// One session, as the hub lists it.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct SessionRow {
    pub(crate) session_id: String,
    pub(crate) agent: String,
    /// The command of the agent.
    pub(crate) argv: Vec<String>,
    /// The working directory.
    pub(crate) cwd: String,
    /// The name that a client gave the session.
    pub(crate) name: Option<String>,
    pub(crate) title: Option<String>,
    pub(crate) state: SessionState,
    /// What the session waits for, in a sentence.
    pub(crate) doing: Option<String>,
    pub(crate) turns: u64,
    /// The number of queued prompts.
    pub(crate) queued: u64,
    /// The number of open requests to the user.
    pub(crate) asks: u64,
    pub(crate) cost: Option<UsageCost>,
    /// The host of the session in a fleet.
    pub(crate) host: Option<String>,
    /// The number of attached clients.
    pub(crate) clients: u64,
    /// The names that they gave themselves.
    pub(crate) client_names: Vec<String>,
    /// The sequence number of the last event.
    pub(crate) events: u64,
    /// RFC 3339.
    pub(crate) opened_at: String,
    pub(crate) updated_at: String,
}

/// The state of a session, as the hub names it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum SessionState {
    /// It has open requests to the user.
    Asks,
    Working,
    #[default]
    Idle,
    /// It has no agent process; the next prompt starts one.
    Asleep,
    Closed,
    /// A state of a newer daemon, such as a start or a restore.
    #[serde(other)]
    Other,
}

/// An open request of an agent to the user.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct OpenRequest {
    pub(crate) session_id: String,
    /// The number of the request in its session.
    #[serde(rename = "ask")]
    pub(crate) number: u64,
    pub(crate) agent: String,
    /// RFC 3339.
    pub(crate) since: String,
    /// `session/request_permission`, or `elicitation/create` for a form.
    pub(crate) method: String,
    /// What the agent wants to do or to know, in its words.
    pub(crate) what: Option<String>,
    /// The permission request as the policy parses it: `commands`, `cwd`, `folders`, `paths`, `mcp`, `tool`,
    /// `unknown` texts, `why` no rule answered, and what `always` would mean.
    pub(crate) call: Option<Value>,
    /// `read`, `edit`, `execute`, …
    pub(crate) kind: Option<String>,
    pub(crate) tool_call_id: Option<String>,
    /// The options of a permission request; a form has none.
    pub(crate) options: Vec<RequestOption>,
    /// The JSON schema of a form.
    pub(crate) requested_schema: Option<Value>,
    /// The address of a form that is filled in elsewhere.
    pub(crate) url: Option<String>,
}

/// One option of a permission request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct RequestOption {
    pub(crate) option_id: String,
    pub(crate) name: String,
    /// `allow_once`, `allow_always`, `reject_once` or `reject_always`.
    pub(crate) kind: String,
}

impl SessionRow {
    /// The name, else the title, else the id.
    pub(crate) fn display_title(&self) -> &str {
        let named =
            [&self.name, &self.title].into_iter().flatten().find(|it| !it.trim().is_empty());
        named.map_or(&self.session_id, String::as_str)
    }

    /// The names of attached clients without this interface. Empty if the daemon does not list names.
    pub(crate) fn other_client_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.client_names.iter().map(String::as_str).collect();
        if let Some(own) = names.iter().position(|it| *it == OWN_NAME) {
            names.remove(own);
        }
        names
    }
}

impl OpenRequest {
    pub(crate) fn is_form(&self) -> bool {
        self.method == jackfield_protocol::acp::Method::ElicitationCreate.name()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn row_of_a_newer_daemon_is_read() {
        let row = json!({ "sessionId": "s-1", "state": "hibernating", "asks": 2, "new": true });
        let row: SessionRow = serde_json::from_value(row).unwrap();
        assert_eq!((row.display_title(), row.state, row.asks), ("s-1", SessionState::Other, 2));
    }

    #[test]
    fn another_terminal_interface_is_another_client() {
        let names = json!(["jackfield-tui", "zed", "jackfield-tui"]);
        let row: SessionRow = serde_json::from_value(json!({ "clientNames": names })).unwrap();
        assert_eq!(row.other_client_names(), ["zed", "jackfield-tui"]);
    }
}
