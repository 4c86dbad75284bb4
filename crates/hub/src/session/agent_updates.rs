//! Messages of the agent about this session: updates, responses to prompts and to requests of clients.

use super::{Session, SessionStage};
use crate::{AgentId, ConnId, agent::error_of, log::Effect, parts::HubParts};
use jackfield_events::{AgentMessage, EventBody, RawJson, SettingChanged, TurnOutcome};
use jackfield_protocol::{Frame, is_planted};

impl Session {
    /// The frame with the session id of the hub. A child session of the agent keeps its own id.
    pub(crate) fn with_hub_session_id(&self, frame: Frame) -> Frame {
        if frame.session_id().is_some_and(|it| self.is_called(&it)) {
            frame.with_session_id(&self.id)
        } else {
            frame
        }
    }

    /// Logs or forwards an update. Returns it if the agent has not reported the id of its session yet.
    pub(crate) fn on_update(
        &mut self,
        parts: &mut HubParts,
        agent: AgentId,
        mut frame: Frame,
        is_journaled: bool,
    ) -> Option<Frame> {
        if self.agent != Some(agent) && !is_planted("accept-frames-of-released-agent") {
            return None; // The session left this process; another may serve it by now.
        }
        let needs_timer = self.activity.mark(parts.cx.now);
        match &mut self.stage {
            SessionStage::Opening(_) => return Some(frame),
            SessionStage::Restoring(restoring) if restoring.is_nameless() => return Some(frame),
            // A replay is dropped: the journal has these updates.
            SessionStage::Restoring(restoring) => {
                frame = restoring.filter_replay(frame, is_journaled, parts.cx.now)?;
            }
            SessionStage::Importing(_) | SessionStage::Bound | SessionStage::Asleep => {}
        }
        if needs_timer {
            self.watch_activity(&mut parts.cx);
        }
        let frame = self.with_hub_session_id(frame);
        if is_journaled {
            self.confirm_restored();
            let turn = self.summary().turns;
            let late = self.turn.is_none() && turn != 0;
            let message = RawJson::trusted(frame.bytes().clone());
            let said = AgentMessage { turn, late, frame: message };
            self.append_event(&mut parts.cx, EventBody::Said(said));
            self.note_tool_call(&mut parts.cx, &frame);
        } else {
            self.run_after_log(parts, Effect::ToSubscribers { text: frame.bytes().clone() });
        }
        self.limit_pending_events(parts);
        None
    }

    pub(crate) fn on_prompt_response(&mut self, parts: &mut HubParts, turn: u64, frame: &Frame) {
        if self.retry_unknown_session(parts, turn, frame) {
            return; // The agent never had this session: the restore continues with the same prompt.
        }
        let outcome = match frame.result() {
            Some(result) => TurnOutcome::Stopped(RawJson::trusted(result.to_owned())),
            None => TurnOutcome::Failed(RawJson::trusted(error_of(frame))),
        };
        self.end_turn(parts, turn, outcome);
    }

    /// The agent answered a request of a client. A setting that it accepted is logged.
    pub(crate) fn on_client_response(
        &mut self,
        parts: &mut HubParts,
        conn: ConnId,
        request: &str,
        setting: Option<Frame>,
        frame: &Frame,
    ) {
        let answer = self.with_hub_session_id(frame.with_id(request));
        if let (Some(setting), Some(result)) = (setting, frame.result()) {
            let frame = RawJson::trusted(setting.bytes().clone());
            let answer = RawJson::trusted(result.to_owned());
            let changed = SettingChanged { frame, answer };
            self.append_event(&mut parts.cx, EventBody::Configured(changed));
        }
        self.answer_after_log(parts, conn, &answer);
    }
}
