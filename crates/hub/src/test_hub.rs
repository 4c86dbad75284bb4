//! A hub with stored sessions, for tests that send requests of clients and read the outputs.

use crate::{Config, ConnId, Hub, Input, Output, Recovered, Tenant, Time};
use jackfield_events::SessionSummary;
use jackfield_protocol::Frame;
use serde_json::{Value, json};

pub(crate) struct TestHub {
    pub(crate) hub: Hub,
    pub(crate) now_ms: u64,
    /// The number of requests.
    last_id: u64,
}

impl TestHub {
    /// The sessions have this many events, and no agent.
    pub(crate) fn with_sessions(ids: &[&str], events: u64) -> TestHub {
        let recovered = ids.iter().map(|it| Recovered {
            session: (*it).into(),
            state: SessionSummary { seq: events, ..SessionSummary::default() },
        });
        let hub = Hub::new(Config::default(), Time(0), recovered.collect::<Vec<_>>());
        TestHub { hub, now_ms: 1, last_id: 0 }
    }

    pub(crate) fn connect_client(&mut self, conn: ConnId, tenant: Option<&Tenant>) {
        self.feed_input(Input::ClientOpened { conn, peer: None });
        if let Some(tenant) = tenant {
            self.feed_input(Input::ClientSpoke { conn, frame: tenant.binding() });
        }
        self.answer(conn, "initialize", &json!({ "protocolVersion": 1 }));
    }

    /// Feeds an input. What is appended is durable at once. Returns the outputs.
    pub(crate) fn feed_input(&mut self, input: Input) -> Vec<Output> {
        let (mut inputs, mut outputs) = (vec![input], Vec::new());
        while let Some(input) = inputs.pop() {
            self.hub.handle(Time(self.now_ms), input);
            while let Some(output) = self.hub.poll_output() {
                if let Output::Append { session, event, .. } = &output {
                    inputs.push(Input::Durable { session: session.clone(), upto: event.seq });
                }
                outputs.push(output);
            }
        }
        outputs
    }

    /// Sends a request under the next id: 1, 2, ….
    pub(crate) fn send_request(
        &mut self,
        conn: ConnId,
        method: &str,
        params: &Value,
    ) -> Vec<Output> {
        self.last_id += 1;
        let frame = Frame::request(&self.last_id.to_string(), method, &params.to_string());
        self.feed_input(Input::ClientSpoke { conn, frame })
    }

    /// Sends a request. Returns the answer, `null` if there is none yet.
    pub(crate) fn answer(&mut self, conn: ConnId, method: &str, params: &Value) -> Value {
        let outputs = self.send_request(conn, method, params);
        let mut messages = messages_to_clients(outputs).into_iter();
        let answer = messages.find(|(to, it)| *to == conn && it["id"] == self.last_id);
        answer.map(|(_, it)| it).unwrap_or_default()
    }
}

/// The messages to clients, in order.
pub(crate) fn messages_to_clients(outputs: Vec<Output>) -> Vec<(ConnId, Value)> {
    let message = |it| match it {
        Output::ToClient { conn, text } => Some((conn, serde_json::from_slice(&text).unwrap())),
        _ => None,
    };
    outputs.into_iter().filter_map(message).collect()
}
