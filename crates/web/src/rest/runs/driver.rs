//! Drives a run: a task follows the run from its prompt to its end, whether or not the client stays.

use super::{
    RunId, RunSettings, TrackedRun,
    approval::AutoApprover,
    idempotency::{KeyedRequest, RunMaker, find_run_maker},
    opening::OpeningEnd,
    pending::{PendingRun, RunResultSender},
    progress::RunProgress,
    session_setup::{ReadySession, SettingChoices, prepare_session},
};
use crate::rest::{
    RestState,
    check::{self, RunBody},
    error::{ApiError, ErrorCode},
    prompt::RunPrompt,
    sessions::accepts_images,
};
use jackfield_events::{EventBody, EventKind};
use jackfield_hub_client::{
    ErrorResponse, EventLine, HubClientError, HubConnection, HubMessage, attach_params,
};
use jackfield_policy::ApprovalMode;
use jackfield_protocol::{acp::Method, mcp_servers::McpServers};
use serde_json::{Value, json};
use std::{
    path::PathBuf,
    sync::{Arc, atomic::Ordering},
};
use tokio::sync::Notify;

/// The session that gets the prompt.
#[derive(Debug, Clone)]
pub(crate) enum RunTarget {
    NewSession {
        agent: String,
        cwd: PathBuf,
        /// Further directories that the agent may use.
        more_dirs: Vec<PathBuf>,
        /// The launch variant that must be used.
        variant: Option<String>,
        /// The sandbox profile of the agent; without one, that of the project or of the configuration.
        sandbox: Option<String>,
        /// Open the session even if deny rules cannot be enforced in it.
        unenforced: bool,
        mcp: McpServers,
    },
    ExistingSession {
        session: String,
        cwd: PathBuf,
        /// The agent accepts images; false if the prompt has none.
        accepts_images: bool,
    },
}

impl RunTarget {
    fn opens_session(&self) -> bool {
        matches!(self, RunTarget::NewSession { .. })
    }

    /// Whether the agent accepts images; `None` if that is known only when the session is open.
    pub(crate) fn accepts_images(&self) -> Option<bool> {
        match self {
            RunTarget::NewSession { .. } => None,
            RunTarget::ExistingSession { accepts_images, .. } => Some(*accepts_images),
        }
    }
}

/// A validated run that is not started yet.
#[derive(Debug)]
pub(crate) struct RunPlan {
    pub(crate) target: RunTarget,
    pub(crate) prompt: RunPrompt,
    pub(crate) choices: SettingChoices,
    pub(crate) approve: ApprovalMode,
    pub(crate) settings: RunSettings,
    pub(crate) request: Option<KeyedRequest>,
    /// Cancel the running turn of the session, and run before queued prompts.
    pub(crate) steers: bool,
    /// Close the session when the run has ended, unless another client uses it.
    pub(crate) closes_session: bool,
}

/// Starts the run of a request, unless an earlier request with the same key has started it. The run
/// continues when the client disconnects.
pub(crate) async fn start_run(
    state: &Arc<RestState>,
    mut body: RunBody,
    key: Option<String>,
) -> Result<PendingRun, ApiError> {
    state.profile.complete_run(&mut body);
    let Some(key) = key else {
        let plan = check::plan_run(state, body).await?;
        return spawn_driver(state, plan, RunResultSender::new());
    };
    let request = KeyedRequest::new(key, &body);
    match find_run_maker(state, &request).await? {
        RunMaker::Earlier(pending) => Ok(pending),
        RunMaker::This(sender, session) => {
            let mut plan = check::plan_run(state, body).await?;
            if let (Some(session), RunTarget::NewSession { agent, cwd, .. }) =
                (session, &plan.target)
            {
                let accepts_images = accepts_images(state, &session, agent).await?;
                let cwd = cwd.clone();
                plan.target = RunTarget::ExistingSession { session, cwd, accepts_images };
            }
            plan.request = Some(request);
            spawn_driver(state, plan, sender)
        }
        RunMaker::EarlierUnfollowed(sender, run) => {
            check_capacity(state)?;
            let pending = sender.pending_run().into_repeat();
            let approve = state.choose_approval(body.approve);
            tokio::spawn(follow_unfinished(state.clone(), run, approve, sender));
            Ok(pending)
        }
    }
}

fn check_capacity(state: &RestState) -> Result<(), ApiError> {
    if state.runs.has_capacity() {
        return Ok(());
    }
    let message = "too many concurrent runs: try again when some have ended";
    Err(ApiError::new(ErrorCode::RateLimited, message))
}

fn spawn_driver(
    state: &Arc<RestState>,
    plan: RunPlan,
    sender: RunResultSender,
) -> Result<PendingRun, ApiError> {
    check_capacity(state)?;
    let pending = sender.pending_run();
    tokio::spawn(drive_run(state.clone(), plan, sender));
    Ok(pending)
}

