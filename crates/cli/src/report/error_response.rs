//! An error response of the hub or the agent: message, causes, hint and exit code.

use crate::{exit::CliExitCode, plain_text::escape_control_chars};
use jackfield_daemon::FIX_SEPARATOR;
use jackfield_hub_client::ErrorResponse;
use serde_json::Value;

pub(super) fn describe_message(response: &ErrorResponse) -> String {
    let agent = response.hub_member("agent");
    match response.error_name() {
        "agent_gone" => format!("agent `{agent}` exited before it answered"),
        "agent_not_started" => format!("agent `{agent}` could not be started"),
        "agent_suspended" => format!("agent `{agent}` is suspended"),
        "cannot_resume" => {
            format!("session `{}` cannot be resumed", response.hub_member("session"))
        }
        "no_agent" if is_unknown_agent(response) => {
            escape_control_chars(response.hub_member("why")).into_owned()
        }
        "no_agent" => "no usable agent".to_owned(),
        "interrupted" => "the turn was interrupted".to_owned(),
        "ask_settled" => format!("ask {} is no longer open", response.hub_member("ask")),
        "not_approved" => format!(
            "permission request `{}` was not approved",
            escape_control_chars(response.hub_member("request"))
        ),
        _ => escape_control_chars(response.message().unwrap_or("unspecified error")).into_owned(),
    }
}

/// Whether the client named an agent that does not exist; otherwise it named none.
fn is_unknown_agent(response: &ErrorResponse) -> bool {
    response.hub_member("why").starts_with("unknown agent")
}

/// The message and its causes, as the causes of another error.
pub(crate) fn list_as_causes(response: &ErrorResponse) -> Vec<String> {
    [vec![describe_message(response)], list_causes(response)].concat()
}

pub(super) fn list_causes(response: &ErrorResponse) -> Vec<String> {
    let cause = match response.error_name() {
        "agent_gone" => response.hub_member("status"),
        "ask_settled" => response.hub_member("how"),
        "no_agent" if is_unknown_agent(response) => "",
        "agent_not_started" | "agent_suspended" | "cannot_resume" | "no_agent" | "interrupted"
        | "not_approved" => response.hub_member("why"),
        _ => return list_agent_causes(response),
    };
    let cause = cause.split_once(FIX_SEPARATOR).map_or(cause, |it| it.0);
    [cause]
        .into_iter()
        .filter(|it| !it.is_empty())
        .map(|it| escape_control_chars(it).into_owned())
        .collect()
}

/// Agents put text into `data`, or an object with a text member of some name.
fn list_agent_causes(response: &ErrorResponse) -> Vec<String> {
    let data = response.data();
    let names = ["details", "detail", "message", "error", "reason"];
    let text = names.iter().find_map(|it| data.get(*it).and_then(Value::as_str));
    let text = text.or(data.as_str()).map(|it| escape_control_chars(it).into_owned());
    let code = (response.error_name().is_empty())
        .then(|| format!("JSON-RPC error {} from the agent", response.code()));
    text.into_iter().chain(code).collect()
}

pub(super) fn choose_exit_code(response: &ErrorResponse) -> CliExitCode {
    match (response.error_name(), response.code()) {
        ("session_not_found" | "no_agent" | "ask_not_found", _) | (_, -32002) => {
            CliExitCode::NotFound
        }
        ("cancelled", _) | (_, -32800) => CliExitCode::Interrupted,
        ("not_approved", _) => CliExitCode::Denied,
        ("stopping", _) => CliExitCode::Unreachable,
        _ => CliExitCode::Failed,
    }
}

pub(super) fn describe_solution(response: &ErrorResponse) -> String {
    let agent = response.hub_member("agent");
    match (response.error_name(), response.code()) {
        ("no_agent", _) => {
            "choose one with `--agent` (`jackfield agents` lists them), pass its command after \
             `--`, or set `default_agent` in config.toml"
                .into()
        }
        ("session_not_found", _) => "`jackfield sessions list` shows all sessions".into(),
        ("agent_not_started", _) if response.hub_member("why").contains(FIX_SEPARATOR) => {
            escape_control_chars(response.hub_member("why").split_once(FIX_SEPARATOR).unwrap_or_default().1).into_owned()
        }
        ("agent_not_started", _) if response.hub_member("why").contains("not found") => format!(
            "install `{agent}`, or correct its command after `--` or under [agents.{agent}] \
             in config.toml"
        ),
        ("agent_not_started" | "agent_gone", _) => {
            "run the agent's own command in a terminal: it may print more".into()
        }
        ("agent_suspended", _) => format!(
            "run the agent's own command in a terminal to find the cause; `fallback` under \
             [agents.{agent}] in config.toml names an agent to use instead"
        ),
        ("cannot_resume", _) => {
            "start a new session without `--session`; `jackfield log` still shows this one"
                .into()
        }
        ("ask_not_found", _) => "`jackfield asks` lists open asks".into(),
        ("ask_settled", _) => {
            format!("`jackfield log {}` shows the answer", response.hub_member("session"))
        }
        ("interrupted", _) => {
            "send the prompt again; `jackfield log` shows the turn so far".into()
        }
        ("not_approved", _) => {
            "answer it on a terminal without `--approve`, or with `jackfield attach`".into()
        }
        ("overloaded", _) => {
            "try again when fewer prompts are queued; `jackfield queue SESSION` lists them".into()
        }
        ("prompt_not_waiting", _) => {
            format!("`jackfield queue {}` lists queued prompts", response.hub_member("session"))
        }
        ("host_lost", _) => {
            "start a host with that name (`--host-name`) where its directories are; `jackfield log`, \
             `sessions show` and `sessions export` can read the session meanwhile"
                .into()
        }
        ("stopping", _) => "try again: the next command starts a new daemon".into(),
        _ if response.data()["hint"].is_string() => {
            escape_control_chars(response.data()["hint"].as_str().unwrap_or_default()).into_owned()
        }
        (_, -32000) => "log in with the agent's own command, then run this again".into(),
        _ => String::new(),
    }
}
