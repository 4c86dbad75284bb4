//! What a dialect may say: updates, asks, lines for the program, and the turn's one outcome.

use crate::outcome::Outcome;
use crate::{Failure, Status, Stop, Tool, Usage};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// One entry of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub content: String,
    /// `pending`, `in_progress` or `completed`.
    pub status: &'static str,
    /// `high`, `medium` or `low`.
    pub priority: &'static str,
}

/// One way to answer an ask; `kind` is ACP's: `allow_once`, `allow_always`, `reject_once`, `reject_always`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskOption {
    pub id: String,
    pub name: String,
    pub kind: &'static str,
}

/// What the adapter has to do with what a dialect said.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Effect {
    /// `params.update` of a `session/update`.
    Update(Value),
    Ask {
        key: String,
        tool_call: Value,
        options: Vec<AskOption>,
    },
    /// The program does not wait for this answer any more.
    Unask {
        key: String,
    },
    /// A line for the program's stdin, without its newline.
    Write(String),
    CloseStdin,
    /// The id under which the program knows the session.
    Native(String),
}

/// The ears and mouth of one session. It enforces what every dialect must keep: one outcome, tools
/// created before they are updated and closed at the end, no empty chunks.
#[derive(Debug, Default)]
pub struct Turn {
    pub(crate) effects: Vec<Effect>,
    pub(crate) outcome: Option<Outcome>,
    pub(crate) usage: Option<Usage>,
    pub(crate) cost: Option<f64>,
    /// The last lines that were no protocol, for the day on which nothing else says what is wrong.
    pub(crate) noise: Vec<String>,
    tools: BTreeMap<String, Option<Status>>,
    running: bool,
    cancelled: bool,
    spoke: bool,
}

/// More noise than this tells nothing new.
const NOISE_LINES_MAX: usize = 40;

impl Turn {
    pub(crate) fn begin(&mut self) {
        // A program may open a tool call between turns, and then it belongs to none.
        self.finish();
        *self =
            Turn { effects: std::mem::take(&mut self.effects), running: true, ..Turn::default() };
    }

    pub(crate) fn on_cancel(&mut self) {
        self.cancelled = true;
    }

    /// Closes the turn for good: what is still open will not be heard of again.
    pub(crate) fn finish(&mut self) {
        self.running = false;
        let open = self.tools.iter().filter(|(_, status)| !status.is_some_and(Status::is_final));
        let open: Vec<String> = open.map(|(id, _)| id.clone()).collect();
        for id in open {
            self.tool(&id, Tool::new().status(Status::Failed));
        }
    }

    /// Whether a prompt is being worked on; some programs also speak between turns.
    pub fn is_running(&self) -> bool {
        self.running && self.outcome.is_none()
    }

