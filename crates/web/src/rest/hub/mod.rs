//! The hub, as its client: short requests over one connection for all, and a connection of its own
//! for everyone who listens or waits for an agent.

mod conn;
mod fact;
mod log;
mod shared;
mod trouble;

pub(crate) use conn::{Conn, Heard};
pub(crate) use fact::Fact;
pub(crate) use log::{Entry, Log};
pub(crate) use trouble::Trouble;

use jackfield_transport::HubDialer;
use serde_json::Value;
use shared::Shared;
use std::time::Duration;
use tokio::sync::Mutex;

/// How long the hub itself may take to answer: it never waits, so this is a hub that hangs.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// Where the hub is, and the connection that everyone shares.
#[derive(Debug)]
pub(crate) struct Hub {
    dialer: HubDialer,
    shared: Mutex<Option<Shared>>,
}

impl Hub {
    pub(crate) fn new(dialer: HubDialer) -> Hub {
        Hub { dialer, shared: Mutex::new(None) }
    }

    /// A connection of its own, on which nothing has been said.
    pub(crate) async fn dial(&self) -> Result<Conn, Trouble> {
        Conn::dial(&self.dialer).await
    }

    /// The same, introduced, and without an agent: the hub answers by itself.
    pub(crate) async fn talk(&self) -> Result<Conn, Trouble> {
        let mut conn = self.dial().await?;
        let hello = conn.hello();
        tokio::time::timeout(ANSWER_WITHIN, hello).await.map_err(|_| Trouble::Silent)??;
        Ok(conn)
    }

    /// The facts of a session from behind this one on, all that there are and then as they come.
    pub(crate) async fn log(&self, session: &str, after: u64) -> Result<Log, Trouble> {
        Log::open(self.talk().await?, session, after).await
    }

    /// One question that the hub answers by itself. Sessions are not heard on this connection.
    pub(crate) async fn call(&self, method: &str, params: &Value) -> Result<Value, Trouble> {
        let asked = tokio::time::timeout(ANSWER_WITHIN, self.ask(method, params));
        asked.await.map_err(|_| Trouble::Silent)?
    }

    async fn ask(&self, method: &str, params: &Value) -> Result<Value, Trouble> {
        let known = self.shared.lock().await.clone();
        if let Some(answer) = match &known {
            Some(shared) => shared.ask(method, params).await,
            None => None,
        } {
            return answer;
        }
        // It rested, or the hub was gone: that one took nothing from us, so this is the first try.
        let shared = {
            let mut slot = self.shared.lock().await;
            match slot.as_ref().filter(|it| it.is_open()) {
                Some(shared) => shared.clone(),
                None => slot.insert(Shared::new(self.talk().await?)).clone(),
            }
        };
        shared.ask(method, params).await.unwrap_or(Err(Trouble::Gone))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jackfield_transport::EndpointAddress;
    use serde_json::json;
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::os::unix::net::UnixListener;

    /// A hub that answers so many requests of each connection, with its number, and hangs up.
    fn hub(listener: &UnixListener, answers: usize) {
        for (number, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            let reader = BufReader::new(stream.try_clone().unwrap());
            for line in reader.lines().take(answers) {
                let request: Value = serde_json::from_str(&line.unwrap()).unwrap();
                let answer = json!({ "jsonrpc": "2.0", "id": request["id"], "result": number });
                writeln!(stream, "{answer}").unwrap();
            }
        }
    }

    #[tokio::test]
    async fn short_requests_share_a_connection_and_a_new_one_is_made_when_it_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("hub.sock");
        let listener = UnixListener::bind(&path).unwrap();
        // The first is `initialize`. The thread ends with the test's process.
        std::thread::spawn(move || hub(&listener, 4));
        let shared = Hub::new(EndpointAddress::Unix(path).into());
        let params = json!({});
        let both = tokio::join!(shared.call("a", &params), shared.call("b", &params));
        assert_eq!((both.0.unwrap(), both.1.unwrap()), (json!(0), json!(0)));
        assert_eq!(shared.call("c", &params).await.unwrap(), json!(0));
        // That was its last word. Until we have noticed, a request may be lost, and that is said.
        let again = loop {
            match shared.call("d", &params).await {
                Err(Trouble::Gone) => tokio::task::yield_now().await,
                answer => break answer.unwrap(),
            }
        };
        assert_eq!(again, json!(1));
    }

    #[tokio::test]
    async fn a_hub_that_is_not_there_is_said_so() {
        let dir = tempfile::tempdir().unwrap();
        let hub = Hub::new(EndpointAddress::Unix(dir.path().join("hub.sock")).into());
        assert!(matches!(hub.call("a", &json!({})).await, Err(Trouble::Unreachable(_))));
    }
}
