//! Questions of network proxies about hosts, as permission requests of their agents: the user answers them like any
//! other, rules apply, and the log has them.

use super::host_answers::{HostAnswers, StoredHostAnswer};
use crate::clock;
use bytes::Bytes;
use jackfield_events::{AgentSessionId, SessionId};
use jackfield_hub::AgentId;
use jackfield_network_proxy::{HostAnswer, HostQuestion};
use jackfield_protocol::{Frame, acp::Method};
use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::Arc};
use tokio::sync::oneshot;

/// The options of the request: id, name, kind, and the answer. Automatic answers choose the first one of a kind.
const OPTIONS: [(&str, &str, &str, HostAnswer); 6] = [
    ("allow-connection", "Allow this connection", "allow_once", HostAnswer::AllowOnce),
    (ALLOW_ALWAYS, "Allow this host always", "allow_always", HostAnswer::AllowAlways),
    (
        "allow-host-in-session",
        "Allow this host until the agent ends",
        "allow_always",
        HostAnswer::AllowSession,
    ),
    ("refuse-connection", "Refuse this connection", "reject_once", HostAnswer::RefuseOnce),
    (REFUSE_ALWAYS, "Refuse this host always", "reject_always", HostAnswer::RefuseAlways),
    (
        "refuse-host-in-session",
        "Refuse this host until the agent ends",
        "reject_always",
        HostAnswer::RefuseSession,
    ),
];
const ALLOW_ALWAYS: &str = "allow-host-always";
const REFUSE_ALWAYS: &str = "refuse-host-always";

/// The questions that wait for an answer, by request id.
pub(crate) struct HostAsks {
    stored: HostAnswers,
    pending: BTreeMap<String, PendingAsk>,
}

struct PendingAsk {
    session: AskingSession,
    host: String,
    port: u16,
    reply: oneshot::Sender<HostAnswer>,
}

/// The session in which the user is asked.
#[derive(Debug, Clone)]
pub(crate) struct AskingSession {
    pub(crate) agent: AgentId,
    pub(crate) id: SessionId,
    pub(crate) agent_session_id: AgentSessionId,
    /// The profile for which answers are stored; none if they must not be.
    pub(crate) profile: Option<Arc<str>>,
}

/// A permission request about a host.
#[derive(Debug)]
pub(crate) struct HostRequest {
    /// As JSON.
    id: String,
    params: Value,
}

impl AskingSession {
    /// The request that asks about a host, as if the agent had sent it. The agent does not know the id, so it cannot get
    /// the answer for another request taken as the answer for this one.
    pub(crate) fn ask_about(&self, host: &str, port: u16) -> Result<HostRequest, getrandom::Error> {
        let mut random = [0; 16];
        getrandom::fill(&mut random)?;
        let name = format!("jackfield-host-{:032x}", u128::from_le_bytes(random));
        let options = OPTIONS.iter().filter(|(id, ..)| {
            self.profile.is_some() || ![ALLOW_ALWAYS, REFUSE_ALWAYS].contains(id)
        });
        let options: Vec<Value> = options
            .map(|(id, name, kind, _)| json!({ "optionId": id, "name": name, "kind": kind }))
            .collect();
        let params = json!({
            "sessionId": self.agent_session_id,
            "toolCall": {
                "toolCallId": name,
                "title": format!("Connect to {host}:{port}"),
                "kind": "fetch",
                "status": "pending",
                "rawInput": { "host": host, "port": port },
            },
            "options": options,
        });
        Ok(HostRequest { id: json!(name).to_string(), params })
    }
}

impl HostRequest {
    pub(crate) fn params(&self) -> &Value {
        &self.params
    }
}

impl HostAsks {
    pub(crate) fn new(stored: HostAnswers) -> HostAsks {
        HostAsks { stored, pending: BTreeMap::new() }
    }

    /// The answer that the user gave about a host for all processes of the profile.
    pub(crate) fn find_stored_answer(
        &self,
        session: &AskingSession,
        question: &HostQuestion,
    ) -> Option<HostAnswer> {
        let profile = session.profile.as_deref()?;
        match self.stored.find(profile, &question.host, question.port) {
            Ok(Some(true)) => Some(HostAnswer::AllowAlways),
            Ok(Some(false)) => Some(HostAnswer::RefuseAlways),
            Ok(None) => None,
            Err(error) => {
                tracing::error!(%error, "no stored answers about hosts; asking the user");
                None
            }
        }
    }

