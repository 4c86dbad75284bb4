//! How simulated clients put what they ask for.

use super::{
    World,
    check::{Kind, Prompt, Request},
};
use jackfield_hub::{ConnId, Input, SessionId};
use jackfield_protocol::Frame;

impl World {
    /// Asks the hub for something, under an id that other clients use as well.
    pub(super) fn request(
        &mut self,
        conn: ConnId,
        kind: Kind,
        session: Option<&SessionId>,
        method: &str,
        params: &str,
    ) {
        let token = self.next_mark + 1;
        let params = match (kind, session) {
            (Kind::Prompt, Some(session)) => {
                self.facts.prompts.insert(token, Prompt::default());
                let key = self.conns[&conn].relay.then(|| self.fleet.on_prompted(session, token));
                let block = format!(r#"{{"type":"text","text":"p#{token}"}}"#);
                let more = if self.rng.chance(20) { format!(",{block}") } else { String::new() };
                format!(r#"{}"prompt":[{block}{more}]"#, prompt_meta(params, key))
            }
            _ => params.to_owned(),
        };
        self.request_as(conn, kind, session, method, &params, token);
    }

    /// The same under a mark that may have been used before.
    pub(super) fn request_as(
        &mut self,
        conn: ConnId,
        kind: Kind,
        session: Option<&SessionId>,
        method: &str,
        params: &str,
        token: u64,
    ) {
        self.next_mark += 1;
        let number = self.next_mark;
        let named = session.map(|it| format!(r#""sessionId":"{it}","#)).unwrap_or_default();
        let params = match kind {
            Kind::Prompt => format!("{named}{params}"),
            // The result tells whose it is.
            Kind::Answer => {
                let meta = format!(r#""_meta":{{"by":"choice#{token}"}}"#);
                format!(r#"{named}"result":{{{meta},{params}"#)
            }
            _ => format!(r#"{named}{params}{}"token":{token}"#, comma(params)),
        };
        let it = self.conns.get_mut(&conn).expect("the caller has it");
        it.next_id += 1;
        let id = it.next_id;
        let request = Request {
            kind,
            token,
            number,
            session: session.cloned(),
            delivered: false,
            over: false,
            follows: 0,
            withdrawn: false,
            before: (None, None),
        };
        it.open.insert(id, request);
        self.send(
            conn,
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}}}}}"#),
        );
    }

    pub(super) fn send(&mut self, conn: ConnId, text: String) {
        let frame = Frame::parse(text.into()).expect("clients of this world speak JSON-RPC");
        let it = self.conns.get_mut(&conn).expect("the caller has it");
        it.sent.push_back(Input::ClientSpoke { conn, frame });
    }
}

/// What a prompt says beside its words: whether it `steers`, and its key.
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
