//! A session that was copied from another one: what was open there is ended, and the client that requested it is
//! subscribed and answered.

use super::Session;
use crate::{
    ConnId, Note, SessionId,
    fanout::{EventSubscriber, Phase},
    parts::HubParts,
};
use jackfield_events::INTERRUPTED_LATER_SUFFIX;
use jackfield_protocol::{Frame, is_planted};
use serde_json::{Map, Value, json};

impl Session {
    pub(crate) fn on_forked(
        &mut self,
        parts: &mut HubParts,
        conn: ConnId,
        request: Box<str>,
        from: SessionId,
    ) {
        let (setup, received) = (self.summary().setup.as_str(), self.summary().upto());
        let mut result: Map<String, Value> = serde_json::from_str(setup).unwrap_or_default();
        result.insert("sessionId".into(), json!(&*self.id));
        self.count_queue(&parts.cx.retained_bytes);
        if !is_planted("fork-with-open-turn") {
            let unanswered = "the session was forked before it was answered";
            let why = format!("the session was forked{INTERRUPTED_LATER_SUFFIX}");
            self.end_open_work(&mut parts.cx, unanswered, &why);
        }
        self.subscribe(parts, conn, EventSubscriber::new(received, Phase::Live));
        let answer = Frame::result_for(&request, &Value::from(result).to_string());
        self.opener = Some((conn, request));
        self.answer_after_log(parts, conn, &answer);
        parts.cx.note(Note::SessionForked { session: self.id.clone(), from });
    }
}