    /// The message that asks the user.
    pub(crate) fn open_request(
        &mut self,
        session: AskingSession,
        request: HostRequest,
        question: HostQuestion,
    ) -> Frame {
        let HostRequest { id, params } = request;
        let HostQuestion { host, port, reply } = question;
        let method = Method::SessionRequestPermission.name();
        let frame = Frame::request(&id, method, &params.to_string());
        self.pending.insert(id, PendingAsk { session, host, port, reply });
        frame
    }

    /// Takes a message for an agent if it is the answer to a question.
    pub(crate) fn take_answer(&mut self, agent: AgentId, text: &Bytes) -> bool {
        if self.pending.is_empty() {
            return false;
        }
        let frame = Frame::parse(text.clone()).ok();
        let Some(id) = frame.as_ref().and_then(Frame::id) else { return false };
        if self.pending.get(id).is_none_or(|it| it.session.agent != agent) {
            return false;
        }
        let Some(ask) = self.pending.remove(id) else { return false };
        let result = frame.as_ref().and_then(Frame::result).unwrap_or("null");
        let result: Value = serde_json::from_str(result).unwrap_or_default();
        let chosen = result["outcome"]["optionId"].as_str();
        let option = OPTIONS.iter().find(|(id, ..)| Some(*id) == chosen);
        let answer = option.map_or(HostAnswer::RefuseOnce, |(.., answer)| *answer);
        let answer = self.store_answer(&ask, answer);
        // The connections may have ended meanwhile.
        let _ended = ask.reply.send(answer);
        true
    }

    /// Stores an answer for all processes of the profile. If that fails, it applies until the agent ends.
    fn store_answer(&self, ask: &PendingAsk, answer: HostAnswer) -> HostAnswer {
        let (allowed, for_session) = match answer {
            HostAnswer::AllowAlways => (true, HostAnswer::AllowSession),
            HostAnswer::RefuseAlways => (false, HostAnswer::RefuseSession),
            _ => return answer,
        };
        let PendingAsk { session, host, port, .. } = ask;
        let Some(profile) = session.profile.as_deref() else { return for_session };
        let stored = self.stored.add(StoredHostAnswer {
            profile: profile.to_owned(),
            host: host.clone(),
            port: *port,
            allowed,
            session: session.id.to_string(),
            at: clock::now(),
        });
        match stored {
            Ok(()) => {
                tracing::info!(profile, host, port, allowed, "stored an answer about a host");
                answer
            }
            Err(error) => {
                tracing::error!(%error, host, port, "failed to store an answer about a host");
                for_session
            }
        }
    }

