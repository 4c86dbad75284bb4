//! Removes sessions: deleted ones, released ones, and ones that another host has taken over.

use super::{Sessions, fork::SessionFork};
use crate::{
    AppendFailure, ConnId, Note, Output, SessionId, parts::HubParts, session::SubscriptionEnd,
};
use jackfield_protocol::{Fault, Frame};

impl Sessions {
    pub(crate) fn delete_session(
        &mut self,
        parts: &mut HubParts,
        conn: ConnId,
        id: &str,
        frame: &Frame,
    ) -> Result<(), Fault> {
        let session = self.find_session(frame)?;
        session.interrupt(parts, &Fault::Interrupted { why: "the session was deleted".into() });
        let (session_id, is_releasing) = (session.id.clone(), session.release.is_some());
        parts.cx.outputs.push_back(Output::Delete { session: session_id.clone() });
        if is_releasing {
            // A relay connection repeats requests that are not answered.
            parts.clients.answer_request(&mut parts.cx, conn, id, Ok("{}"));
        }
        let fault = Fault::SessionNotFound { session: session_id.to_string() };
        self.remove_session(parts, &session_id, &fault);
        self.note_deleted(&session_id);
        parts.cx.note(Note::SessionDeleted { session: session_id });
        if !is_releasing {
            parts.clients.answer_request(&mut parts.cx, conn, id, Ok("{}"));
        }
        Ok(())
    }

    /// Removes a session. Waiting requests are answered; relay connections are notified last that the session may be
    /// elsewhere.
    pub(super) fn remove_session(&mut self, parts: &mut HubParts, id: &SessionId, fault: &Fault) {
        let Some(mut session) = self.by_id.remove(id) else { return };
        session.leave_all_agents(parts);
        let (was_requested, mut end) = session.end_subscriptions(parts, fault);
        self.abandon_forks_of(parts, id, &mut end);
        self.abandon_log_pages_of(parts, id, &mut end);
        end.send_moved_notices(&mut parts.clients, &mut parts.cx, id);
        if was_requested {
            parts.cx.outputs.push_back(Output::SessionReleased { session: id.clone() });
        }
    }

    /// Gateways repeat requests for forks at the next host.
    fn abandon_forks_of(
        &mut self,
        parts: &mut HubParts,
        id: &SessionId,
        end: &mut SubscriptionEnd<'_>,
    ) {
        let is_abandoned = |it: &SessionFork| it.from == *id && parts.clients.is_relay(it.conn);
        let forks: Vec<_> =
            self.forks.extract_if(.., |_, it| is_abandoned(it)).map(|(_, it)| it).collect();
        for SessionFork { conn, request, .. } in forks {
            end.refuse_request(&mut parts.clients, &mut parts.cx, conn, &request);
        }
    }

    /// Another host will serve the session.
    pub(crate) fn on_release_requested(&mut self, parts: &mut HubParts, id: &SessionId) {
        match self.by_id.get_mut(id) {
            Some(session) => session.begin_release(parts),
            None => parts.cx.outputs.push_back(Output::SessionReleased { session: id.clone() }),
        }
    }

    /// The release of a session is complete.
    pub(super) fn remove_released(&mut self, parts: &mut HubParts, id: &SessionId) {
        if self.by_id.contains_key(id) {
            self.remove_session(parts, id, &Fault::Fenced { session: id.to_string() });
            parts.cx.note(Note::SessionReleased { session: id.clone() });
        }
    }

    pub(crate) fn on_append_failed(
        &mut self,
        parts: &mut HubParts,
        id: &SessionId,
        why: AppendFailure,
    ) {
        let Some(session) = self.by_id.get_mut(id) else { return };
        let held = session.log.pending_events().count();
        match why {
            AppendFailure::Fenced => {
                session.release.get_or_insert_default();
                let fault = Fault::Fenced { session: id.to_string() };
                self.remove_session(parts, id, &fault);
                parts.cx.note(Note::SessionFenced { session: id.clone(), held });
            }
            AppendFailure::Unavailable { fault, why } => {
                let failures = session.schedule_append_retry(&mut parts.cx);
                self.on_storage_failed(parts, failures, fault, &why);
                parts.cx.note(Note::AppendRetried { session: id.clone(), held, why });
            }
        }
    }

    /// The released session that a request concerns. While its last turn runs it is served, except for requests that
    /// would start another turn.
    pub(crate) fn find_released_session(
        &mut self,
        frame: &Frame,
    ) -> Option<&mut crate::session::Session> {
        self.by_id.get_mut(&*frame.session_id()?).filter(|it| it.is_released_for(frame))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Hub, Input, Launch, Recovered, Time, VariantChoice};
    use jackfield_events::SessionSummary;
    use serde_json::Value;
    use std::{collections::BTreeMap, path::PathBuf};

    #[test]
    fn session_is_removed_when_another_host_has_taken_it_over() {
        let state = SessionSummary { seq: 5, ..SessionSummary::default() };
        let recovered = [Recovered { session: "s-1".into(), state }];
        let mut hub = Hub::new(Config::default(), Time(0), recovered);
        while hub.poll_output().is_some() {}
        let why = AppendFailure::Fenced;
        hub.handle(Time(1), Input::AppendFailed { session: "s-1".into(), why });
        let outputs: Vec<Output> = std::iter::from_fn(|| hub.poll_output()).collect();
        assert!(hub.session(&"s-1".into()).is_none());
        let is_fenced = |it: &Output| matches!(it, Output::Note(Note::SessionFenced { .. }));
        assert!(outputs.iter().any(is_fenced), "{outputs:?}");
    }

    #[test]
    fn opening_of_a_session_that_another_host_writes_is_answered() {
        let launch = Launch {
            name: "fake".into(),
            argv: Vec::new(),
            cwd: PathBuf::new(),
            env: None,
            variant: VariantChoice::Any,
            sandbox: crate::SandboxRequest::default(),
        };
        let agents = BTreeMap::from([("fake".into(), launch)]);
        let mut hub = Hub::new(Config { agents, ..Config::default() }, Time(0), []);
        let conn = ConnId(1);
        let mut feed = |input: Input| -> Vec<Value> {
            hub.handle(Time(1), input);
            let outputs = std::iter::from_fn(|| hub.poll_output());
            let message = |it: Output| match it {
                Output::ToClient { text, .. } => serde_json::from_slice(&text).ok(),
                _ => None,
            };
            outputs.filter_map(message).collect()
        };
        feed(Input::ClientOpened { conn, peer: None });
        let requests = [
            r#"{"jsonrpc":"2.0","id":1,"method":"_jackfield/connect","params":{"agent":"fake"}}"#,
            r#"{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/x","mcpServers":[],
                "_meta":{"jackfield":{"session":"s-abcdefghijkl"}}}}"#,
        ];
        for request in requests {
            let frame = Frame::parse_str(&request.replace('\n', "")).unwrap();
            feed(Input::ClientSpoke { conn, frame });
        }
        let session: SessionId = "s-abcdefghijkl".into();
        let answers = feed(Input::AppendFailed { session, why: AppendFailure::Fenced });
        assert_eq!(answers.len(), 1, "{answers:?}");
        assert_eq!(answers[0]["id"], 2);
        assert!(answers[0]["error"].is_object(), "{answers:?}");
    }
}
