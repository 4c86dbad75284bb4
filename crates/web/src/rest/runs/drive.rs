//! A client that made a run may leave: a task follows the run from its prompt to its end.

use super::{
    Run, RunId, Start,
    approve::{Approve, Clerk},
    course::Course,
    key::{KeyedRequest, OpenRequest, RunMaker, find_maker},
    open::{Choices, Ready, ready},
};
use crate::rest::{
    Api,
    check::{self, RunBody},
    compose::Prompt,
    error::{ApiError, Code},
    hub::{Conn, Fact, Heard, Trouble},
};
use jackfield_events::{EventBody, EventKind};
use jackfield_protocol::acp::Method;
use serde_json::{Value, json};
use std::{
    path::PathBuf,
    sync::{Arc, atomic::Ordering},
};
use tokio::sync::{Notify, watch};

/// Where a prompt goes.
#[derive(Debug, Clone)]
pub(crate) enum Goal {
    New {
        agent: String,
        cwd: PathBuf,
        /// Also if rules that deny something cannot be enforced in it.
        unenforced: bool,
    },
    /// A session goes on.
    Old { session: String, agent: String, cwd: PathBuf },
}

/// A run to be made; everything in it is checked.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) goal: Goal,
    pub(crate) prompt: Prompt,
    pub(crate) choices: Choices,
    pub(crate) approve: Option<Approve>,
    pub(crate) start: Start,
    pub(crate) request: Option<KeyedRequest>,
}

type Announced = Option<Result<Arc<Run>, ApiError>>;

/// A run on its way.
#[derive(Debug, Clone)]
pub(crate) struct Begun {
    run: watch::Receiver<Announced>,
    /// Ends it, however far it has come.
    pub(crate) stop: Arc<Notify>,
    /// An earlier request with the same key made it.
    pub(crate) is_repeat: bool,
}

impl Begun {
    /// A run that an earlier request made.
    pub(super) fn known(run: Arc<Run>) -> Begun {
        let stop = run.stop.clone();
        let (_, run) = watch::channel(Some(Ok(run)));
        Begun { run, stop, is_repeat: true }
    }

    /// The same for a request that did not make it.
    pub(super) fn repeated(self) -> Begun {
        Begun { is_repeat: true, ..self }
    }

    /// The run, as soon as it stands in the log.
    pub(crate) async fn run(mut self) -> Result<Arc<Run>, ApiError> {
        let announced = self.run.wait_for(Option::is_some).await.map(|it| it.clone());
        announced.ok().flatten().unwrap_or_else(|| {
            let why = "the request that was to make this run ended before it did: repeat it";
            Err(ApiError::new(Code::UpstreamUnavailable, why))
        })
    }
}

/// Tells everybody who waits for a run that it stands in the log, or why it will not.
#[derive(Debug)]
pub(super) struct RunResultSender {
    run: watch::Sender<Announced>,
    stop: Arc<Notify>,
    /// Until then requests with the same key wait for it.
    pub(super) open: Option<OpenRequest>,
}

impl RunResultSender {
    pub(super) fn new() -> RunResultSender {
        RunResultSender { run: watch::Sender::new(None), stop: Arc::default(), open: None }
    }

    pub(super) fn begun(&self) -> Begun {
        Begun { run: self.run.subscribe(), stop: self.stop.clone(), is_repeat: false }
    }

    pub(super) fn announce(self, run: Result<Arc<Run>, ApiError>) {
        self.run.send_replace(Some(run));
    }
}

/// Makes the run that a request asks for, unless an earlier one with the same key has made it. A run goes on when
/// the client leaves.
pub(crate) async fn begin(
    api: &Arc<Api>,
    body: RunBody,
    key: Option<String>,
) -> Result<Begun, ApiError> {
    let Some(key) = key else {
        let order = check::order(api, body).await?;
        return start(api, order, RunResultSender::new());
    };
    let request = KeyedRequest::new(key, &body);
    match find_maker(api, &request).await? {
        RunMaker::Earlier(begun) => Ok(begun),
        RunMaker::This(sender, session) => {
            let mut order = check::order(api, body).await?;
            if let (Some(session), Goal::New { agent, cwd, .. }) = (session, &order.goal) {
                let (agent, cwd) = (agent.clone(), cwd.clone());
                order.goal = Goal::Old { session, agent, cwd };
            }
            order.request = Some(request);
            start(api, order, sender)
        }
        RunMaker::EarlierUnfollowed(sender, run) => {
            check_room(api)?;
            let begun = sender.begun().repeated();
            tokio::spawn(follow_left(api.clone(), run, body.approve, sender));
            Ok(begun)
        }
    }
}

