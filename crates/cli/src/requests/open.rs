//! Open requests to the user of all sessions, as the hub lists them. They can be answered without attaching.

use super::{PermissionPrompt, PromptedOption, details, parse_options};
use crate::{
    hub::{CommandConnection, read_notifications},
    plain_text::to_one_line,
    report::CommandError,
};
use jackfield_protocol::{acp::Method, redact};
use jackfield_views::text::ToolSummary;
use serde_json::{Value, json};

const ID_CHARS_MAX: usize = 80;

/// A request to the user that has no answer yet.
#[derive(Debug)]
pub(crate) struct OpenRequest {
    pub(crate) session_id: String,
    pub(crate) number: u64,
    pub(crate) agent: String,
    pub(crate) since: String,
    pub(crate) permission: PermissionPrompt,
    /// Whether it is a form, which has no options and whose answer is an object.
    pub(crate) is_form: bool,
    raw: Value,
}

/// All open requests, the oldest first.
pub(crate) fn list_open_requests(
    conn: &mut CommandConnection,
) -> Result<Vec<OpenRequest>, CommandError> {
    let mut result = conn.call_hub(Method::ControlAsks, &json!({}), "the list of asks")?;
    let rows = result.get_mut("asks").map_or(Value::Null, Value::take);
    Ok(rows.as_array().into_iter().flatten().filter_map(OpenRequest::parse).collect())
}

impl OpenRequest {
    fn parse(raw: &Value) -> Option<OpenRequest> {
        let text = |name: &str| raw[name].as_str().unwrap_or_default().to_owned();
        let number = raw["ask"].as_u64()?;
        let tool = ToolSummary { title: text("what"), kind: text("kind") };
        Some(OpenRequest {
            session_id: raw["sessionId"].as_str()?.to_owned(),
            number,
            agent: text("agent"),
            since: text("since"),
            permission: PermissionPrompt {
                id: number.to_string(),
                tool,
                options: parse_options(&raw["options"]),
                details: details::read_details(&raw["call"]),
                must_ask_user: false,
            },
            is_form: raw["method"] != Method::SessionRequestPermission.name(),
            raw: raw.clone(),
        })
    }

    /// The hub's JSON with the key of every option.
    pub(crate) fn to_json(&self) -> Value {
        let mut row = self.raw.clone();
        row["what"] = json!(self.permission.tool.title);
        let options = row.get_mut("options").and_then(Value::as_array_mut).into_iter().flatten();
        for (json, option) in options.zip(&self.permission.options) {
            json["key"] = json!(option.key);
        }
        row
    }

    /// Whether the request only names a tool call, whose title was sent earlier.
    pub(crate) fn needs_title(&self) -> bool {
        self.permission.tool.title.is_empty() && self.raw["toolCallId"].is_string()
    }

    /// Searches the log of the session for the title of the tool call. Needs its own connection, because it attaches.
    pub(crate) fn find_title(&mut self, mut conn: CommandConnection) -> Result<(), CommandError> {
        let waited_for = "the title of the tool call";
        read_notifications(&mut conn, &self.session_id, 0, waited_for, &mut |frame| {
            let params = frame.params_value();
            let update = &params["update"];
            if update["toolCallId"] == self.raw["toolCallId"]
                && let Some(title) = update["title"].as_str()
            {
                self.permission.tool.title = redact::text(title).into_owned();
            }
        })
    }

    /// One line per option: key, name and id.
    pub(crate) fn option_lines(&self) -> Vec<String> {
        let line = |it: &PromptedOption| {
            format!("[{}] {}  ({})", it.key, it.display_name(), to_one_line(&it.id, ID_CHARS_MAX))
        };
        self.permission.options.iter().map(line).collect()
    }
}
