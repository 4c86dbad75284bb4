//! Questions of network proxies about hosts, as permission requests of their agents: the user answers them like any
//! other, rules apply, and the log has them.

use bytes::Bytes;
use jackfield_hub::AgentId;
use jackfield_network_proxy::{HostAnswer, HostQuestion};
use jackfield_protocol::{Frame, acp::Method};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tokio::sync::oneshot;

/// The options of the request. Both allow only once as far as the policy is concerned: it cannot learn a rule from them.
const ALLOW_ONCE: &str = "allow-connection";
const ALLOW_SESSION: &str = "allow-host-in-session";
const REFUSE_ONCE: &str = "refuse-connection";
const REFUSE_SESSION: &str = "refuse-host-in-session";

/// The questions that wait for an answer, by request id.
#[derive(Default)]
pub(crate) struct HostAsks {
    pending: BTreeMap<String, PendingAsk>,
}

struct PendingAsk {
    agent: AgentId,
    host: String,
    port: u16,
    reply: oneshot::Sender<HostAnswer>,
}

impl HostAsks {
    /// The request that asks about a host, as if the agent had sent it for this session. The agent does not know the id, so
    /// it cannot get the answer for another request taken as the answer for this one.
    pub(crate) fn open_request(
        &mut self,
        agent: AgentId,
        session: &str,
        question: HostQuestion,
    ) -> Result<Frame, getrandom::Error> {
        let mut random = [0; 16];
        getrandom::fill(&mut random)?;
        let name = format!("jackfield-host-{:032x}", u128::from_le_bytes(random));
        let id = json!(name).to_string();
        let HostQuestion { host, port, reply } = question;
        let option = |id: &str, name: &str, kind: &str| json!({ "optionId": id, "name": name, "kind": kind });
        let params = json!({
            "sessionId": session,
            "toolCall": {
                "toolCallId": name,
                "title": format!("Connect to {host}:{port}"),
                "kind": "fetch",
                "status": "pending",
                "rawInput": { "host": host, "port": port },
            },
            "options": [
                option(ALLOW_ONCE, "Allow this connection", "allow_once"),
                option(ALLOW_SESSION, "Allow this host until the agent ends", "allow_once"),
                option(REFUSE_ONCE, "Refuse this connection", "reject_once"),
                option(REFUSE_SESSION, "Refuse this host until the agent ends", "reject_once"),
            ],
        });
        let method = Method::SessionRequestPermission.name();
        let frame = Frame::request(&id, method, &params.to_string());
        self.pending.insert(id, PendingAsk { agent, host, port, reply });
        Ok(frame)
    }

    /// Takes a message for an agent if it is the answer to a question.
    pub(crate) fn take_answer(&mut self, agent: AgentId, text: &Bytes) -> bool {
        if self.pending.is_empty() {
            return false;
        }
        let frame = Frame::parse(text.clone()).ok();
        let Some(id) = frame.as_ref().and_then(Frame::id) else { return false };
        if self.pending.get(id).is_none_or(|it| it.agent != agent) {
            return false;
        }
        let Some(PendingAsk { reply, .. }) = self.pending.remove(id) else { return false };
        let result = frame.as_ref().and_then(Frame::result).unwrap_or("null");
        let result: Value = serde_json::from_str(result).unwrap_or_default();
        let answer = match result["outcome"]["optionId"].as_str() {
            Some(ALLOW_ONCE) => HostAnswer::AllowOnce,
            Some(ALLOW_SESSION) => HostAnswer::AllowSession,
            Some(REFUSE_SESSION) => HostAnswer::RefuseSession,
            _ => HostAnswer::RefuseOnce,
        };
        // The connections may have ended meanwhile.
        let _ended = reply.send(answer);
        true
    }

    /// The notification that withdraws the request about a host: no connection waits for its answer. The answer that
    /// the hub sends to the request is still taken.
    pub(crate) fn withdraw_request(&self, agent: AgentId, host: &str, port: u16) -> Option<Frame> {
        let is_asked = |it: &PendingAsk| it.agent == agent && it.host == host && it.port == port;
        // The reply of an older question about the same host is closed, too.
        let is_withdrawn = |it: &PendingAsk| is_asked(it) && it.reply.is_closed();
        let id = self.pending.iter().find(|(_, it)| is_withdrawn(it)).map(|(id, _)| id)?;
        let params = format!(r#"{{"requestId":{id}}}"#);
        Some(Frame::notification(Method::CancelRequest.name(), &params))
    }

    /// An agent has ended: no process waits for its questions.
    pub(crate) fn on_gone(&mut self, agent: AgentId) {
        self.pending.retain(|_, it| it.agent != agent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGENT: AgentId = AgentId(1);

    fn ask(asks: &mut HostAsks) -> (Frame, oneshot::Receiver<HostAnswer>) {
        let (reply, answer) = oneshot::channel();
        let question = HostQuestion { host: "example.com".to_owned(), port: 443, reply };
        (asks.open_request(AGENT, "a1", question).unwrap(), answer)
    }

    fn answer(frame: &Frame, option: &str) -> Bytes {
        let result = json!({ "outcome": { "outcome": "selected", "optionId": option } });
        Frame::result_for(frame.id().unwrap(), &result.to_string()).bytes().clone()
    }

    #[test]
    fn each_option_is_one_answer_and_everything_else_refuses() {
        for (option, expected) in [
            (ALLOW_ONCE, HostAnswer::AllowOnce),
            (ALLOW_SESSION, HostAnswer::AllowSession),
            (REFUSE_SESSION, HostAnswer::RefuseSession),
            ("yes", HostAnswer::RefuseOnce),
        ] {
            let mut asks = HostAsks::default();
            let (frame, mut received) = ask(&mut asks);
            assert!(asks.take_answer(AGENT, &answer(&frame, option)));
            assert_eq!(received.try_recv(), Ok(expected));
        }
    }

    #[test]
    fn question_is_withdrawn_when_no_connection_waits_for_it() {
        let mut asks = HostAsks::default();
        let (frame, received) = ask(&mut asks);
        assert!(asks.withdraw_request(AGENT, "example.com", 443).is_none(), "a connection waits");
        drop(received);
        assert!(asks.withdraw_request(AGENT, "example.com", 80).is_none());
        let withdrawn = asks.withdraw_request(AGENT, "example.com", 443).unwrap();
        let expected = format!(r#"{{"requestId":{}}}"#, frame.id().unwrap());
        assert_eq!(withdrawn.params(), Some(expected.as_str()));
        assert!(asks.take_answer(AGENT, &answer(&frame, REFUSE_ONCE)), "the agent does not get it");
    }

    #[test]
    fn answer_for_another_agent_or_another_request_is_not_taken() {
        let mut asks = HostAsks::default();
        let (frame, mut received) = ask(&mut asks);
        assert!(!asks.take_answer(AgentId(2), &answer(&frame, ALLOW_ONCE)));
        let other = Frame::request("7", "session/request_permission", "{}");
        assert!(!asks.take_answer(AGENT, &answer(&other, ALLOW_ONCE)));
        assert!(received.try_recv().is_err());
        asks.on_gone(AGENT);
        assert_eq!(received.try_recv(), Err(oneshot::error::TryRecvError::Closed));
    }
}
