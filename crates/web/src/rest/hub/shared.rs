//! One connection for all short requests: a task owns it, everyone else hands it questions.

use super::{Conn, Heard, Trouble};
use serde_json::Value;
use std::{collections::BTreeMap, time::Duration};
use tokio::sync::{mpsc, oneshot};

/// Questions that wait to be asked; the hub takes them as fast as they come.
const WAITING_MAX: usize = 64;
/// A connection that nobody uses for so long is closed: it would keep the daemon from resting.
const REST_AFTER: Duration = Duration::from_secs(5);

type Answer = Result<Value, Trouble>;

#[derive(Debug)]
struct Question {
    method: String,
    params: Value,
    answer: oneshot::Sender<Answer>,
}

/// A handle on the connection.
#[derive(Debug, Clone)]
pub(super) struct Shared {
    questions: mpsc::Sender<Question>,
}

impl Shared {
    pub(super) fn new(conn: Conn) -> Shared {
        let (questions, waiting) = mpsc::channel(WAITING_MAX);
        tokio::spawn(serve(conn, waiting));
        Shared { questions }
    }

    pub(super) fn is_open(&self) -> bool {
        !self.questions.is_closed()
    }

    /// `None` if the connection was closed before it took the question.
    pub(super) async fn ask(&self, method: &str, params: &Value) -> Option<Answer> {
        let (answer, answered) = oneshot::channel();
        let question = Question { method: method.to_owned(), params: params.clone(), answer };
        self.questions.send(question).await.ok()?;
        // Without an answer nobody knows whether it was done: asking again is the caller's to decide.
        Some(answered.await.unwrap_or(Err(Trouble::Gone)))
    }
}

/// Until the hub closes, or nobody has asked anything for a while.
async fn serve(mut conn: Conn, mut waiting: mpsc::Receiver<Question>) {
    let (mut open, mut closed) = (BTreeMap::new(), false);
    while !(closed && open.is_empty()) {
        tokio::select! {
            question = waiting.recv(), if !closed => match question {
                Some(Question { method, params, answer }) => {
                    match conn.send(&method, &params).await {
                        Ok(id) => drop(open.insert(id, answer)),
                        Err(trouble) => return drop(answer.send(Err(trouble))),
                    }
                }
                None => closed = true,
            },
            heard = conn.next() => match heard {
                Ok(Heard::Answer(id, answer)) => {
                    if let Some(asker) = open.remove(&id) {
                        // Who asked may have left.
                        let _heard = asker.send(answer.map_err(Trouble::Refused));
                    }
                }
                Ok(Heard::Fact(_) | Heard::Else) => {}
                Err(_) => return,
            },
            // What was handed over in this very moment is still asked.
            () = tokio::time::sleep(REST_AFTER), if open.is_empty() => waiting.close(),
        }
    }
}
