//! The calls of one answer: shown, allowed, run, and their results kept.

use super::{Turn, shown_id};
use crate::{
    history::{Done, Entry},
    mcp,
    model::Call,
    options::Mode,
    store::StoreError,
    tool::{self, Grant, Job, Outcome},
};
use agent_client_protocol::v1::schema::{
    Content, PermissionOption, PermissionOptionKind, Plan, RequestPermissionOutcome,
    RequestPermissionRequest, SelectedPermissionOutcome, SessionUpdate, ToolCall, ToolCallContent,
    ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields, ToolKind,
};
use futures_util::future::join_all;
use serde_json::Value;
use std::collections::BTreeSet;

/// What "always" covers for edits.
const EDITS: &str = "edit";
const ONCE: &str = "once";
const ALWAYS: &str = "always";
const REJECT: &str = "reject";

/// Who does the work.
enum Work {
    Ours(tool::Work),
    Theirs(mcp::Work),
}

/// A call with what it would do, or why it cannot be done.
struct Planned {
    call: Call,
    /// For the client.
    id: String,
    job: Result<Job<Work>, String>,
    /// Why it may not be done.
    refused: Option<String>,
}

enum Verdict {
    Yes,
    No(String),
    /// The turn was cancelled while somebody was asked.
    Cancelled,
}