async fn drive_run(state: Arc<RestState>, plan: RunPlan, sender: RunResultSender) {
    let session = match &plan.target {
        RunTarget::NewSession { .. } => state.hub.new_session_id(),
        RunTarget::ExistingSession { session, .. } => session.clone(),
    };
    let (stop, opens_session) = (sender.stop.clone(), plan.target.opens_session());
    let (id, settings) = (RunId::new(&session), plan.settings.clone());
    let run = Arc::new(TrackedRun::opening(id, settings, opens_session, stop.clone()));
    if opens_session || !plan.choices.is_empty() {
        // Clients can follow and cancel the run while the agent starts.
        state.runs.add(&run);
        sender.announce(Ok(run.clone()));
    }
    let prepared = tokio::select! {
        prepared = prepare_session(&state, &plan, &session, |it| run.set_opened(it.clone())) => prepared.map_err(OpeningEnd::Failed),
        // The hub abandons a session that a disconnected client was opening.
        () = stop.notified() => Err(OpeningEnd::Canceled),
    };
    if matches!(prepared, Err(OpeningEnd::Canceled)) && opens_session {
        // The agent may have opened the session in this moment.
        let opened = json!({ "sessionId": session });
        let _deleted = state.hub.call_method(Method::SessionDelete, &opened).await;
    }
    let driver = match prepared {
        Ok(session) => RunDriver::start(&state, session, plan, run.clone())
            .await
            .map_err(|it| OpeningEnd::Failed(it.into())),
        Err(end) => Err(end),
    };
    match driver {
        Ok(driver) => driver.run_to_end(sender).await,
        Err(end) => end_opening(&run, end, &sender),
    }
}

/// Ends a run whose prompt is not in the log and will not be.
fn end_opening(run: &TrackedRun, end: OpeningEnd, sender: &RunResultSender) {
    let error = end.to_error();
    run.end_opening(end);
    run.has_driver.store(false, Ordering::SeqCst);
    sender.announce_failure(error);
}

/// Follows a run that an earlier daemon did not finish. A held prompt is released.
async fn follow_unfinished(
    state: Arc<RestState>,
    run: Arc<TrackedRun>,
    approve: ApprovalMode,
    sender: RunResultSender,
) {
    let stop = sender.stop.clone();
    match RunDriver::join(&state, &run, approve, stop).await {
        Ok(driver) => driver.run_to_end(sender).await,
        Err(error) => sender.announce(Err(error.into())),
    }
}

/// A run, and the connection on which its events arrive.
struct RunDriver {
    state: Arc<RestState>,
    connection: HubConnection,
    run: Arc<TrackedRun>,
    /// The id of the prompt request, if this driver sent it.
    prompt_id: Option<u64>,
    approver: AutoApprover,
    closes_session: bool,
}

impl RunDriver {
    async fn start(
        state: &Arc<RestState>,
        session: ReadySession,
        plan: RunPlan,
        run: Arc<TrackedRun>,
    ) -> Result<RunDriver, HubClientError> {
        let ReadySession { mut connection, accepts_images, opened } = session;
        let session = run.id.session();
        // Only events from now on are part of the run.
        let attach = attach_params(&session, i64::MAX.unsigned_abs());
        connection.call_method(Method::ControlAttach, &attach).await?;
        let mut meta = json!({ "run": run.id.as_str(), "start": plan.settings });
        if let Some(opened) = opened {
            meta["opened"] = json!(opened);
        }
        if plan.steers {
            meta["steer"] = json!(true);
        }
        plan.request.iter().for_each(|it| it.add_to(&mut meta));
        let params = json!({
            "sessionId": session,
            "prompt": plan.prompt.to_blocks(accepts_images),
            "_meta": { "jackfield": meta },
        });
        let prompt_id = Some(connection.send_request(Method::SessionPrompt, &params).await?);
        let approver = AutoApprover::new(plan.approve);
        let (state, closes_session) = (state.clone(), plan.closes_session);
        Ok(RunDriver { state, connection, run, prompt_id, approver, closes_session })
    }

    /// Joins a run whose prompt is already in the log.
    async fn join(
        state: &Arc<RestState>,
        run: &TrackedRun,
        approve: ApprovalMode,
        stop: Arc<Notify>,
    ) -> Result<RunDriver, HubClientError> {
        let (id, session) = (run.id.clone(), run.id.session());
        let mut connection = state.hub.connect().await?;
        let attach = attach_params(&session, run.read_after());
        connection.send_request(Method::ControlAttach, &attach).await?;
        if let Some(prompt) = run.queued_prompt() {
            // An error means that the prompt is no longer held.
            let held = json!({ "sessionId": session, "prompt": prompt });
            connection.send_request(Method::ControlRelease, &held).await?;
        }
        let run = Arc::new(TrackedRun::new(RunProgress::new(id.clone()), id, true, stop));
        let approver = AutoApprover::new(approve);
        let (state, closes_session) = (state.clone(), false);
        Ok(RunDriver { state, connection, run, prompt_id: None, approver, closes_session })
    }

