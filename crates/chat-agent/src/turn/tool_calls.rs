//! Runs the tool calls of one answer: announces them, checks permissions, runs them and stores the
//! results.

use super::ChatTurn;
use crate::{
    history::{HistoryEntry, ToolResult, client_call_id},
    mcp::McpWork,
    model::ModelToolCall,
    options::AgentMode,
    store::StoreError,
    tool::{PreparedCall, RequiredPermission, ToolOutcome, ToolWork, prepare_call, run_work},
};
use agent_client_protocol::v1::schema::{
    Content, PermissionOption, PermissionOptionKind, Plan, PlanEntry, RequestPermissionOutcome,
    RequestPermissionRequest, SelectedPermissionOutcome, SessionUpdate, ToolCall, ToolCallContent,
    ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields, ToolKind,
};
use futures_util::future::join_all;
use serde_json::Value;
use std::collections::BTreeSet;

/// The name of the permission for edits.
const EDIT_PERMISSION: &str = "edit";
const ALLOW_ONCE: &str = "once";
const ALLOW_ALWAYS: &str = "always";
const REJECT: &str = "reject";

/// The work of a call, by the tool that runs it.
enum CallWork {
    BuiltIn(ToolWork),
    Mcp(McpWork),
}

/// A call with its preparation.
struct PlannedCall {
    call: ModelToolCall,
    /// The id for the client.
    client_id: String,
    /// What the call would do, or why it cannot be run.
    prepared: Result<PreparedCall<CallWork>, String>,
    /// Why the call is not permitted.
    denied: Option<String>,
}

/// The result of a call, and the plan if the call changed it.
struct CallOutcome {
    call: ModelToolCall,
    result: ToolResult,
    plan: Option<Vec<PlanEntry>>,
}

enum PermissionDecision {
    Allowed,
    Denied(String),
    /// The turn was canceled while the user was asked.
    Canceled,
}