    /// Whether the client cancelled this turn.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled
    }

    /// Whether the program has said, thought or done anything in this turn.
    pub fn has_spoken(&self) -> bool {
        self.spoke
    }

    /// Words of the agent. `message` is the program's id of the message, empty where it has none.
    pub fn text(&mut self, message: &str, text: &str) {
        self.chunk("agent_message_chunk", message, text);
    }

    pub fn thought(&mut self, message: &str, text: &str) {
        self.chunk("agent_thought_chunk", message, text);
    }

    /// Words of the user, only where a program replays what was said before.
    pub fn user_text(&mut self, text: &str) {
        self.chunk("user_message_chunk", "", text);
    }

    fn chunk(&mut self, update: &str, message: &str, text: &str) {
        if text.is_empty() {
            return;
        }
        self.spoke = true;
        let mut chunk = json!({"sessionUpdate": update, "content": {"type": "text", "text": text}});
        if !message.is_empty() {
            chunk["messageId"] = json!(message);
        }
        self.update(chunk);
    }

    /// Something new about a tool call; the first mention creates it. After its end only output and
    /// content are told, never a second end.
    pub fn tool(&mut self, id: &str, mut tool: Tool) {
        self.spoke = true;
        let known = self.tools.get(id).copied();
        if known.flatten().is_some_and(Status::is_final) {
            tool.status = None;
            tool.fields.remove("status");
            if tool.fields.is_empty() {
                return;
            }
        }
        let created = known.is_none();
        let status = tool.status.or(known.flatten());
        self.tools.insert(id.to_owned(), status);
        let word = if created { "tool_call" } else { "tool_call_update" };
        let mut update = Map::new();
        update.insert("sessionUpdate".to_owned(), json!(word));
        update.insert("toolCallId".to_owned(), json!(id));
        if created && !tool.fields.contains_key("title") {
            update.insert("title".to_owned(), json!(id));
        }
        update.extend(tool.fields);
        self.update(Value::Object(update));
    }

    pub fn knows_tool(&self, id: &str) -> bool {
        self.tools.contains_key(id)
    }

    /// The whole plan; it replaces the one before.
    pub fn plan(&mut self, entries: &[Entry]) {
        let entries: Vec<Value> = entries
            .iter()
            .map(|it| json!({"content": it.content, "priority": it.priority, "status": it.status}))
            .collect();
        self.update(json!({"sessionUpdate": "plan", "entries": entries}));
    }

    /// The program changed its mode by itself.
    pub fn mode(&mut self, id: &str) {
        self.update(json!({"sessionUpdate": "current_mode_update", "currentModeId": id}));
    }

    /// Slash commands: name and description.
    pub fn commands(&mut self, commands: &[(String, String)]) {
        let commands: Vec<Value> = commands
            .iter()
            .map(|(name, what)| json!({"name": name, "description": what}))
            .collect();
        let update = "available_commands_update";
        self.update(json!({"sessionUpdate": update, "availableCommands": commands}));
    }

    pub fn title(&mut self, title: &str) {
        self.update(json!({"sessionUpdate": "session_info_update", "title": title}));
    }

    /// Tokens used so far in this turn; the last call counts.
    pub fn usage(&mut self, usage: Usage) {
        self.usage = Some(usage);
    }

    /// US dollars spent so far in this turn; the last call counts.
    pub fn cost(&mut self, dollars: f64) {
        self.cost = Some(dollars);
    }

    /// How full the context window is.
    pub fn context(&mut self, used: u64, size: u64) {
        self.update(json!({"sessionUpdate": "usage_update", "used": used, "size": size}));
    }

    /// Something people may want to know that is neither text nor an error: a retry, a warning.
    pub fn notice(&mut self, text: &str) {
        self.meta("notice", &json!(text));
    }

    /// A valid line that means nothing to us: kept for whoever knows better.
    pub fn unmapped(&mut self, line: &Value) {
        self.meta("unmapped", line);
    }

    /// A line as the JSON object that it is; whatever else it may be is noise.
    pub fn object(&mut self, line: &str) -> Option<Value> {
        let object = serde_json::from_str::<Value>(line).ok().filter(Value::is_object);
        if object.is_none() {
            self.noise(line);
        }
        object
    }

    /// A line that is no protocol at all.
    pub fn noise(&mut self, line: &str) {
        if !line.trim().is_empty() {
            if NOISE_LINES_MAX <= self.noise.len() {
                self.noise.remove(0);
            }
            self.noise.push(line.to_owned());
        }
    }

    /// Asks the client for permission; [`crate::Dialect::answer`] hears under `key` what it said.
    pub fn ask(&mut self, key: &str, tool_id: &str, tool: Tool, options: Vec<AskOption>) {
        let mut tool_call = Map::new();
        tool_call.insert("toolCallId".to_owned(), json!(tool_id));
        tool_call.extend(tool.fields.clone());
        if !self.knows_tool(tool_id) {
            // Nobody should be asked about a call that was never heard of.
            self.tool(tool_id, tool);
        }
        let tool_call = Value::Object(tool_call);
        self.effects.push(Effect::Ask { key: key.to_owned(), tool_call, options });
    }

    /// The program answered its own question or gave it up.
    pub fn unask(&mut self, key: &str) {
        self.effects.push(Effect::Unask { key: key.to_owned() });
    }

    /// A line for the program's stdin.
    pub fn write(&mut self, line: &Value) {
        self.effects.push(Effect::Write(line.to_string()));
    }

    pub fn write_text(&mut self, line: &str) {
        self.effects.push(Effect::Write(line.to_owned()));
    }

    pub fn close_stdin(&mut self) {
        self.effects.push(Effect::CloseStdin);
    }

    /// The program told the id under which it can resume this session.
    pub fn native(&mut self, id: &str) {
        self.effects.push(Effect::Native(id.to_owned()));
    }

    /// The turn is over. The first outcome counts.
    pub fn done(&mut self, stop: Stop) {
        let stop = if self.cancelled { Stop::Cancelled } else { stop };
        if self.is_running() {
            self.outcome = Some(Outcome::Done(stop));
        }
    }

    /// The turn failed. The first outcome counts; what was cancelled did not fail.
    pub fn fail(&mut self, failure: Failure) {
        if self.cancelled {
            self.done(Stop::Cancelled);
        } else if self.is_running() {
            self.outcome = Some(Outcome::Failed(failure));
        }
    }

    fn meta(&mut self, key: &str, value: &Value) {
        let meta = json!({"jackfield": {key: value}});
        self.update(json!({"sessionUpdate": "session_info_update", "_meta": meta}));
    }

    fn update(&mut self, update: Value) {
        self.effects.push(Effect::Update(update));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cause;

    fn running() -> Turn {
        let mut turn = Turn::default();
        turn.begin();
        turn
    }

    fn updates(turn: &Turn) -> Vec<&Value> {
        let updates = turn.effects.iter().filter_map(|effect| match effect {
            Effect::Update(update) => Some(update),
            _ => None,
        });
        updates.collect()
    }

    #[test]
    fn a_tool_is_created_once_and_whatever_is_open_is_closed() {
        let mut turn = running();
        turn.tool("a", Tool::new().status(Status::InProgress));
        turn.tool("a", Tool::new().status(Status::Completed));
        turn.tool("a", Tool::new().status(Status::Failed));
        turn.tool("b", Tool::new().title("B"));
        turn.finish();
        let told: Vec<(&str, &str, &str)> = updates(&turn)
            .into_iter()
            .map(|it| {
                let word = |key: &str| it[key].as_str().unwrap_or("-");
                (word("sessionUpdate"), word("toolCallId"), word("status"))
            })
            .collect();
        assert_eq!(
            told,
            [
                ("tool_call", "a", "in_progress"),
                ("tool_call_update", "a", "completed"),
                ("tool_call", "b", "-"),
                ("tool_call_update", "b", "failed"),
            ]
        );
    }

    #[test]
    fn a_tool_that_was_opened_between_turns_is_closed_by_the_next() {
        let mut turn = running();
        turn.done(Stop::EndTurn);
        turn.finish();
        turn.tool("late", Tool::new().status(Status::InProgress));
        turn.begin();
        let last = updates(&turn).pop().unwrap();
        assert_eq!((&last["toolCallId"], &last["status"]), (&json!("late"), &json!("failed")));
    }

    #[test]
    fn the_first_outcome_counts_and_a_cancelled_turn_is_cancelled() {
        let mut turn = running();
        turn.done(Stop::Refusal);
        turn.fail(Failure::new(Cause::Crashed, "late"));
        assert_eq!(turn.outcome, Some(Outcome::Done(Stop::Refusal)));
        let mut turn = running();
        turn.on_cancel();
        turn.fail(Failure::new(Cause::Crashed, "killed"));
        assert_eq!(turn.outcome, Some(Outcome::Done(Stop::Cancelled)));
    }

    #[test]
    fn nobody_is_asked_about_a_call_that_was_never_heard_of() {
        let mut turn = running();
        turn.ask("k", "t", Tool::new().title("Write x"), Vec::new());
        assert_eq!(updates(&turn)[0]["sessionUpdate"], "tool_call");
        assert!(
            matches!(&turn.effects[1], Effect::Ask { tool_call, .. } if tool_call["title"] == "Write x")
        );
    }
}
