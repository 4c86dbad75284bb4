//! What follows from what a dialect said: frames for the client, lines for the program, and the end of
//! a turn.

use super::{Adapter, Memory, Output};
use crate::Life;
use crate::turn::Effect;
use serde_json::{Value, json};

impl Adapter {
    /// Carries out what a dialect said, and answers the prompt if its turn is over.
    pub(super) fn settle(&mut self, id: &str, memory: &mut dyn Memory) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let (effects, answer) = session.take(&self.settings.spec.name);
        for effect in effects {
            self.carry_out(id, effect, memory);
        }
        let Some((request, answer)) = answer else { return };
        self.retract(id);
        match answer {
            Ok(result) => self.answer(&request, &result),
            Err(error) => self.refuse(&request, &error),
        }
        let Some(session) = self.sessions.get_mut(id) else { return };
        match session.dialect.life() {
            Life::Turn => {
                session.leaving = session.program.take();
                self.outputs.extend(session.leaving.map(|program| Output::Finish { program }));
            }
            Life::Session if session.turn.is_cancelled() => {
                self.outputs.extend(session.program.map(|program| Output::EndTools { program }));
            }
            Life::Session => {}
        }
    }

    fn carry_out(&mut self, id: &str, effect: Effect, memory: &mut dyn Memory) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let program = session.program;
        match effect {
            Effect::Update(update) => {
                if let Some(mode) = update["currentModeId"].as_str() {
                    // The program chose it by itself, and its successor should begin with it.
                    session.note.mode = Some(mode.to_owned());
                    memory.remember(id, &session.note);
                }
                let params = json!({"sessionId": id, "update": update});
                let frame = json!({"jsonrpc": "2.0", "method": "session/update", "params": params});
                self.outputs.push_back(Output::ToClient(frame));
            }
            Effect::Ask { key, tool_call, options } => {
                let ask = self.asks_made;
                self.asks_made += 1;
                self.asks.insert(ask, (id.to_owned(), key));
                let options: Vec<Value> = options
                    .into_iter()
                    .map(|it| json!({"optionId": it.id, "name": it.name, "kind": it.kind}))
                    .collect();
                let params = json!({"sessionId": id, "toolCall": tool_call, "options": options});
                let method = "session/request_permission";
                let frame =
                    json!({"jsonrpc": "2.0", "id": ask, "method": method, "params": params});
                self.outputs.push_back(Output::ToClient(frame));
            }
            Effect::Unask { key } => self.unask(|session, it| session == id && *it == key),
            Effect::Write(line) => {
                self.outputs.extend(program.map(|program| Output::Write { program, line }));
            }
            Effect::CloseStdin => {
                self.outputs.extend(program.map(|program| Output::CloseStdin { program }));
            }
            Effect::Native(native) => {
                if session.note.native.as_ref() != Some(&native) {
                    session.note.native = Some(native);
                    memory.remember(id, &session.note);
                }
            }
        }
    }

    /// A turn that is over asks nothing any more.
    fn retract(&mut self, id: &str) {
        self.unask(|session, _| session == id);
    }

    fn unask(&mut self, which: impl Fn(&str, &String) -> bool) {
        let void: Vec<u64> = self
            .asks
            .iter()
            .filter(|(_, (session, key))| which(session, key))
            .map(|(ask, _)| *ask)
            .collect();
        for ask in void {
            self.asks.remove(&ask);
            let params = json!({"requestId": ask});
            let frame = json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": params});
            self.outputs.push_back(Output::ToClient(frame));
        }
    }
}