    /// The notification that withdraws the request about a host: no connection waits for its answer. The answer that
    /// the hub sends to the request is still taken.
    pub(crate) fn withdraw_request(&self, agent: AgentId, host: &str, port: u16) -> Option<Frame> {
        let is_asked =
            |it: &PendingAsk| it.session.agent == agent && it.host == host && it.port == port;
        // The reply of an older question about the same host is closed, too.
        let is_withdrawn = |it: &PendingAsk| is_asked(it) && it.reply.is_closed();
        let id = self.pending.iter().find(|(_, it)| is_withdrawn(it)).map(|(id, _)| id)?;
        let params = format!(r#"{{"requestId":{id}}}"#);
        Some(Frame::notification(Method::CancelRequest.name(), &params))
    }

    /// An agent has ended: no process waits for its questions.
    pub(crate) fn on_gone(&mut self, agent: AgentId) {
        self.pending.retain(|_, it| it.session.agent != agent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    const AGENT: AgentId = AgentId(1);

    /// With answers in this folder; the session can store answers.
    fn asks(folder: &TempDir) -> (HostAsks, AskingSession) {
        let asks = HostAsks::new(HostAnswers::new(folder.path().join("hosts.json")));
        let profile = Some("workspace".into());
        let (id, agent_session_id) = ("s-1".into(), "a1".into());
        (asks, AskingSession { agent: AGENT, id, agent_session_id, profile })
    }

    fn question(host: &str) -> (HostQuestion, oneshot::Receiver<HostAnswer>) {
        let (reply, answer) = oneshot::channel();
        (HostQuestion { host: host.to_owned(), port: 443, reply }, answer)
    }

    fn ask(asks: &mut HostAsks, session: &AskingSession) -> (Frame, oneshot::Receiver<HostAnswer>) {
        let (question, answer) = question("example.com");
        let request = session.ask_about(&question.host, question.port).unwrap();
        (asks.open_request(session.clone(), request, question), answer)
    }

    fn answer(frame: &Frame, option: &str) -> Bytes {
        let result = json!({ "outcome": { "outcome": "selected", "optionId": option } });
        Frame::result_for(frame.id().unwrap(), &result.to_string()).bytes().clone()
    }

    #[test]
    fn each_option_is_one_answer_and_everything_else_refuses() {
        let other = ("yes", HostAnswer::RefuseOnce);
        for (option, expected) in
            OPTIONS.map(|(id, _, _, answer)| (id, answer)).into_iter().chain([other])
        {
            let folder = tempfile::tempdir().unwrap();
            let (mut asks, session) = asks(&folder);
            let (frame, mut received) = ask(&mut asks, &session);
            assert!(asks.take_answer(AGENT, &answer(&frame, option)));
            assert_eq!(received.try_recv(), Ok(expected));
            let stored = asks.find_stored_answer(&session, &question("example.com").0);
            let is_stored = matches!(expected, HostAnswer::AllowAlways | HostAnswer::RefuseAlways);
            assert_eq!(stored, is_stored.then_some(expected));
            assert_eq!(asks.find_stored_answer(&session, &question("a.example.com").0), None);
        }
    }

    #[test]
    fn answer_that_cannot_be_stored_applies_until_the_agent_ends() {
        let folder = tempfile::tempdir().unwrap();
        let (mut asks, session) = asks(&folder);
        std::fs::write(folder.path().join("hosts.json"), "{").unwrap();
        let (frame, mut received) = ask(&mut asks, &session);
        assert!(asks.take_answer(AGENT, &answer(&frame, ALLOW_ALWAYS)));
        assert_eq!(received.try_recv(), Ok(HostAnswer::AllowSession));
    }

    #[test]
    fn tenants_neither_store_answers_nor_use_those_of_others() {
        let folder = tempfile::tempdir().unwrap();
        let (mut asks, session) = asks(&folder);
        let (frame, _received) = ask(&mut asks, &session);
        assert!(asks.take_answer(AGENT, &answer(&frame, ALLOW_ALWAYS)));
        let of_tenant = AskingSession { profile: None, ..session };
        assert_eq!(asks.find_stored_answer(&of_tenant, &question("example.com").0), None);
        let (frame, mut received) = ask(&mut asks, &of_tenant);
        let options = frame.params_value()["options"].as_array().unwrap().len();
        assert_eq!(options, OPTIONS.len() - 2);
        assert!(asks.take_answer(AGENT, &answer(&frame, REFUSE_ALWAYS)));
        assert_eq!(received.try_recv(), Ok(HostAnswer::RefuseSession));
    }

    #[test]
    fn question_is_withdrawn_when_no_connection_waits_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let (mut asks, session) = asks(&folder);
        let (frame, received) = ask(&mut asks, &session);
        assert!(asks.withdraw_request(AGENT, "example.com", 443).is_none(), "a connection waits");
        drop(received);
        assert!(asks.withdraw_request(AGENT, "example.com", 80).is_none());
        let withdrawn = asks.withdraw_request(AGENT, "example.com", 443).unwrap();
        let expected = format!(r#"{{"requestId":{}}}"#, frame.id().unwrap());
        assert_eq!(withdrawn.params(), Some(expected.as_str()));
        assert!(
            asks.take_answer(AGENT, &answer(&frame, "refuse-connection")),
            "the agent does not get it"
        );
    }

    #[test]
    fn answer_for_another_agent_or_another_request_is_not_taken() {
        let folder = tempfile::tempdir().unwrap();
        let (mut asks, session) = asks(&folder);
        let (frame, mut received) = ask(&mut asks, &session);
        assert!(!asks.take_answer(AgentId(2), &answer(&frame, "allow-connection")));
        let other = Frame::request("7", "session/request_permission", "{}");
        assert!(!asks.take_answer(AGENT, &answer(&other, "allow-connection")));
        assert!(received.try_recv().is_err());
        asks.on_gone(AGENT);
        assert_eq!(received.try_recv(), Err(oneshot::error::TryRecvError::Closed));
    }
}
