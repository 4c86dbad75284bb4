//! Permission requests of agents: shown to the user, or answered by `--approve` and `--on-ask`.

mod approval;
mod details;
mod open;

pub(crate) use approval::{ApprovalLevel, ApprovalRules, RequestAction, UnapprovedAction};
pub(crate) use open::{OpenRequest, list_open_requests};

use crate::out::{BRIGHT, DIM, NAME, paint};
use crate::plain_text::to_one_line;
use jackfield_protocol::{Frame, acp::Method};
use jackfield_views::text::ToolSummary;
use serde_json::{Value, json};

pub(crate) const TITLE_CHARS_MAX: usize = 200;
const NAME_CHARS_MAX: usize = 80;

/// A permission request.
#[derive(Debug, Clone)]
pub(crate) struct PermissionPrompt {
    /// The JSON text of the request's id.
    pub(crate) id: String,
    pub(crate) tool: ToolSummary,
    options: Vec<PromptedOption>,
    /// The daemon's analysis of the call as labeled lines; empty if the daemon sent none.
    details: Vec<(&'static str, String)>,
    /// A policy rule requires that the user decides.
    pub(crate) must_ask_user: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct PromptedOption {
    /// What the user types to choose it.
    key: String,
    id: String,
    name: String,
    kind: String,
}

impl PromptedOption {
    /// The name on one line, so that an agent cannot make one option look like two.
    fn display_name(&self) -> String {
        to_one_line(&self.name, NAME_CHARS_MAX)
    }
}

impl PermissionPrompt {
    /// Parses a frame; `None` if it is not a permission request.
    pub(crate) fn parse(
        frame: &Frame,
        tool_of: &mut dyn FnMut(&Value) -> ToolSummary,
    ) -> Option<PermissionPrompt> {
        if !frame.is_method(Method::SessionRequestPermission) {
            return None;
        }
        let params: Value = serde_json::from_str(frame.params()?).ok()?;
        params["options"].as_array()?;
        let options = parse_options(&params["options"]);
        let must_ask_user = params["_meta"]["jackfield"]["policy"]["effect"] == "ask";
        let tool = tool_of(&params["toolCall"]);
        let mut details = details::read_details(&params["_meta"]["jackfield"]["call"]);
        details.extend(details::read_changes(&params["toolCall"]["content"]));
        Some(PermissionPrompt { id: frame.id()?.to_owned(), tool, options, details, must_ask_user })
    }

    /// What the agent wants to do, in one line: the daemon's analysis, then the agent's title.
    pub(crate) fn summary(&self) -> String {
        let title = to_one_line(&self.tool.title, TITLE_CHARS_MAX);
        let is_action = |it: &&(&str, String)| matches!(it.0, "runs" | "MCP" | "touches");
        let actions: Vec<String> =
            self.details.iter().filter(is_action).map(|it| format!("{} {}", it.0, it.1)).collect();
        let actions = to_one_line(&actions.join("; "), TITLE_CHARS_MAX);
        match (actions.is_empty(), title.is_empty()) {
            (true, true) => "use a tool".to_owned(),
            (true, false) => title,
            (false, true) => actions,
            (false, false) => format!("{actions}, titled \"{title}\""),
        }
    }

    /// The names of the options.
    pub(crate) fn option_names(&self) -> Vec<String> {
        self.options.iter().map(PromptedOption::display_name).collect()
    }

    /// The text of the question: the agent, the details, the agent's own title, and the keys.
    pub(crate) fn format_question(&self, agent: &str) -> String {
        let mut text = paint(NAME, format!("{agent} asks:"));
        if self.details.is_empty() {
            text.extend([" ", &self.summary()]);
        } else {
            for (label, detail) in &self.details {
                text.extend(["\n  ", &paint(DIM, format!("{label:<9}")), detail]);
            }
            let title = to_one_line(&self.tool.title, TITLE_CHARS_MAX);
            if !title.is_empty() {
                text.extend(["\n  ", &paint(DIM, "title by the agent: "), &title]);
            }
            text.push('\n');
        }
        for option in &self.options {
            text.extend(["  [", &paint(BRIGHT, &option.key), "] ", &option.display_name()]);
        }
        text
    }

    /// The answer for a typed key or option id, if there is such an option.
    pub(crate) fn answer_for_input(&self, line: &str) -> Option<Value> {
        let line = line.trim();
        let matches = |it: &&PromptedOption| it.key.eq_ignore_ascii_case(line) || it.id == line;
        self.options.iter().find(matches).map(select_option)
    }

    /// The answer that allows the call once, if the agent offers it.
    pub(crate) fn allow_once(&self) -> Option<Value> {
        jackfield_policy::allow_once(&self.to_params())
    }

    /// The answer that rejects the call once; without such an option, the answer that cancels the request.
    pub(crate) fn reject_once(&self) -> Value {
        jackfield_policy::deny_once(&self.to_params())
    }

    /// The options as in the parameters of the request.
    fn to_params(&self) -> Value {
        let option =
            |it: &PromptedOption| json!({ "optionId": it.id, "name": it.name, "kind": it.kind });
        json!({ "options": self.options.iter().map(option).collect::<Vec<_>>() })
    }

    /// The name of the option that an answer chooses.
    pub(crate) fn name_chosen_option(&self, answer: &Value) -> String {
        let chosen = answer["outcome"]["optionId"].as_str();
        let option = self.options.iter().find(|it| Some(it.id.as_str()) == chosen);
        option.map_or_else(|| "no option chosen".to_owned(), PromptedOption::display_name)
    }
}

/// The options, each with its own key.
fn parse_options(options: &Value) -> Vec<PromptedOption> {
    let mut parsed: Vec<PromptedOption> = Vec::new();
    for option in options.as_array().into_iter().flatten() {
        let text = |name: &str| option[name].as_str().unwrap_or_default().to_owned();
        let key = assign_key(&text("kind"), &parsed);
        let (id, name, kind) = (text("optionId"), text("name"), text("kind"));
        parsed.push(PromptedOption { key, id, name, kind });
    }
    parsed
}

fn select_option(option: &PromptedOption) -> Value {
    json!({ "outcome": { "outcome": "selected", "optionId": option.id } })
}

/// The first option of a kind gets a letter, the others get their position in the list.
fn assign_key(kind: &str, before: &[PromptedOption]) -> String {
    let letter = match kind {
        "allow_once" => "y",
        "allow_always" => "a",
        "reject_once" => "n",
        "reject_always" => "never",
        _ => "",
    };
    if letter.is_empty() || before.iter().any(|it| it.key == letter) {
        (before.len() + 1).to_string()
    } else {
        letter.to_owned()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn permission_request(kind: &str, options: &[(&str, &str)]) -> PermissionPrompt {
        let options: Vec<Value> = options
            .iter()
            .map(|(id, kind)| json!({ "optionId": id, "name": id, "kind": kind }))
            .collect();
        let params = json!({
            "sessionId": "s-1",
            "toolCall": { "toolCallId": "t1", "title": "run `cargo test`", "kind": kind },
            "options": options,
        });
        let frame =
            Frame::request("7", Method::SessionRequestPermission.name(), &params.to_string());
        let tool = |call: &Value| ToolSummary {
            title: call["title"].as_str().unwrap_or_default().to_owned(),
            kind: call["kind"].as_str().unwrap_or_default().to_owned(),
        };
        PermissionPrompt::parse(&frame, &mut { tool }).unwrap()
    }

    const FOUR: &[(&str, &str)] = &[
        ("once", "allow_once"),
        ("project", "allow_always"),
        ("all", "allow_always"),
        ("no", "reject_once"),
    ];

    #[test]
    fn every_option_has_its_own_key() {
        let request = permission_request("execute", FOUR);
        let keys: Vec<&str> = request.options.iter().map(|it| it.key.as_str()).collect();
        assert_eq!(keys, ["y", "a", "3", "n"]);
        let chosen =
            |line: &str| Some(request.answer_for_input(line)?["outcome"]["optionId"].clone());
        assert_eq!(chosen(" Y "), Some("once".into()));
        assert_eq!(chosen("3"), Some("all".into()));
        assert_eq!(chosen("project"), Some("project".into()));
        assert_eq!(chosen("maybe"), None);
    }

    #[test]
    fn allow_and_reject_are_never_permanent() {
        let request =
            permission_request("execute", &[("ever", "allow_always"), ("never", "reject_always")]);
        assert_eq!(request.allow_once(), None);
        assert_eq!(request.reject_once()["outcome"]["outcome"], "cancelled");
    }

    #[test]
    fn other_requests_are_not_parsed() {
        let frame = Frame::request("7", Method::FsReadTextFile.name(), "{}");
        assert!(PermissionPrompt::parse(&frame, &mut |_| ToolSummary::default()).is_none());
    }
}