    /// Follows the run until it ends or the hub is gone. The log has the rest.
    async fn run_to_end(mut self, sender: RunResultSender) {
        let mut sender = Some(sender);
        let stop = self.run.stop.clone();
        loop {
            let message = tokio::select! {
                message = self.connection.next_message() => message,
                () = stop.notified() => match self.cancel().await {
                    Ok(()) => continue,
                    Err(error) => Err(error),
                },
            };
            match message {
                Ok(HubMessage::Event(line)) => {
                    if self.on_event(&line, &mut sender).await.is_err() {
                        break;
                    }
                }
                // The hub rejected the prompt: an accepted prompt is in the log before its response.
                Ok(HubMessage::Response(response))
                    if Some(response.id) == self.prompt_id && sender.is_some() =>
                {
                    if let Some(sender) = sender {
                        let error = rejection_error(response.into_result());
                        end_opening(&self.run, OpeningEnd::Failed(error), &sender);
                    }
                    return;
                }
                Ok(HubMessage::Frame(frame)) => {
                    // If this fails, the next message is an error, too.
                    let _refused = self.connection.refuse_request(&frame).await;
                }
                Ok(HubMessage::Response(_)) => {}
                Err(error) => {
                    if let Some(sender) = sender {
                        end_opening(&self.run, OpeningEnd::Failed(error.into()), &sender);
                    }
                    break;
                }
            }
            if self.run.progress().outcome().is_some() {
                break;
            }
        }
        self.run.has_driver.store(false, Ordering::SeqCst);
        if self.closes_session {
            let meta = json!({ "jackfield": { "ifUnused": true } });
            let params = json!({ "sessionId": self.run.id.session(), "_meta": meta });
            // If this fails, the agent ends when it has been idle for some time.
            let _closed = self.connection.call_method(Method::SessionClose, &params).await;
        }
    }

    async fn on_event(
        &mut self,
        line: &EventLine,
        sender: &mut Option<RunResultSender>,
    ) -> Result<(), HubClientError> {
        if line.kind() == Some(EventKind::Said) {
            self.approver.on_agent_message(line);
            return Ok(());
        }
        let Some(event) = self.run.progress().apply(line) else { return Ok(()) };
        if let Some(sender) = sender.take() {
            self.state.runs.add(&self.run);
            self.run.set_logged();
            sender.announce(Ok(self.run.clone()));
        }
        let answer = match &event.body {
            EventBody::Asked(asked) => self.approver.answer(asked),
            _ => None,
        };
        let Some((ask, result)) = answer else { return Ok(()) };
        let session = self.run.id.session();
        let params = json!({ "sessionId": session, "ask": ask, "result": result });
        // Another client may have answered first; then its answer counts.
        self.connection.send_request(Method::ControlAnswer, &params).await.map(drop)
    }

    /// Withdraws the prompt or cancels the turn. Other prompts of the session continue.
    async fn cancel(&mut self) -> Result<(), HubClientError> {
        if let Some(prompt) = self.prompt_id {
            let params = json!({ "requestId": prompt });
            return self.connection.send_notification(Method::CancelRequest, &params).await;
        }
        match cancel_run(&self.state, &self.run.id, self.run.queued_prompt()).await {
            // The run started or ended in this moment.
            Err(HubClientError::Refused(_)) => Ok(()),
            result => result,
        }
    }
}

/// Cancels a run without a driver: one that an earlier daemon left in the queue, or that another client
/// has released since.
pub(super) async fn cancel_run(
    state: &RestState,
    id: &RunId,
    queued_prompt: Option<u64>,
) -> Result<(), HubClientError> {
    let session = id.session();
    if let Some(prompt) = queued_prompt {
        let params = json!({ "sessionId": session, "prompt": prompt });
        return state.hub.call_method(Method::ControlWithdraw, &params).await.map(drop);
    }
    state.hub.cancel_turn(&session).await
}

/// Why the hub responded to a prompt before the prompt was in the log under the id of this run.
fn rejection_error(result: Result<Value, ErrorResponse>) -> ApiError {
    let Err(error) = result else {
        let why =
            "the prompt ran for another request with this key: repeat this request to get its run";
        return ApiError::new(ErrorCode::UpstreamUnavailable, why);
    };
    ApiError::from_response(&error)
}
