//! Asks that wait for somebody, as the hub lists them: of every session, answered without attaching.

use super::{Ask, Choice, choices, facts};
use crate::{
    hub::{Conn, Heard, Until, Wait, is_answer, result_of},
    out::one_line,
    report::Failure,
};
use jackfield_protocol::acp::Method;
use jackfield_protocol::redact;
use jackfield_views::text::Tool;
use serde_json::{Value, json};

const ID_CHARS_MAX: usize = 80;

/// An open ask of some session.
#[derive(Debug)]
pub(crate) struct OpenAsk {
    pub(crate) session_id: String,
    pub(crate) number: u64,
    pub(crate) agent: String,
    pub(crate) since: String,
    pub(crate) ask: Ask,
    /// A form: there are no options, the answer is an object.
    pub(crate) form: bool,
    raw: Value,
}

/// Every open ask, the oldest first.
pub(crate) fn open_asks(conn: &mut Conn) -> Result<Vec<OpenAsk>, Failure> {
    let wait = Wait { what: "the list of asks", until: Until::Hub };
    let mut answer = conn.call(Method::ControlAsks.name(), &json!({}), wait)?;
    let rows = answer.get_mut("asks").map_or(Value::Null, Value::take);
    Ok(rows.as_array().into_iter().flatten().filter_map(OpenAsk::read).collect())
}

impl OpenAsk {
    fn read(raw: &Value) -> Option<OpenAsk> {
        let text = |name: &str| raw[name].as_str().unwrap_or_default().to_owned();
        let number = raw["ask"].as_u64()?;
        let tool = Tool { title: text("what"), kind: text("kind") };
        Some(OpenAsk {
            session_id: raw["sessionId"].as_str()?.to_owned(),
            number,
            agent: text("agent"),
            since: text("since"),
            ask: Ask {
                id: number.to_string(),
                tool,
                options: choices(&raw["options"]),
                facts: facts::read(&raw["call"]),
                ruled: false,
            },
            form: raw["method"] != Method::SessionRequestPermission.name(),
            raw: raw.clone(),
        })
    }

    /// As the hub tells it, and for every option the key that chooses it.
    pub(crate) fn for_programs(&self) -> Value {
        let mut row = self.raw.clone();
        row["what"] = json!(self.ask.tool.title);
        let options = row.get_mut("options").and_then(Value::as_array_mut).into_iter().flatten();
        for (option, choice) in options.zip(&self.ask.options) {
            option["key"] = json!(choice.key);
        }
        row
    }

    /// Agents may name only the tool call; what it does was said before.
    pub(crate) fn needs_title(&self) -> bool {
        self.ask.tool.title.is_empty() && self.raw["toolCallId"].is_string()
    }

    /// Looks the tool call up in what was said. On a connection of its own: it hears the session.
    pub(crate) fn find_title(&mut self, mut conn: Conn) -> Result<(), Failure> {
        let params = json!({ "sessionId": self.session_id, "after": 0, "observe": true });
        let id = conn.ask(Method::ControlAttach.name(), &params)?;
        loop {
            let frame = match conn.next(None)? {
                Heard::Frame(frame) => frame,
                Heard::HubGone => {
                    return Err(Failure::HubGone { waited_for: "what is asked about".into() });
                }
                _ => continue,
            };
            if is_answer(&frame, id) {
                return result_of(&frame).map(drop);
            }
            let params: Value =
                serde_json::from_str(frame.params().unwrap_or("{}")).unwrap_or_default();
            let update = &params["update"];
            if update["toolCallId"] == self.raw["toolCallId"]
                && let Some(title) = update["title"].as_str()
            {
                self.ask.tool.title = redact::text(title).into_owned();
            }
        }
    }

    /// What a person types to choose each option.
    pub(crate) fn offers(&self) -> Vec<String> {
        let line = |it: &Choice| {
            format!("[{}] {}  ({})", it.key, it.shown(), one_line(&it.id, ID_CHARS_MAX))
        };
        self.ask.options.iter().map(line).collect()
    }
}