impl Turn<'_> {
    /// Makes the calls of the last answer. `None`: the user cancelled. What changes nothing runs side
    /// by side, everything else in its turn.
    pub(super) async fn call(
        &mut self,
        calls: Vec<Call>,
        announced: &BTreeSet<String>,
    ) -> Result<Option<Vec<(Call, String)>>, StoreError> {
        let answer = self.talk.len() - 1;
        let mut planned = Vec::new();
        for call in calls {
            let id = shown_id(answer, &call.id);
            let job = self.plan(&call).await;
            self.show(&call, &id, &job, announced.contains(&call.id));
            planned.push(Planned { call, id, job, refused: None });
        }
        let mut results = Vec::new();
        let mut planned = planned.into_iter().peekable();
        while let Some(first) = planned.next() {
            let mut group = vec![first];
            if is_free(&group[0]) {
                while let Some(next) = planned.next_if(is_free) {
                    group.push(next);
                }
            }
            for it in &mut group {
                match self.permit(it).await? {
                    Verdict::Yes => {}
                    Verdict::No(why) => it.refused = Some(why),
                    Verdict::Cancelled => return Ok(None),
                }
            }
            let done = join_all(group.into_iter().map(|it| self.carry_out(it))).await;
            let mut new = Vec::new();
            for (call, done, plan) in done {
                results.push((call, done.text.clone()));
                new.push(Entry::Result(done));
                new.extend(plan.map(|entries| Entry::Plan { entries }));
            }
            self.session.append(self.talk, new)?;
        }
        Ok(Some(results))
    }

    async fn plan(&self, call: &Call) -> Result<Job<Work>, String> {
        let session = self.session;
        match session.servers.prepare(call) {
            Some(job) => job.map(|it| it.map(Work::Theirs)),
            None => tool::prepare(call, &session.site).await.map(|it| it.map(Work::Ours)),
        }
    }

    /// Shows what a call would do.
    fn show(&self, call: &Call, id: &str, job: &Result<Job<Work>, String>, is_known: bool) {
        let fields = match job {
            Ok(job) => described(job),
            Err(_) => ToolCallUpdateFields::new()
                .title(call.name.clone())
                .raw_input(serde_json::from_str::<Value>(&call.arguments).ok()),
        };
        self.session.tell(if is_known {
            SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id.to_owned(), fields))
        } else {
            let mut tool_call = ToolCall::new(id.to_owned(), call.name.clone());
            tool_call.update(fields);
            SessionUpdate::ToolCall(tool_call.name(call.name.clone()))
        });
    }

    /// Whether a call may be made: by its nature, by the mode, by what was allowed for good, or because
    /// the user says so now.
    async fn permit(&self, planned: &Planned) -> Result<Verdict, StoreError> {
        let Ok(job) = &planned.job else { return Ok(Verdict::Yes) };
        let name = match &job.grant {
            Grant::Free => return Ok(Verdict::Yes),
            Grant::Edit => EDITS,
            Grant::Ask(name) => name,
        };
        match (self.choices.mode, &job.work) {
            (Mode::Edit, _) if job.grant == Grant::Edit => return Ok(Verdict::Yes),
            (Mode::ReadOnly, Work::Ours(_)) => {
                let why = "This session is read-only: nothing may be changed or run. Say what you \
                           would do instead.";
                return Ok(Verdict::No(why.to_owned()));
            }
            _ => {}
        }
        if self.session.allows(name) {
            return Ok(Verdict::Yes);
        }
        self.ask_user(planned, job, name).await
    }

    async fn ask_user(
        &self,
        planned: &Planned,
        job: &Job<Work>,
        name: &str,
    ) -> Result<Verdict, StoreError> {
        let fields = described(job).status(ToolCallStatus::Pending);
        let always = if name == EDITS {
            "Always allow edits in this session".to_owned()
        } else {
            format!("Always allow `{name}` in this session")
        };
        let options = vec![
            PermissionOption::new(ONCE, "Allow once", PermissionOptionKind::AllowOnce),
            PermissionOption::new(ALWAYS, always, PermissionOptionKind::AllowAlways),
            PermissionOption::new(REJECT, "Reject", PermissionOptionKind::RejectOnce),
        ];
        let site = &self.session.site;
        let call = ToolCallUpdate::new(planned.id.clone(), fields);
        let ask = RequestPermissionRequest::new(site.session.clone(), call, options);
        let outcome = match site.client.send_request(ask).block_task().await {
            Ok(answer) => answer.outcome,
            Err(error) => {
                let why = format!("The user could not be asked whether this is allowed: {error}");
                return Ok(Verdict::No(why));
            }
        };
        Ok(match outcome {
            RequestPermissionOutcome::Cancelled => Verdict::Cancelled,
            RequestPermissionOutcome::Selected(SelectedPermissionOutcome { option_id, .. }) => {
                match &*option_id.0 {
                    ONCE => Verdict::Yes,
                    ALWAYS => {
                        self.session.change(|record| record.allowed.push(name.to_owned()))?;
                        Verdict::Yes
                    }
                    _ => Verdict::No(
                        "The user did not allow this. Do not try it in another way; ask what they \
                         want instead."
                            .to_owned(),
                    ),
                }
            }
            _ => Verdict::No("The user's answer was not understood, so it is a no.".to_owned()),
        })
    }

    /// Runs one call and tells what came of it.
    async fn carry_out(
        &self,
        planned: Planned,
    ) -> (Call, Done, Option<Vec<agent_client_protocol::v1::schema::PlanEntry>>) {
        let Planned { call, id, job, refused } = planned;
        let session = self.session;
        let tell = |fields| {
            session.tell(SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id.clone(), fields)));
        };
        let (title, kind, locations, outcome) = match (job, refused) {
            (Err(why), _) => (call.name.clone(), ToolKind::Other, Vec::new(), Outcome::failed(why)),
            (Ok(job), Some(why)) => (job.title, job.kind, job.locations, Outcome::failed(why)),
            (Ok(job), None) => {
                tell(ToolCallUpdateFields::new().status(ToolCallStatus::InProgress));
                let outcome = match job.work {
                    Work::Ours(work) => tool::run(work, &session.site, &tell).await,
                    Work::Theirs(work) => session.servers.run(work).await,
                };
                (job.title, job.kind, job.locations, outcome)
            }
        };
        let Outcome { text, failed, mut content, raw, plan } = outcome;
        if content.is_empty() && !text.is_empty() {
            content.push(ToolCallContent::Content(Content::new(text.as_str())));
        }
        if let Some(entries) = &plan {
            session.tell(SessionUpdate::Plan(Plan::new(entries.clone())));
        }
        let status = if failed { ToolCallStatus::Failed } else { ToolCallStatus::Completed };
        let fields = ToolCallUpdateFields::new().status(status).content(content.clone());
        tell(fields.raw_output(raw.clone()));
        let id = call.id.clone();
        let done = Done { call: id, title, kind, locations, text, failed, content, raw };
        (call, done, plan)
    }
}

fn is_free(planned: &Planned) -> bool {
    planned.job.as_ref().is_ok_and(|it| it.grant == Grant::Free)
}

fn described(job: &Job<Work>) -> ToolCallUpdateFields {
    ToolCallUpdateFields::new()
        .title(job.title.clone())
        .kind(job.kind)
        .locations(job.locations.clone())
        .content(job.content.clone())
        .raw_input(job.input.clone())
}
