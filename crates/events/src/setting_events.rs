//! Where the log has the latest commands and config options of a session. The summary keeps the sequence numbers
//! only: the lists can be large, and few clients read them.

use crate::{RawJson, Seq};
use jackfield_protocol::Frame;
use memchr::memmem;
use serde::{Deserialize, Serialize};

/// The sequence numbers of the latest events with lists of an agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SettingEvents {
    /// The last `available_commands_update`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commands: Option<u64>,
    /// The last event with config options, if it is later than the setup of the session: a
    /// `config_option_update`, or the answer to `session/set_config_option`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub options: Option<u64>,
}

impl SettingEvents {
    pub(crate) fn is_empty(&self) -> bool {
        *self == SettingEvents::default()
    }

    /// The session has a new setup. If that has config options, they replace earlier ones.
    pub(crate) fn on_setup(&mut self, setup: &RawJson) {
        if has_options(setup.bytes()) {
            self.options = None;
        }
    }

    /// Returns whether the update has one of the lists.
    pub(crate) fn on_update(&mut self, seq: Seq, frame: &Frame) -> bool {
        match frame.update().as_deref() {
            Some("available_commands_update") => self.commands = Some(seq.0),
            Some("config_option_update") => self.options = Some(seq.0),
            _ => return false,
        }
        true
    }

    /// The agent accepted a setting with this answer.
    pub(crate) fn on_setting(&mut self, seq: Seq, answer: &RawJson) {
        if has_options(answer.bytes()) {
            self.options = Some(seq.0);
        }
    }
}

fn has_options(json: &[u8]) -> bool {
    memmem::find(json, br#""configOptions":["#).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        AgentMessage, EventBody, SessionEvent, SessionSummary, SettingChanged, SummaryUpdate, Time,
    };

    fn fold(summary: &mut SessionSummary, body: EventBody) -> SummaryUpdate {
        let seq = summary.upto().next();
        summary.fold(&SessionEvent { seq, at: Time(seq.0), body })
    }

    fn update(name: &str) -> EventBody {
        let params = serde_json::json!({ "sessionId": "s-1", "update": { "sessionUpdate": name } });
        let frame = Frame::notification("session/update", &params.to_string());
        let frame = RawJson::trusted(frame.bytes().clone());
        EventBody::Said(AgentMessage { turn: 0, late: false, frame })
    }

    #[test]
    fn latest_lists_of_commands_and_options_are_found_by_number() {
        let mut summary = SessionSummary::default();
        assert_eq!(fold(&mut summary, update("agent_message_chunk")), SummaryUpdate::None);
        assert!(summary.setting_events.is_empty());
        let commands = fold(&mut summary, update("available_commands_update"));
        assert_eq!(commands, SummaryUpdate::Immediate);
        fold(&mut summary, update("config_option_update"));
        let answers = [r#"{"configOptions":[{"id":"a"}]}"#, "{}"];
        for answer in answers.map(RawJson::trusted) {
            let frame = RawJson::trusted("{}");
            fold(&mut summary, EventBody::Configured(SettingChanged { frame, answer }));
        }
        let found = SettingEvents { commands: Some(2), options: Some(4) };
        assert_eq!(summary.setting_events, found);
        let stored = SessionSummary::from_summary(&summary.to_summary()).unwrap();
        assert_eq!(stored.setting_events, found);
    }

    #[test]
    fn setup_with_options_replaces_earlier_ones() {
        let mut events = SettingEvents { commands: Some(2), options: Some(4) };
        events.on_setup(&RawJson::trusted("{}"));
        assert_eq!(events.options, Some(4));
        events.on_setup(&RawJson::trusted(r#"{"configOptions":[]}"#));
        assert_eq!(events, SettingEvents { commands: Some(2), options: None });
    }
}
