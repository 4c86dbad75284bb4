//! How simulated agents continue a turn: they send updates, unlogged notifications and asks, and answer the prompt.

use super::{
    HubWorld,
    agent::error_response,
    check::{AgentUpdate, AskKind},
    hub_settings::RULED_KINDS,
};
use bytes::Bytes;
use jackfield_events::AgentSessionId;
use jackfield_hub::{AgentId, Input};
use jackfield_protocol::Frame;

impl HubWorld {
    /// Continues a turn.
    pub(super) fn continue_turn(&mut self, agent: AgentId) {
        let agent_session = self.pick_session(agent, |it| it.turn.is_some());
        let agent_session = agent_session.expect("the caller saw a turn");
        let process = self.procs.get_mut(&agent).expect("the caller found it");
        let asks = !process.open_asks.is_empty();
        let session_state = process.sessions.get_mut(&agent_session).expect("found above");
        let turn = session_state.turn.as_mut().expect("found above");
        let (id, token, cancelled) = (turn.id.clone(), turn.token, turn.cancelled);
        if cancelled || turn.remaining == 0 {
            if asks && !cancelled && !self.faults_stopped && self.rng.chance(80) {
                return; // It waits for the user.
            }
            session_state.turn = None;
            let text = match self.rng.below(10) {
                0 if !cancelled => error_response(&id, token),
                _ => {
                    let stop = if cancelled { "cancelled" } else { "end_turn" };
                    format!(
                        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"stopReason":"{stop}","token":{token}}}}}"#
                    )
                }
            };
            return self.send_from_agent(agent, text);
        }
        turn.remaining -= 1;
        match self.rng.below(10) {
            0..=5 => drop(self.send_update(agent, &agent_session, false)),
            6 => self.send_ask(agent, &agent_session, "session/request_permission"),
            7 => self.send_ask(agent, &agent_session, "fs/read_text_file"),
            8 => {
                let method = self.rng.pick(&["x/unheard_of", "elicitation/create"]);
                self.send_ask(agent, &agent_session, method);
            }
            _ => self.send_unlogged(agent, &agent_session),
        }
    }

    pub(super) fn send_outside_turn(&mut self, agent: AgentId) {
        let Some(agent_session) = self.pick_session(agent, |it| !it.is_fake) else { return };
        match self.rng.below(10) {
            0..=5 => {
                self.tally.count("updates outside a turn");
                self.send_update(agent, &agent_session, false);
            }
            6 => self.send_ask(agent, &agent_session, "session/request_permission"),
            7 => self.withdraw_ask(agent),
            _ => self.send_unlogged(agent, &agent_session),
        }
    }

    /// Returns true if the update is part of the conversation.
    pub(super) fn send_update(
        &mut self,
        agent: AgentId,
        agent_session: &AgentSessionId,
        replay: bool,
    ) -> bool {
        self.next_mark += 1;
        let mark = self.next_mark;
        let big = self.rng.chance(self.fault_rates.large_update);
        let padding = if big { "x".repeat(self.rng.index(1500)) } else { String::new() };
        let update = match self.rng.below(12) {
            0 => format!(r#""sessionUpdate":"session_info_update","title":"title {mark}""#),
            1 => format!(r#""sessionUpdate":"current_mode_update","currentModeId":"m{mark}""#),
            3 => {
                let status = self.rng.pick(&["pending", "in_progress", "completed"]);
                let call = self.rng.below(3);
                format!(r#""sessionUpdate":"tool_call","toolCallId":"t{call}","status":"{status}""#)
            }
            2 => r#""sessionUpdate":"never_heard_of","odd":[1.50, {"deep":null}]"#.to_owned(),
            _ => format!(
                r#""sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{padding}"}}"#
            ),
        };
        let meta = self.rng.pick(&["", "", "", r#""_meta":{"x":1},"#]);
        let text: Bytes = format!(
            r#"{{"jsonrpc":"2.0","method":"session/update","params":{{{meta}"sessionId":"{agent_session}","update":{{{update}}},"n":{mark}}}}}"#
        )
        .into();
        let (speaker, agent_session) = ((self.hub_number, agent), agent_session.clone());
        let record = AgentUpdate {
            text: text.clone(),
            agent_session,
            speaker,
            replay,
            received: 0,
            seq: None,
        };
        self.log_tracker.updates.insert(mark, record);
        let frame = Frame::parse(text).expect("well-formed by construction");
        let process = self.procs.get_mut(&agent).expect("the process runs");
        let is_conversation = frame.update().as_deref() == Some("agent_message_chunk");
        process.outbox.push_back(Input::AgentSpoke { agent, frame });
        is_conversation
    }

    fn send_unlogged(&mut self, agent: AgentId, agent_session: &AgentSessionId) {
        self.next_mark += 1;
        let mark = self.next_mark;
        self.unlogged.insert(mark, agent_session.clone());
        self.send_from_agent(agent, format!(
            r#"{{"jsonrpc":"2.0","method":"x/by_the_way","params":{{"sessionId":"{agent_session}","n":{mark}}}}}"#
        ));
    }

    fn send_ask(&mut self, agent: AgentId, agent_session: &AgentSessionId, method: &str) {
        self.next_mark += 1;
        let mark = self.next_mark;
        let process = self.procs.get_mut(&agent).expect("the process runs");
        process.open_asks.insert(mark);
        let permission = method == "session/request_permission";
        let kind = self.rng.pick(&["read", "edit", "delete", "execute"]);
        let ask_kind = match method {
            _ if permission && self.hub_settings.has_rules && RULED_KINDS.contains(&kind) => {
                AskKind::Ruled
            }
            _ if permission => AskKind::Permission,
            "elicitation/create" => AskKind::Form,
            _ => AskKind::Passing,
        };
        self.ask_tracker.on_ask(mark, agent, agent_session, ask_kind);
        let tool = format!(
            r#","toolCall":{{"toolCallId":"t-{mark}","kind":"{kind}"}},"options":[{{"optionId":"ok","kind":"allow_once"}}]"#
        );
        let options = if permission { tool.as_str() } else { "" };
        self.send_from_agent(agent, format!(
            r#"{{"jsonrpc":"2.0","id":"q-{mark}","method":"{method}","params":{{"sessionId":"{agent_session}","n":{mark}{options}}}}}"#
        ));
    }

    pub(super) fn withdraw_ask(&mut self, agent: AgentId) {
        let Some(mark) = self.procs[&agent].open_asks.first().copied() else { return };
        self.tally.count("asks withdrawn by the agent");
        self.send_from_agent(agent, format!(
            r#"{{"jsonrpc":"2.0","method":"$/cancel_request","params":{{"requestId":"q-{mark}"}}}}"#
        ));
    }
}
