//! Requests to the user at the clients that can answer: each gets it once, and is notified when it is closed.

use super::{Session, approval::title_with_facts};
use crate::{
    ConnId, SessionId,
    context::HubContext,
    fanout::cancel_notice,
    parts::HubParts,
    peer::{Clients, IssuedRequest},
};
use bytes::Bytes;
use jackfield_events::RawJson;
use jackfield_protocol::{Frame, acp::Method};

impl Clients {
    /// A request was closed: a client that has it need not answer.
    pub(crate) fn withdraw_user_request(
        &mut self,
        cx: &mut HubContext,
        id: &SessionId,
        conn: ConnId,
        number: u64,
    ) {
        let Some(it) = self.connections.get_mut(&conn) else { return };
        let sent =
            it.asked.iter().find(|(_, it)| is_ask(it, id, number)).map(|(&our_id, _)| our_id);
        if let Some(our_id) = sent {
            it.asked.remove(&our_id);
            self.send(cx, conn, cancel_notice(our_id));
        }
    }

    /// The session is removed, and with it the requests that clients have.
    pub(crate) fn withdraw_user_requests(&mut self, cx: &mut HubContext, id: &SessionId) {
        let of_session =
            |it: &IssuedRequest| matches!(it, IssuedRequest::Ask(session, _) if session == id);
        for (conn, _, notice) in self.take_issued_requests(of_session) {
            self.send(cx, conn, notice);
        }
    }

    /// Forgets requests that were sent to clients. Returns the cancel notices.
    pub(crate) fn take_issued_requests(
        &mut self,
        which: impl Fn(&IssuedRequest) -> bool,
    ) -> Vec<(ConnId, IssuedRequest, Bytes)> {
        let mut notices = Vec::new();
        for (&conn, it) in &mut self.connections {
            let asked = it.asked.extract_if(.., |_, issued| which(issued));
            notices.extend(asked.map(|(request, it)| (conn, it, cancel_notice(request))));
        }
        notices
    }
}

impl Session {
    /// Sends an open request to a client: as an event, or when the client attaches later.
    pub(crate) fn issue_user_request(
        &self,
        clients: &mut Clients,
        conn: ConnId,
        number: u64,
        frame: &Bytes,
    ) -> Option<Bytes> {
        let frame = Frame::parse(frame.clone()).ok()?;
        let it = clients.connections.get_mut(&conn)?;
        let elicits = frame.is_method(Method::ElicitationCreate);
        let sent = it.asked.values().any(|it| is_ask(it, &self.id, number));
        let ask = self.asks.get(&number).filter(|_| !sent)?;
        if elicits && !it.capabilities.elicitation {
            return None;
        }
        let request_id = it.issue(IssuedRequest::Ask(self.id.clone(), number)).to_string();
        let frame = frame.with_id(&request_id);
        let Some(facts) = &ask.facts else { return Some(frame.bytes().clone()) };
        if !it.aware {
            return Some(with_honest_title(&frame, &request_id, facts).bytes().clone());
        }
        // A client that answers by its own rules must know that a rule wants a person to answer.
        let policy = ask.decision.as_ref().map(|it| format!(r#","policy":{}"#, it.as_str()));
        let policy = policy.unwrap_or_default();
        let meta = format!(r#"{{"call":{}{policy}}}"#, facts.as_str());
        Some(frame.with_meta(&meta).bytes().clone())
    }

    /// Sends open requests to a client that attaches behind their events. They follow the answer to its attach.
    pub(crate) fn issue_open_requests(&mut self, parts: &mut HubParts, conn: ConnId) {
        let Some(subscriber) = self.subscribers.get(&conn).filter(|it| !it.observer) else {
            return;
        };
        let (heard, last) = (subscriber.heard, self.log.head());
        let open = self.asks.iter().filter(|(_, ask)| ask.seq <= heard);
        let open: Vec<(u64, Bytes)> =
            open.map(|(&number, ask)| (number, ask.frame.bytes().clone())).collect();
        for (number, frame) in open {
            let Some(it) = parts.clients.connections.get(&conn) else { return };
            let Ok(mut charge) = parts.cx.retained_bytes.charge(&it.kept, frame.len()) else {
                continue; // Another client can answer, or this one by `_jackfield/answer`.
            };
            let text = self.issue_user_request(&mut parts.clients, conn, number, &frame);
            if let (Some(text), Some(subscriber)) = (text, self.subscribers.get_mut(&conn)) {
                charge.resize(text.len());
                subscriber.defer(last, text, charge);
            }
        }
    }
}

/// The request for a client that does not know `_meta.jackfield`: its title shows what will be done. Everything
/// else stays as the agent wrote it.
fn with_honest_title(frame: &Frame, id: &str, facts: &RawJson) -> Frame {
    let mut params = frame.params_value();
    let facts = serde_json::from_str(facts.as_str()).unwrap_or_default();
    let Some(title) = title_with_facts(&facts, params["toolCall"]["title"].as_str()) else {
        return frame.clone();
    };
    let (Some(method), Some(call)) = (frame.method(), params["toolCall"].as_object_mut()) else {
        return frame.clone();
    };
    call.insert("title".to_owned(), title.into());
    Frame::request(id, &method, &params.to_string())
}

fn is_ask(issued: &IssuedRequest, id: &SessionId, number: u64) -> bool {
    matches!(issued, IssuedRequest::Ask(session, ask) if session == id && *ask == number)
}