fn check_room(api: &Api) -> Result<(), ApiError> {
    if api.runs.has_room() {
        return Ok(());
    }
    let message = "too many runs are under way: try again when some have ended";
    Err(ApiError::new(Code::RateLimited, message))
}

fn start(api: &Arc<Api>, order: Order, sender: RunResultSender) -> Result<Begun, ApiError> {
    check_room(api)?;
    let begun = sender.begun();
    tokio::spawn(drive(api.clone(), order, sender));
    Ok(begun)
}

async fn drive(api: Arc<Api>, order: Order, sender: RunResultSender) {
    let stop = sender.stop.clone();
    let opened = tokio::select! {
        opened = ready(&api, &order) => opened,
        // The hub abandons what a client that left was opening.
        () = stop.notified() => Err(ApiError::new(Code::Conflict, "the run was canceled")),
    };
    let driver = match opened {
        Ok(ready) => Driver::start(&api, ready, order, stop).await.map_err(ApiError::from),
        Err(error) => Err(error),
    };
    match driver {
        Ok(driver) => driver.stay(sender).await,
        Err(error) => sender.announce(Err(error)),
    }
}

/// Follows a run that an earlier daemon left: if its prompt is held, it runs now.
async fn follow_left(
    api: Arc<Api>,
    run: Arc<Run>,
    approve: Option<Approve>,
    sender: RunResultSender,
) {
    let stop = sender.stop.clone();
    match Driver::join(&api, &run, approve, stop).await {
        Ok(driver) => driver.stay(sender).await,
        Err(trouble) => sender.announce(Err(trouble.into())),
    }
}

/// A prompt that is sent, and the connection it waits on.
struct Driver {
    api: Arc<Api>,
    conn: Conn,
    run: Arc<Run>,
    /// The number of the request that is the prompt, if it was sent here.
    prompt: Option<u64>,
    clerk: Option<Clerk>,
}

impl Driver {
    async fn start(
        api: &Arc<Api>,
        ready: Ready,
        order: Order,
        stop: Arc<Notify>,
    ) -> Result<Driver, Trouble> {
        let Ready { mut conn, session, sees } = ready;
        // From now on only: what was said before is no part of it.
        let facts =
            json!({ "sessionId": session, "after": i64::MAX, "observe": true, "facts": true });
        conn.call(Method::ControlAttach.name(), &facts).await?;
        let id = RunId::new(&session);
        let mut ours = json!({ "run": id.as_str(), "start": order.start });
        order.request.iter().for_each(|it| it.add_to(&mut ours));
        let params = json!({
            "sessionId": session,
            "prompt": order.prompt.blocks(sees),
            "_meta": { "jackfield": ours },
        });
        let prompt = Some(conn.send(Method::SessionPrompt.name(), &params).await?);
        let run = Arc::new(Run::new(Course::new(id.clone()), id, true, stop));
        Ok(Driver { api: api.clone(), conn, run, prompt, clerk: order.approve.map(Clerk::new) })
    }

    /// For a run whose prompt stands in the log.
    async fn join(
        api: &Arc<Api>,
        run: &Run,
        approve: Option<Approve>,
        stop: Arc<Notify>,
    ) -> Result<Driver, Trouble> {
        let (id, session) = (run.id.clone(), run.id.session());
        let mut conn = api.hub.talk().await?;
        let after = run.before();
        let facts = json!({ "sessionId": session, "after": after, "observe": true, "facts": true });
        conn.send(Method::ControlAttach.name(), &facts).await?;
        if let Some(prompt) = run.waits() {
            // An error says that it is not held any more.
            let held = json!({ "sessionId": session, "prompt": prompt });
            conn.send(Method::ControlRelease.name(), &held).await?;
        }
        let run = Arc::new(Run::new(Course::new(id.clone()), id, true, stop));
        let clerk = approve.map(Clerk::new);
        Ok(Driver { api: api.clone(), conn, run, prompt: None, clerk })
    }

