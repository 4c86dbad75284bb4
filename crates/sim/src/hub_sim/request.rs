//! How simulated clients build and send requests.

use super::{
    HubWorld,
    check::{ClientRequest, PromptRecord, RequestKind},
};
use jackfield_hub::{ConnId, Input, SessionId};
use jackfield_protocol::Frame;

impl HubWorld {
    /// Sends a request under an id that other clients use as well.
    pub(super) fn send_request(
        &mut self,
        conn: ConnId,
        kind: RequestKind,
        session: Option<&SessionId>,
        method: &str,
        params: &str,
    ) {
        let token = self.next_mark + 1;
        let params = match (kind, session) {
            (RequestKind::Prompt, Some(session)) => {
                self.log_tracker.prompts.insert(token, PromptRecord::default());
                let key =
                    self.conns[&conn].relay.then(|| self.session_moves.on_prompted(session, token));
                let block = format!(r#"{{"type":"text","text":"p#{token}"}}"#);
                let more = if self.rng.chance(20) { format!(",{block}") } else { String::new() };
                format!(r#"{}"prompt":[{block}{more}]"#, prompt_meta(params, key))
            }
            _ => params.to_owned(),
        };
        self.send_request_with_token(conn, kind, session, method, &params, token);
    }

    /// The same with a mark that may have been used before.
    pub(super) fn send_request_with_token(
        &mut self,
        conn: ConnId,
        kind: RequestKind,
        session: Option<&SessionId>,
        method: &str,
        params: &str,
        token: u64,
    ) {
        self.next_mark += 1;
        let number = self.next_mark;
        let named = session.map(|it| format!(r#""sessionId":"{it}","#)).unwrap_or_default();
        let params = match kind {
            RequestKind::Prompt => format!("{named}{params}"),
            // The result carries the mark of the choice.
            RequestKind::Answer => {
                let meta = format!(r#""_meta":{{"by":"choice#{token}"}}"#);
                format!(r#"{named}"result":{{{meta},{params}"#)
            }
            _ => format!(r#"{named}{params}{}"token":{token}"#, comma(params)),
        };
        let it = self.conns.get_mut(&conn).expect("the connection is open");
        it.next_id += 1;
        let id = it.next_id;
        let request = ClientRequest {
            kind,
            token,
            number,
            session: session.cloned(),
            delivered: false,
            repeats_ended_prompt: false,
            follows_seq: 0,
            withdrawn: false,
            session_was_closed: false,
            earlier_subscription: (None, None),
        };
        it.pending.insert(id, request);
        self.send_from_client(
            conn,
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}}}}}"#),
        );
    }

    pub(super) fn send_from_client(&mut self, conn: ConnId, text: String) {
        let frame = Frame::parse(text.into()).expect("simulated clients send valid frames");
        let it = self.conns.get_mut(&conn).expect("the connection is open");
        it.sent.push_back(Input::ClientSpoke { conn, frame });
    }
}

/// The `_meta` of a prompt: whether it `steers`, and its key.
fn prompt_meta(steers: &str, key: Option<String>) -> String {
    let members = [steers.to_owned()].into_iter().filter(|it| !it.is_empty());
    let key = key.map(|it| format!(r#""key":"{it}""#));
    let members: Vec<String> = members.chain(key).collect();
    if members.is_empty() {
        return String::new();
    }
    format!(r#""_meta":{{"jackfield":{{{}}}}},"#, members.join(","))
}

fn comma(params: &str) -> &'static str {
    if params.is_empty() { "" } else { "," }
}
