//! What the program tells without being asked.

use super::voices::Voice;
use super::{AppServer, Link, fault};
use crate::codex::tokens::Tokens;
use crate::{Entry, Stop, Turn};
use serde_json::Value;

impl AppServer {
    pub(super) fn on_notification(&mut self, method: &str, message: &Value, turn: &mut Turn) {
        let params = &message["params"];
        if let Some(thread) = self.foreign_thread(params) {
            return self.on_foreign(&thread, method, message, turn);
        }
        match method {
            "item/started" => self.items.on_item(message, false, turn),
            "item/completed" => self.items.on_item(message, true, turn),
            "item/agentMessage/delta" | "item/plan/delta" => {
                self.items.on_delta(Voice::Text, params, turn);
            }
            "item/reasoning/summaryTextDelta" => self.items.on_delta(Voice::Summary, params, turn),
            "item/reasoning/textDelta" => self.items.on_delta(Voice::Thought, params, turn),
            "item/commandExecution/outputDelta" => self.items.on_output(message, turn),
            "item/fileChange/patchUpdated" => self.items.on_patch(message, turn),
            "item/mcpToolCall/progress" => self.items.on_progress(message, turn),
            "turn/started" => self.on_turn_started(params["turn"]["id"].as_str(), turn),
            "turn/plan/updated" => turn.plan(&plan(&params["plan"])),
            "turn/completed" => self.on_completed(&params["turn"], turn),
            "error" => self.on_error(params, turn),
            "thread/tokenUsage/updated" => self.on_tokens(params, turn),
            "thread/name/updated" => turn.title(params["threadName"].as_str().unwrap_or_default()),
            "serverRequest/resolved" => self.approvals.on_resolved(&params["requestId"], turn),
            _ => on_other(method, message, turn),
        }
    }

    /// The thread of a sub-agent, if it speaks.
    fn foreign_thread(&self, params: &Value) -> Option<String> {
        let Link::Ready { thread: ours } = &self.link else { return None };
        params["threadId"].as_str().filter(|thread| thread != ours).map(str::to_owned)
    }

    fn on_foreign(&mut self, thread: &str, method: &str, message: &Value, turn: &mut Turn) {
        match method {
            "item/started" => self.items.on_foreign(thread, message, false, turn),
            "item/completed" => self.items.on_foreign(thread, message, true, turn),
            "item/commandExecution/outputDelta" => self.items.on_output(message, turn),
            "serverRequest/resolved" => {
                self.approvals.on_resolved(&message["params"]["requestId"], turn);
            }
            // Their words are kept when they are complete.
            _ if method.ends_with("elta") || method == "item/reasoning/summaryPartAdded" => {}
            _ => turn.unmapped(message),
        }
    }

    fn on_completed(&mut self, ended: &Value, turn: &mut Turn) {
        // The end of a turn that is not ours, or not any more, was told to nobody.
        if self.active.is_none() || self.active.as_deref() != ended["id"].as_str() {
            return;
        }
        self.items.on_summary(&ended["items"], turn);
        self.active = None;
        self.meter.base = self.meter.total.or(self.meter.base);
        let held = self.error.take();
        match ended["status"].as_str() {
            Some("failed") => {
                let error = Some(&ended["error"]).filter(|error| error.is_object());
                let error = error.or(held.as_ref()).unwrap_or(&Value::Null);
                turn.fail(fault::from_error(error));
            }
            Some("interrupted") => turn.done(Stop::Cancelled),
            _ => turn.done(Stop::EndTurn),
        }
        self.approvals.clear();
    }

    fn on_error(&mut self, params: &Value, turn: &mut Turn) {
        let error = &params["error"];
        if params["willRetry"] != true {
            self.error = Some(error.clone());
            return;
        }
        self.items.tear();
        let message = error["message"].as_str().unwrap_or_default();
        match error["additionalDetails"].as_str() {
            Some(details) => turn.notice(&format!("{message} ({details})")),
            None => turn.notice(message),
        }
    }

    fn on_tokens(&mut self, params: &Value, turn: &mut Turn) {
        let told = &params["tokenUsage"];
        let (total, last) = (Tokens::read(&told["total"]), Tokens::read(&told["last"]));
        self.meter.total = Some(total);
        if self.active.is_some() && self.active.as_deref() == params["turnId"].as_str() {
            let base = *self.meter.base.get_or_insert(total.since(last));
            let used = total.since(base);
            if !used.is_zero() {
                turn.usage(used.usage());
            }
        } else {
            // A resumed conversation tells where it stands.
            self.meter.base = Some(total);
        }
        let used = told["last"]["totalTokens"].as_u64();
        if let Some((used, size)) = used.zip(told["modelContextWindow"].as_u64()) {
            turn.context(used, size);
        }
    }
}

/// Everything that has nothing to do with the state of the turn.
fn on_other(method: &str, message: &Value, turn: &mut Turn) {
    let params = &message["params"];
    let text = |key: &str| params[key].as_str().unwrap_or_default();
    match method {
        "warning" | "guardianWarning" | "modelProvider/authRecoveryStarted" => {
            turn.notice(text("message"));
        }
        "configWarning" | "deprecationNotice" => turn.notice(text("summary")),
        "model/rerouted" => {
            turn.notice(&format!(
                "`{}` answers instead of `{}`",
                text("toModel"),
                text("fromModel")
            ));
        }
        "mcpServer/startupStatus/updated" if text("status") == "failed" => {
            let untold = || format!("the MCP server `{}` did not start", text("name"));
            turn.notice(&params["error"].as_str().map_or_else(untold, str::to_owned));
        }
        // Limits that are all unknown.
        "account/rateLimits/updated"
            if ["primary", "secondary", "credits"]
                .iter()
                .all(|key| params["rateLimits"][key].is_null()) => {}
        // These repeat what requests, items and the turn's end say.
        "thread/started"
        | "thread/status/changed"
        | "thread/compacted"
        | "turn/diff/updated"
        | "item/reasoning/summaryPartAdded" => {}
        _ => turn.unmapped(message),
    }
}

fn plan(steps: &Value) -> Vec<Entry> {
    let steps = steps.as_array().into_iter().flatten();
    steps
        .map(|step| Entry {
            content: step["step"].as_str().unwrap_or_default().to_owned(),
            status: match step["status"].as_str() {
                Some("completed") => "completed",
                Some("inProgress") => "in_progress",
                _ => "pending",
            },
            priority: "medium",
        })
        .collect()
}
