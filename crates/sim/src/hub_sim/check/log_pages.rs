//! A page of a log has the events that are stored, in order.

use super::check_invariant;
use crate::hub_sim::HubWorld;
use jackfield_hub::SessionId;
use jackfield_protocol::Frame;
use serde_json::Value;

impl HubWorld {
    pub(in crate::hub_sim) fn page_has_the_stored_events(
        &self,
        session: &SessionId,
        answer: &Frame,
    ) {
        // A session that was deleted meanwhile has no log to compare with.
        let Some(stream) = self.disk.streams.get(session) else { return };
        let page: Value =
            answer.result().and_then(|it| serde_json::from_str(it).ok()).unwrap_or_default();
        let lines = page["lines"].as_str().unwrap_or_default();
        let mut last = None;
        for line in lines.lines() {
            let event: Value = serde_json::from_str(line).unwrap_or_default();
            let seq = event["seq"].as_u64().unwrap_or_default();
            let expected =
                stream.stored_line(seq).map(|it| format!(r#"{{"seq":{seq},{}"#, &it[1..]));
            let is_next = last.is_none_or(|it| it + 1 == seq);
            let holds = is_next && expected.as_deref() == Some(line);
            check_invariant("page_has_the_stored_events", holds, || {
                format!("{session}: {line} follows event {last:?}, and stored is {expected:?}")
            });
            last = Some(seq);
        }
    }
}