impl ChatTurn<'_> {
    /// Runs the calls of the last answer and returns each with its result. Returns `None` if the
    /// user canceled. Consecutive calls that need no permission run in parallel, all others in
    /// sequence.
    pub(super) async fn run_calls(
        &mut self,
        calls: Vec<ModelToolCall>,
        announced: &BTreeSet<String>,
    ) -> Result<Option<Vec<(ModelToolCall, String)>>, StoreError> {
        let mut planned = self.plan_calls(calls, announced).await.into_iter().peekable();
        let mut results = Vec::new();
        while let Some(first) = planned.next() {
            let mut group = vec![first];
            if group[0].needs_no_permission() {
                while let Some(next) = planned.next_if(PlannedCall::needs_no_permission) {
                    group.push(next);
                }
            }
            for it in &mut group {
                match self.check_permission(it).await? {
                    PermissionDecision::Allowed => {}
                    PermissionDecision::Denied(reason) => it.denied = Some(reason),
                    PermissionDecision::Canceled => return Ok(None),
                }
            }
            let outcomes = join_all(group.into_iter().map(|it| self.execute_call(it))).await;
            let mut new = Vec::new();
            for CallOutcome { call, result, plan } in outcomes {
                results.push((call, result.text.clone()));
                new.push(HistoryEntry::Result(result));
                new.extend(plan.map(|entries| HistoryEntry::Plan { entries }));
            }
            self.append_entries(new)?;
        }
        Ok(Some(results))
    }

    /// Prepares all calls of the last answer, and shows the client what they would do.
    async fn plan_calls(
        &self,
        calls: Vec<ModelToolCall>,
        announced: &BTreeSet<String>,
    ) -> Vec<PlannedCall> {
        let answer_position = self.history.len() - 1;
        let mut planned = Vec::new();
        for call in calls {
            let client_id = client_call_id(answer_position, &call.id);
            let prepared = self.prepare(&call).await;
            let is_announced = announced.contains(&call.id);
            let it = PlannedCall { call, client_id, prepared, denied: None };
            self.session.send_update(it.to_session_update(is_announced));
            planned.push(it);
        }
        planned
    }

    async fn prepare(&self, call: &ModelToolCall) -> Result<PreparedCall<CallWork>, String> {
        let session = self.session;
        if let Some(prepared) = session.mcp_servers.prepare_call(call) {
            prepared.map(|it| it.map_work(CallWork::Mcp))
        } else {
            let prepared = prepare_call(call, &session.context).await;
            prepared.map(|it| it.map_work(CallWork::BuiltIn))
        }
    }

    /// Decides by the tool, by the mode, by a permanent grant, or by asking the user.
    async fn check_permission(
        &self,
        planned: &PlannedCall,
    ) -> Result<PermissionDecision, StoreError> {
        let Ok(prepared) = &planned.prepared else { return Ok(PermissionDecision::Allowed) };
        let name = match &prepared.permission {
            RequiredPermission::None => return Ok(PermissionDecision::Allowed),
            RequiredPermission::Edit => EDIT_PERMISSION,
            RequiredPermission::Named(name) => name,
        };
        match (self.options.mode, &prepared.work) {
            (AgentMode::Edit, _) if prepared.permission == RequiredPermission::Edit => {
                return Ok(PermissionDecision::Allowed);
            }
            (AgentMode::ReadOnly, CallWork::BuiltIn(_)) => {
                let reason = "This session is read-only: nothing may be changed or run. Say what \
                              you would do instead.";
                return Ok(PermissionDecision::Denied(reason.to_owned()));
            }
            _ => {}
        }
        if self.session.is_granted(name) {
            return Ok(PermissionDecision::Allowed);
        }
        self.request_permission(&planned.client_id, prepared, name).await
    }

    async fn request_permission(
        &self,
        client_id: &str,
        prepared: &PreparedCall<CallWork>,
        name: &str,
    ) -> Result<PermissionDecision, StoreError> {
        let context = &self.session.context;
        let fields = to_update_fields(prepared).status(ToolCallStatus::Pending);
        let request = RequestPermissionRequest::new(
            context.session_id.clone(),
            ToolCallUpdate::new(client_id.to_owned(), fields),
            permission_options(name),
        );
        let outcome = match context.client.send_request(request).block_task().await {
            Ok(response) => response.outcome,
            Err(error) => {
                let reason = format!("The user could not be asked for permission: {error}");
                return Ok(PermissionDecision::Denied(reason));
            }
        };
        let option_id = match outcome {
            RequestPermissionOutcome::Cancelled => return Ok(PermissionDecision::Canceled),
            RequestPermissionOutcome::Selected(SelectedPermissionOutcome { option_id, .. }) => {
                option_id
            }
            _ => {
                let reason = "The user's answer was not understood, so the call is not permitted.";
                return Ok(PermissionDecision::Denied(reason.to_owned()));
            }
        };
        match &*option_id.0 {
            ALLOW_ONCE => Ok(PermissionDecision::Allowed),
            ALLOW_ALWAYS => {
                self.session
                    .update_record(|record| record.granted_permissions.push(name.to_owned()))?;
                Ok(PermissionDecision::Allowed)
            }
            _ => {
                let reason = "The user did not allow this. Do not try it in another way; ask what \
                              they want instead.";
                Ok(PermissionDecision::Denied(reason.to_owned()))
            }
        }
    }

    /// Runs one call, unless it was denied or is invalid, and sends its result to the client.
    async fn execute_call(&self, planned: PlannedCall) -> CallOutcome {
        let PlannedCall { call, client_id, prepared, denied } = planned;
        let session = self.session;
        let send_fields = |fields| {
            let update = ToolCallUpdate::new(client_id.clone(), fields);
            session.send_update(SessionUpdate::ToolCallUpdate(update));
        };
        let (title, kind, locations, outcome) = match (prepared, denied) {
            (Err(error), _) => {
                (call.name.clone(), ToolKind::Other, Vec::new(), ToolOutcome::failure(error))
            }
            (Ok(it), Some(reason)) => {
                (it.title, it.kind, it.locations, ToolOutcome::failure(reason))
            }
            (Ok(it), None) => {
                send_fields(ToolCallUpdateFields::new().status(ToolCallStatus::InProgress));
                let outcome = match it.work {
                    CallWork::BuiltIn(work) => run_work(work, &session.context, &send_fields).await,
                    CallWork::Mcp(work) => session.mcp_servers.run_work(work).await,
                };
                (it.title, it.kind, it.locations, outcome)
            }
        };
        let ToolOutcome { text, is_error, mut content, raw_output, plan } = outcome;
        if content.is_empty() && !text.is_empty() {
            content.push(ToolCallContent::Content(Content::new(text.as_str())));
        }
        if let Some(entries) = &plan {
            session.send_update(SessionUpdate::Plan(Plan::new(entries.clone())));
        }
        let status = if is_error { ToolCallStatus::Failed } else { ToolCallStatus::Completed };
        let fields = ToolCallUpdateFields::new().status(status).content(content.clone());
        send_fields(fields.raw_output(raw_output.clone()));
        let call_id = call.id.clone();
        let result =
            ToolResult { call_id, title, kind, locations, text, is_error, content, raw_output };
        CallOutcome { call, result, plan }
    }
}

impl PlannedCall {
    fn needs_no_permission(&self) -> bool {
        self.prepared.as_ref().is_ok_and(|it| it.permission == RequiredPermission::None)
    }

    /// Describes the call to the client, as a new call or as an update of an announced one.
    fn to_session_update(&self, is_announced: bool) -> SessionUpdate {
        let name = &self.call.name;
        let fields = match &self.prepared {
            Ok(prepared) => to_update_fields(prepared),
            Err(_) => ToolCallUpdateFields::new()
                .title(name.clone())
                .raw_input(serde_json::from_str::<Value>(&self.call.arguments).ok()),
        };
        let id = self.client_id.clone();
        if is_announced {
            SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id, fields))
        } else {
            let mut tool_call = ToolCall::new(id, name.clone());
            tool_call.update(fields);
            SessionUpdate::ToolCall(tool_call.name(name.clone()))
        }
    }
}

fn permission_options(name: &str) -> Vec<PermissionOption> {
    let always = if name == EDIT_PERMISSION {
        "Always allow edits in this session".to_owned()
    } else {
        format!("Always allow `{name}` in this session")
    };
    vec![
        PermissionOption::new(ALLOW_ONCE, "Allow once", PermissionOptionKind::AllowOnce),
        PermissionOption::new(ALLOW_ALWAYS, always, PermissionOptionKind::AllowAlways),
        PermissionOption::new(REJECT, "Reject", PermissionOptionKind::RejectOnce),
    ]
}

fn to_update_fields(prepared: &PreparedCall<CallWork>) -> ToolCallUpdateFields {
    ToolCallUpdateFields::new()
        .title(prepared.title.clone())
        .kind(prepared.kind)
        .locations(prepared.locations.clone())
        .content(prepared.content.clone())
        .raw_input(prepared.input.clone())
}
