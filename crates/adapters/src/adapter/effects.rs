//! Applies the effects of a dialect: frames for the client, lines for the program, and the end of a
//! turn.

use super::{Adapter, AdapterOutput, SessionStore};
use crate::ProgramLifetime;
use crate::turn_effect::TurnEffect;
use jackfield_protocol::acp::Method;
use serde_json::{Value, json};

impl Adapter {
    /// Applies the pending effects of a session, and responds to the prompt if its turn has ended.
    pub(super) fn apply_effects(&mut self, id: &str, store: &mut dyn SessionStore) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let (effects, response) = session.take_effects(&self.settings.spec.name);
        for effect in effects {
            self.apply_effect(id, effect, store);
        }
        let Some((request, response)) = response else { return };
        // A turn that has ended waits for no answer.
        self.withdraw_requests(|session, _| session == id);
        match response {
            Ok(result) => self.send_result(&request, &result),
            Err(error) => self.send_error(&request, &error),
        }
        let Some(session) = self.sessions.get_mut(id) else { return };
        match session.dialect.lifetime() {
            ProgramLifetime::PerTurn => {
                session.stopping_program = session.program.take();
                self.outputs.extend(
                    session
                        .stopping_program
                        .map(|program| AdapterOutput::FinishProgram { program }),
                );
            }
            ProgramLifetime::PerSession if session.turn.is_cancelled() => {
                self.outputs
                    .extend(session.program.map(|program| AdapterOutput::StopTools { program }));
            }
            ProgramLifetime::PerSession => {}
        }
    }

    fn apply_effect(&mut self, id: &str, effect: TurnEffect, store: &mut dyn SessionStore) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let program = session.program;
        match effect {
            TurnEffect::SendUpdate(update) => {
                if let Some(mode) = update["currentModeId"].as_str() {
                    // The program changed its mode by itself; the next process must start with it.
                    session.record.mode = Some(mode.to_owned());
                    store.save_record(id, &session.record);
                }
                let params = json!({"sessionId": id, "update": update});
                let frame = json!({"jsonrpc": "2.0", "method": Method::SessionUpdate.name(), "params": params});
                self.outputs.push_back(AdapterOutput::SendToClient(frame));
            }
            TurnEffect::RequestPermission { key, tool_call, options } => {
                let request_id = self.requests_sent;
                self.requests_sent += 1;
                self.pending_requests.insert(request_id, (id.to_owned(), key));
                let options: Vec<Value> = options
                    .into_iter()
                    .map(|it| json!({"optionId": it.id, "name": it.name, "kind": it.kind}))
                    .collect();
                let params = json!({"sessionId": id, "toolCall": tool_call, "options": options});
                let method = Method::SessionRequestPermission.name();
                let frame =
                    json!({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params});
                self.outputs.push_back(AdapterOutput::SendToClient(frame));
            }
            TurnEffect::WithdrawRequest { key } => {
                self.withdraw_requests(|session, it| session == id && *it == key);
            }
            TurnEffect::WriteLine(line) => {
                self.outputs
                    .extend(program.map(|program| AdapterOutput::WriteStdin { program, line }));
            }
            TurnEffect::CloseStdin => {
                self.outputs.extend(program.map(|program| AdapterOutput::CloseStdin { program }));
            }
            TurnEffect::SetAgentSessionId(agent_session_id) => {
                if session.record.agent_session_id.as_ref() != Some(&agent_session_id) {
                    session.record.agent_session_id = Some(agent_session_id);
                    store.save_record(id, &session.record);
                }
            }
        }
    }

    /// Cancels the permission requests that match a session id and a dialect's key.
    fn withdraw_requests(&mut self, matches: impl Fn(&str, &String) -> bool) {
        let withdrawn: Vec<u64> = self
            .pending_requests
            .iter()
            .filter(|(_, (session, key))| matches(session, key))
            .map(|(request_id, _)| *request_id)
            .collect();
        for request_id in withdrawn {
            self.pending_requests.remove(&request_id);
            let params = json!({"requestId": request_id});
            let frame =
                json!({"jsonrpc": "2.0", "method": Method::CancelRequest.name(), "params": params});
            self.outputs.push_back(AdapterOutput::SendToClient(frame));
        }
    }
}
