//! Whoever made a run may leave: a task stays with it, from its prompt to its end.

use super::{
    Run, RunId, Start,
    approve::{Approve, Clerk},
    course::Course,
    open::{Choices, Ready, ready},
};
use crate::{
    Api,
    compose::Prompt,
    error::{ApiError, Code},
    hub::{Conn, Fact, Heard, Trouble},
};
use serde_json::json;
use std::{
    path::PathBuf,
    sync::{Arc, atomic::Ordering},
};
use tokio::sync::{Notify, oneshot};

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
}

/// A run on its way.
#[derive(Debug)]
pub(crate) struct Begun {
    /// The run, as soon as it stands in the log.
    pub(crate) run: oneshot::Receiver<Result<Arc<Run>, ApiError>>,
    /// Ends it, however far it has come.
    pub(crate) stop: Arc<Notify>,
}

/// Makes a run, which goes on whoever waits for it.
pub(crate) fn begin(api: &Arc<Api>, order: Order) -> Result<Begun, ApiError> {
    if !api.runs.has_room() {
        let message = "too many runs are under way: try again when some have ended";
        return Err(ApiError::new(Code::RateLimited, message));
    }
    let (tell, run) = oneshot::channel();
    let stop = Arc::new(Notify::new());
    tokio::spawn(drive(api.clone(), order, stop.clone(), tell));
    Ok(Begun { run, stop })
}

type Tell = oneshot::Sender<Result<Arc<Run>, ApiError>>;

async fn drive(api: Arc<Api>, order: Order, stop: Arc<Notify>, tell: Tell) {
    let opened = tokio::select! {
        opened = ready(&api, &order.goal, &order.choices) => opened,
        // The hub abandons what a client that left was opening.
        () = stop.notified() => Err(ApiError::new(Code::Conflict, "the run was canceled")),
    };
    let driver = match opened {
        Ok(ready) => Driver::start(&api, ready, order, stop).await.map_err(ApiError::from),
        Err(error) => Err(error),
    };
    match driver {
        Ok(driver) => driver.stay(tell).await,
        // Who asked may have left.
        Err(error) => drop(tell.send(Err(error))),
    }
}

/// A prompt that is sent, and the connection it waits on.
struct Driver {
    api: Arc<Api>,
    conn: Conn,
    run: Arc<Run>,
    /// The number of the request that is the prompt.
    prompt: u64,
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
        conn.call("_jackfield/attach", &facts).await?;
        let id = RunId::new(&session);
        let params = json!({
            "sessionId": session,
            "prompt": order.prompt.blocks(sees),
            "_meta": { "jackfield": { "run": id.as_str(), "start": order.start } },
        });
        let prompt = conn.send("session/prompt", &params).await?;
        let run = Arc::new(Run::new(Course::new(id.clone()), id, true, stop));
        Ok(Driver { api: api.clone(), conn, run, prompt, clerk: order.approve.map(Clerk::new) })
    }

    /// Until the run is over, or the hub is gone: the log has all that matters.
    async fn stay(mut self, tell: Tell) {
        let mut tell = Some(tell);
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
                Ok(Heard::Answer(id, Err(error))) if id == self.prompt && tell.is_some() => {
                    let refused = tell.take().map(|it| it.send(Err(ApiError::of_answer(&error))));
                    return drop(refused);
                }
                Ok(Heard::Answer(..) | Heard::Else) => {}
                Err(trouble) => {
                    let lost = tell.take().map(|it| it.send(Err(trouble.into())));
                    drop(lost);
                    break;
                }
            }
            if self.run.course().outcome().is_some() {
                break;
            }
        }
        self.run.driven.store(false, Ordering::SeqCst);
    }

    async fn on_fact(&mut self, fact: &Fact, tell: &mut Option<Tell>) -> Result<(), Trouble> {
        if fact.is() == "said" {
            self.clerk.iter_mut().for_each(|it| it.hear(fact));
            return Ok(());
        }
        let Some(value) = self.run.course().step(fact) else { return Ok(()) };
        if let Some(tell) = tell.take() {
            self.api.runs.add(&self.run);
            // Who asked may have left; the run goes on.
            let _left = tell.send(Ok(self.run.clone()));
        }
        let asked = fact.is() == "asked";
        let answer = self.clerk.as_ref().filter(|_| asked).and_then(|it| it.answer(&value));
        let Some((ask, result)) = answer else { return Ok(()) };
        let session = self.run.id.session();
        let params = json!({ "sessionId": session, "ask": ask, "result": result });
        // Somebody may have been faster; then that answer counts.
        self.conn.send("_jackfield/answer", &params).await.map(drop)
    }

    /// Out of the queue, or off the agent; what else waits in the session goes on.
    async fn end(&mut self) -> Result<(), Trouble> {
        self.conn.notify("$/cancel_request", &json!({ "requestId": self.prompt })).await
    }
}