    /// Until the run is over, or the hub is gone: the log has all that matters.
    async fn stay(mut self, sender: RunResultSender) {
        let mut tell = Some(sender);
        let stop = self.run.stop.clone();
        loop {
            let heard = tokio::select! {
                heard = self.conn.next() => heard,
                () = stop.notified() => self.end().await.map(|()| Heard::Else),
            };
            match heard {
                Ok(Heard::Fact(fact)) => {
                    if self.on_fact(&fact, &mut tell).await.is_err() {
                        break;
                    }
                }
                // The hub did not take the prompt; what it took stands in the log before its answer.
                Ok(Heard::Answer(id, answer)) if Some(id) == self.prompt && tell.is_some() => {
                    if let Some(tell) = tell {
                        tell.announce(Err(not_taken(&answer)));
                    }
                    return;
                }
                Ok(Heard::Answer(..) | Heard::Else) => {}
                Err(trouble) => {
                    if let Some(tell) = tell {
                        tell.announce(Err(trouble.into()));
                    }
                    break;
                }
            }
            if self.run.course().outcome().is_some() {
                break;
            }
        }
        self.run.driven.store(false, Ordering::SeqCst);
    }

    async fn on_fact(
        &mut self,
        fact: &Fact,
        tell: &mut Option<RunResultSender>,
    ) -> Result<(), Trouble> {
        if fact.kind() == Some(EventKind::Said) {
            self.clerk.iter_mut().for_each(|it| it.hear(fact));
            return Ok(());
        }
        let Some(event) = self.run.course().step(fact) else { return Ok(()) };
        if let Some(tell) = tell.take() {
            self.api.runs.add(&self.run);
            tell.announce(Ok(self.run.clone()));
        }
        let answer = match &event.body {
            EventBody::Asked(asked) => self.clerk.as_ref().and_then(|it| it.answer(asked)),
            _ => None,
        };
        let Some((ask, result)) = answer else { return Ok(()) };
        let session = self.run.id.session();
        let params = json!({ "sessionId": session, "ask": ask, "result": result });
        // Somebody may have been faster; then that answer counts.
        self.conn.send(Method::ControlAnswer.name(), &params).await.map(drop)
    }

    /// Out of the queue, or off the agent; what else waits in the session goes on.
    async fn end(&mut self) -> Result<(), Trouble> {
        if let Some(prompt) = self.prompt {
            return self
                .conn
                .notify(Method::CancelRequest.name(), &json!({ "requestId": prompt }))
                .await;
        }
        match end_run(&self.api, &self.run.id, self.run.waits()).await {
            // It has begun, or ended, in this moment.
            Err(Trouble::Refused(_)) => Ok(()),
            ended => ended,
        }
    }
}

/// Ends a run whose prompt was not sent here: one that an earlier daemon left in the queue, or that somebody has
/// let run since.
pub(super) async fn end_run(api: &Api, id: &RunId, waits: Option<u64>) -> Result<(), Trouble> {
    let session = id.session();
    if let Some(prompt) = waits {
        let params = json!({ "sessionId": session, "prompt": prompt });
        return api.hub.call(Method::ControlWithdraw.name(), &params).await.map(drop);
    }
    let mut conn = api.hub.talk().await?;
    conn.notify(Method::SessionCancel.name(), &json!({ "sessionId": session })).await?;
    // Behind this answer it was heard.
    conn.call(Method::ControlStatus.name(), &json!({})).await.map(drop)
}

/// Why a prompt was answered before it stood in the log under the name of this run.
fn not_taken(answer: &Result<Value, Value>) -> ApiError {
    let Err(error) = answer else {
        let why =
            "the prompt ran for another request with this key: repeat this one to get its run";
        return ApiError::new(Code::UpstreamUnavailable, why);
    };
    ApiError::of_answer(error)
}
