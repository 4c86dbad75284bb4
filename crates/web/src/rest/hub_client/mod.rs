//! The connections of the REST API to the hub: short requests share one; each reader of a log and each request that
//! waits for an agent has its own connection.

mod shared_connection;

use crate::rest::runs::new_session_name;
use jackfield_hub_client::{ClientProtocol, EventLog, HubClientError, HubConnection};
use jackfield_protocol::acp::Method;
use jackfield_transport::HubDialer;
use serde_json::{Value, json};
use shared_connection::SharedConnection;
use std::time::Duration;
use tokio::sync::Mutex;

/// The time limit for a reply of the hub itself, which never waits for an agent.
const REPLY_TIMEOUT: Duration = Duration::from_secs(10);

/// The address of the hub, and the shared connection.
#[derive(Debug)]
pub(crate) struct HubClient {
    dialer: HubDialer,
    shared: Mutex<Option<SharedConnection>>,
}

impl HubClient {
    pub(crate) fn new(dialer: HubDialer) -> HubClient {
        HubClient { dialer, shared: Mutex::new(None) }
    }

    /// A new session id, which a client knows before the session is open.
    pub(crate) fn new_session_id(&self) -> String {
        let name = new_session_name();
        self.dialer.tenant_name().map_or_else(|| name.clone(), |tenant| format!("{tenant}.{name}"))
    }

    /// The tenant whose sessions this client uses.
    pub(crate) fn tenant_name(&self) -> Option<&str> {
        self.dialer.tenant_name()
    }

    /// Opens a connection without `initialize`.
    pub(crate) async fn dial(&self) -> Result<HubConnection, HubClientError> {
        HubConnection::dial(&self.dialer).await
    }

    /// Opens an initialized connection without an agent: the hub replies by itself.
    pub(crate) async fn connect(&self) -> Result<HubConnection, HubClientError> {
        let mut connection = self.dial().await?;
        let initialized = tokio::time::timeout(
            REPLY_TIMEOUT,
            initialize(&mut connection, ClientProtocol::AcpOnly),
        );
        initialized.await.map_err(|_| HubClientError::NoReply)??;
        Ok(connection)
    }

    /// Opens the log of a session after this sequence number: the existing events, then new ones.
    pub(crate) async fn open_log(
        &self,
        session: &str,
        after: u64,
    ) -> Result<EventLog, HubClientError> {
        EventLog::open(self.connect().await?, session, after).await
    }

    /// One event of a session; `None` if it does not exist or nests too deep to be parsed.
    pub(crate) async fn read_event(
        &self,
        session: &str,
        seq: u64,
    ) -> Result<Option<Value>, HubClientError> {
        let params = json!({ "sessionId": session, "after": seq.saturating_sub(1), "limit": 1 });
        let page = self.call_method(Method::ControlReadLog, &params).await?;
        let event = page["lines"].as_str().and_then(|it| serde_json::from_str::<Value>(it).ok());
        Ok(event.filter(|it| it["seq"] == seq))
    }

    /// Cancels the running turn of a session and withdraws its queued prompts.
    pub(crate) async fn cancel_turn(&self, session: &str) -> Result<(), HubClientError> {
        let mut connection = self.connect().await?;
        let params = json!({ "sessionId": session });
        connection.send_notification(Method::SessionCancel, &params).await?;
        // The response to a request for the same session shows that its hub has received the cancellation.
        connection.call_method(Method::ControlQueue, &params).await.map(drop)
    }

    /// Sends a short request on the shared connection, which receives no events of sessions.
    pub(crate) async fn call_method(
        &self,
        method: Method,
        params: &Value,
    ) -> Result<Value, HubClientError> {
        let response = tokio::time::timeout(REPLY_TIMEOUT, self.call_shared(method, params));
        response.await.map_err(|_| HubClientError::NoReply)?
    }

    async fn call_shared(&self, method: Method, params: &Value) -> Result<Value, HubClientError> {
        let known = self.shared.lock().await.clone();
        if let Some(response) = match &known {
            Some(shared) => shared.call_method(method, params).await,
            None => None,
        } {
            return response;
        }
        // The connection was idle or the hub had closed it before it accepted the request, so this is
        // the first attempt.
        let shared = {
            let mut slot = self.shared.lock().await;
            match slot.as_ref().filter(|it| it.is_open()) {
                Some(shared) => shared.clone(),
                None => slot.insert(SharedConnection::new(self.connect().await?)).clone(),
            }
        };
        shared.call_method(method, params).await.unwrap_or(Err(HubClientError::Closed))
    }
}

/// Sends `initialize` in the name of the REST API.
pub(crate) async fn initialize(
    connection: &mut HubConnection,
    protocol: ClientProtocol,
) -> Result<Value, HubClientError> {
    connection.initialize("api", protocol).await
}

/// Builds an event line from `{"seq":1,…}`.
#[cfg(test)]
pub(crate) fn event_line(event: &Value) -> jackfield_hub_client::EventLine {
    let params = format!(r#"{{"sessionId":"s-abcdefghijkl",{}"#, &event.to_string()[1..]);
    let frame = jackfield_protocol::Frame::notification(Method::ControlEvent.name(), &params);
    jackfield_hub_client::EventLine::parse(frame.bytes()).expect("an event")
}

#[cfg(test)]
mod tests {
    use super::*;
    use jackfield_transport::EndpointAddress;
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::os::unix::net::UnixListener;

    /// Plays a hub that answers this many requests per connection with the connection's number, and closes it.
    fn run_hub(listener: &UnixListener, answer_count: usize) {
        for (number, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            let reader = BufReader::new(stream.try_clone().unwrap());
            for line in reader.lines().take(answer_count) {
                let request: Value = serde_json::from_str(&line.unwrap()).unwrap();
                let answer = json!({ "jsonrpc": "2.0", "id": request["id"], "result": number });
                writeln!(stream, "{answer}").unwrap();
            }
        }
    }

    #[tokio::test]
    async fn short_requests_share_a_connection_that_is_replaced_when_closed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("hub.sock");
        let listener = UnixListener::bind(&path).unwrap();
        // The first is `initialize`. The thread ends with the test's process.
        std::thread::spawn(move || run_hub(&listener, 4));
        let shared = HubClient::new(EndpointAddress::Unix(path).into());
        let params = json!({});
        let both = tokio::join!(
            shared.call_method(Method::ControlStatus, &params),
            shared.call_method(Method::ControlAsks, &params)
        );
        assert_eq!((both.0.unwrap(), both.1.unwrap()), (json!(0), json!(0)));
        assert_eq!(shared.call_method(Method::ControlStatus, &params).await.unwrap(), json!(0));
        // The hub closed the connection after that. Until the client notices, a request may fail.
        let again = loop {
            match shared.call_method(Method::ControlStatus, &params).await {
                Err(HubClientError::Closed) => tokio::task::yield_now().await,
                answer => break answer.unwrap(),
            }
        };
        assert_eq!(again, json!(1));
    }

    #[tokio::test]
    async fn unreachable_hub_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        let hub = HubClient::new(EndpointAddress::Unix(dir.path().join("hub.sock")).into());
        assert!(matches!(
            hub.call_method(Method::ControlStatus, &json!({})).await,
            Err(HubClientError::Unreachable(_))
        ));
    }
}
