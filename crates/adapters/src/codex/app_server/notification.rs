//! Handles the notifications of the program.

use super::streamed_messages::DeltaKind;
use super::{AppServerDialect, LinkState, failure};
use crate::codex::item::ItemPhase;
use crate::codex::token_counts::ThreadTokenCounts;
use crate::{AdapterTurn, PlanEntry, StopReason};
use serde_json::Value;

impl AppServerDialect {
    pub(super) fn on_notification(
        &mut self,
        method: &str,
        message: &Value,
        turn: &mut AdapterTurn,
    ) {
        let params = &message["params"];
        if let Some(thread) = self.sub_agent_thread(params) {
            return self.on_sub_agent(&thread, method, message, turn);
        }
        match method {
            "item/started" => self.items.on_item(message, ItemPhase::Started, turn),
            "item/completed" => self.items.on_item(message, ItemPhase::Completed, turn),
            "item/agentMessage/delta" | "item/plan/delta" => {
                self.items.on_delta(DeltaKind::Text, params, turn);
            }
            "item/reasoning/summaryTextDelta" => {
                self.items.on_delta(DeltaKind::Summary, params, turn);
            }
            "item/reasoning/textDelta" => self.items.on_delta(DeltaKind::RawThought, params, turn),
            "item/commandExecution/outputDelta" => self.items.on_output(message, turn),
            "item/fileChange/patchUpdated" => self.items.on_patch(message, turn),
            "item/mcpToolCall/progress" => self.items.on_progress(message, turn),
            "turn/started" => self.on_turn_started(params["turn"]["id"].as_str(), turn),
            "turn/plan/updated" => turn.send_plan(&parse_plan(&params["plan"])),
            "turn/completed" => self.on_completed(&params["turn"], turn),
            "error" => self.on_error(params, turn),
            "thread/tokenUsage/updated" => self.on_tokens(params, turn),
            "thread/name/updated" => {
                turn.send_title(params["threadName"].as_str().unwrap_or_default());
            }
            "serverRequest/resolved" => self.approvals.on_resolved(&params["requestId"], turn),
            _ => on_other_notification(method, message, turn),
        }
    }

    /// The thread of the sub-agent that a notification concerns, if any.
    fn sub_agent_thread(&self, params: &Value) -> Option<String> {
        let LinkState::Ready { thread: own } = &self.link else { return None };
        params["threadId"].as_str().filter(|thread| thread != own).map(str::to_owned)
    }

    fn on_sub_agent(
        &mut self,
        thread: &str,
        method: &str,
        message: &Value,
        turn: &mut AdapterTurn,
    ) {
        match method {
            "item/started" => {
                self.items.on_sub_agent_item(thread, message, ItemPhase::Started, turn);
            }
            "item/completed" => {
                self.items.on_sub_agent_item(thread, message, ItemPhase::Completed, turn);
            }
            "item/commandExecution/outputDelta" => self.items.on_output(message, turn),
            "serverRequest/resolved" => {
                self.approvals.on_resolved(&message["params"]["requestId"], turn);
            }
            // Their text is forwarded when it is complete.
            _ if method.ends_with("elta") || method == "item/reasoning/summaryPartAdded" => {}
            _ => turn.report_unmapped(message),
        }
    }

    fn on_completed(&mut self, ended: &Value, turn: &mut AdapterTurn) {
        // A turn that Codex started by itself, or that has already ended, has no waiting prompt.
        if self.active_turn.is_none() || self.active_turn.as_deref() != ended["id"].as_str() {
            return;
        }
        self.items.on_final_items(&ended["items"], turn);
        self.active_turn = None;
        self.meter.base = self.meter.total.or(self.meter.base);
        let earlier_error = self.error.take();
        match ended["status"].as_str() {
            Some("failed") => {
                let error = Some(&ended["error"]).filter(|error| error.is_object());
                let error = error.or(earlier_error.as_ref()).unwrap_or(&Value::Null);
                turn.fail(failure::from_error(error));
            }
            Some("interrupted") => turn.complete(StopReason::Cancelled),
            _ => turn.complete(StopReason::EndTurn),
        }
        self.approvals.clear();
    }

    fn on_error(&mut self, params: &Value, turn: &mut AdapterTurn) {
        let error = &params["error"];
        if params["willRetry"] != true {
            self.error = Some(error.clone());
            return;
        }
        self.items.restart_incomplete();
        let message = error["message"].as_str().unwrap_or_default();
        match error["additionalDetails"].as_str() {
            Some(details) => turn.send_notice(&format!("{message} ({details})")),
            None => turn.send_notice(message),
        }
    }

    fn on_tokens(&mut self, params: &Value, turn: &mut AdapterTurn) {
        let usage = &params["tokenUsage"];
        let (total, last) =
            (ThreadTokenCounts::parse(&usage["total"]), ThreadTokenCounts::parse(&usage["last"]));
        self.meter.total = Some(total);
        if self.active_turn.is_some() && self.active_turn.as_deref() == params["turnId"].as_str() {
            let base = *self.meter.base.get_or_insert(total.since(last));
            let turn_tokens = total.since(base);
            if !turn_tokens.is_zero() {
                turn.record_usage(turn_tokens.to_usage());
            }
        } else {
            // A resumed thread reports its earlier usage.
            self.meter.base = Some(total);
        }
        let used_tokens = usage["last"]["totalTokens"].as_u64();
        if let Some((used_tokens, size)) = used_tokens.zip(usage["modelContextWindow"].as_u64()) {
            turn.send_context_size(used_tokens, size);
        }
    }
}

/// Handles notifications that do not concern the state of the turn.
fn on_other_notification(method: &str, message: &Value, turn: &mut AdapterTurn) {
    let params = &message["params"];
    let text = |key: &str| params[key].as_str().unwrap_or_default();
    match method {
        "warning" | "guardianWarning" | "modelProvider/authRecoveryStarted" => {
            turn.send_notice(text("message"));
        }
        "configWarning" | "deprecationNotice" => turn.send_notice(text("summary")),
        "model/rerouted" => {
            turn.send_notice(&format!(
                "switched from model `{}` to `{}`",
                text("fromModel"),
                text("toModel")
            ));
        }
        "mcpServer/startupStatus/updated" if text("status") == "failed" => {
            let default = || format!("failed to start MCP server `{}`", text("name"));
            turn.send_notice(&params["error"].as_str().map_or_else(default, str::to_owned));
        }
        // None of the limits is known.
        "account/rateLimits/updated"
            if ["primary", "secondary", "credits"]
                .iter()
                .all(|key| params["rateLimits"][key].is_null()) => {}
        // These repeat the content of requests, items and the end of the turn.
        "thread/started"
        | "thread/status/changed"
        | "thread/compacted"
        | "turn/diff/updated"
        | "item/reasoning/summaryPartAdded" => {}
        _ => turn.report_unmapped(message),
    }
}

fn parse_plan(steps: &Value) -> Vec<PlanEntry> {
    let steps = steps.as_array().into_iter().flatten();
    steps
        .map(|step| PlanEntry {
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
