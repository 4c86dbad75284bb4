//! The sentences about the session itself: opened, restored, moved, exited.

use super::{
    ItemContent, NoticeLevel,
    content::{list, text},
};
use jackfield_events::{EventBody, RequestServed, RestoreStep, ServedOutcome, SettingChanged};
use jackfield_protocol::{acp::Method, quote_argv};
use serde_json::Value;

impl ItemContent {
    pub(super) fn notice(text: impl Into<String>) -> ItemContent {
        ItemContent::notice_at(NoticeLevel::Info, text, "")
    }

    pub(super) fn notice_at(
        level: NoticeLevel,
        text: impl Into<String>,
        detail: impl Into<String>,
    ) -> ItemContent {
        ItemContent::Notice { level, text: text.into(), detail: detail.into() }
    }
}

/// The notice of an event, if it has one.
pub(super) fn event_notice(body: &EventBody<Value>) -> Option<ItemContent> {
    let warning = |text: String| Some(ItemContent::notice_at(NoticeLevel::Warning, text, ""));
    match body {
        EventBody::Opened(it) => {
            let text = format!("Session opened: {} in {}", it.agent, it.cwd);
            let tried = describe_attempts(it.fallback.as_ref(), "agent");
            Some(ItemContent::notice_at(NoticeLevel::Info, text, tried))
        }
        EventBody::Forked(it) => {
            let text = format!("Forked from {} after event {}", it.from, it.seq_there.0);
            Some(ItemContent::notice(text))
        }
        EventBody::Imported(it) => Some(ItemContent::notice(format!("Imported from {}", it.from))),
        EventBody::Moved(it) => {
            let to = it.to.as_ref().map(|to| format!(" to {to}")).unwrap_or_default();
            Some(ItemContent::notice(format!("Moved from {}{to}: {}", it.from, it.why)))
        }
        EventBody::Bound(it) => {
            let is_failed = it.restore == RestoreStep::Failed;
            let level = if is_failed { NoticeLevel::Error } else { NoticeLevel::Info };
            let tried = describe_attempts(it.tried.as_ref(), "restore");
            Some(ItemContent::notice_at(level, describe_restore(it.restore), tried))
        }
        EventBody::Withdrawn(it) => {
            Some(ItemContent::notice(format!("A queued prompt did not run: {}", it.why)))
        }
        EventBody::Cancelled(it) => Some(ItemContent::notice(match it.step {
            0 | 1 => "Cancellation requested",
            2 => "Cancellation requested again",
            _ => "The agent ignored the cancellation; its process is stopped",
        })),
        EventBody::Refused(it) => {
            warning(format!("Refused {} from {}: {}", it.operation, it.by, it.why))
        }
        EventBody::HostRefused(it) => warning(format!(
            "The sandbox refused the connection to {}: {}",
            it.destination(),
            it.why
        )),
        EventBody::LeftOut(it) => warning(format!(
            "Left out {} of the agent: {} bytes exceed the limit of {} bytes",
            it.what, it.bytes, it.limit
        )),
        EventBody::Unasked(it) => {
            let title = text(&it.call, "title");
            warning(format!("Done without the approval that a rule requires: {title}"))
        }
        EventBody::Served(it) => Some(describe_served(it)),
        EventBody::Configured(it) => describe_setting(it).map(ItemContent::notice),
        EventBody::Gone(it) => {
            let text = format!("The agent exited: {}", it.status);
            Some(ItemContent::notice_at(NoticeLevel::Warning, text, &*it.stderr))
        }
        EventBody::Closed => Some(ItemContent::notice("Session closed")),
        _ => None,
    }
}

/// What failed before, one attempt per line.
fn describe_attempts(attempts: Option<&Value>, name: &str) -> String {
    let attempts = attempts.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let lines = attempts.iter().map(|it| format!("{}: {}", text(it, name), text(it, "why")));
    lines.collect::<Vec<_>>().join("\n")
}

fn describe_restore(restore: RestoreStep) -> &'static str {
    match restore {
        RestoreStep::Resumed => "The agent was restarted and resumed the conversation",
        RestoreStep::Reloaded => "The agent was restarted and reloaded the conversation",
        RestoreStep::Forked => "The agent was started from a fork of the conversation",
        RestoreStep::Reseeded => "The agent was restarted from a summary of the conversation",
        RestoreStep::Failed => "The agent could not be restarted with the conversation",
    }
}

fn describe_served(served: &RequestServed<Value>) -> ItemContent {
    let call = &served.call;
    let request = match Method::from_name(text(call, "method")) {
        Some(Method::FsReadTextFile) => format!("read {}", text(call, "path")),
        Some(Method::FsWriteTextFile) => format!("write {}", text(call, "path")),
        _ => {
            let arguments = list(call, "args").iter().filter_map(Value::as_str);
            let command = [text(call, "command")].into_iter().chain(arguments);
            format!("run {}", quote_argv(command))
        }
    };
    let (what, why) = match &served.outcome {
        ServedOutcome::Done => ("The daemon handled a request of the agent", None),
        ServedOutcome::Denied(why) => ("The daemon denied a request of the agent", Some(why)),
        ServedOutcome::Failed(why) => {
            ("The daemon could not handle a request of the agent", Some(why))
        }
        ServedOutcome::Unknown => ("The agent exited while the daemon handled its request", None),
    };
    let is_done = served.outcome == ServedOutcome::Done;
    let level = if is_done { NoticeLevel::Info } else { NoticeLevel::Warning };
    let why = why.map(|it| format!(": {it}")).unwrap_or_default();
    ItemContent::notice_at(level, format!("{what}: {request}{why}"), "")
}

/// A changed setting as `name: value`.
fn describe_setting(changed: &SettingChanged<Value>) -> Option<String> {
    let params = &changed.frame["params"];
    match Method::from_name(text(&changed.frame, "method"))? {
        Method::SessionSetMode => Some(format!("Mode: {}", text(params, "modeId"))),
        Method::SessionSetModel => Some(format!("Model: {}", text(params, "modelId"))),
        Method::SessionSetConfigOption => {
            let value = &params["value"];
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            Some(format!("{}: {value}", text(params, "configId")))
        }
        Method::ControlRename => Some(format!("Name: {}", text(params, "name"))),
        _ => None,
    }
}
