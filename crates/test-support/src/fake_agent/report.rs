//! The texts by which a turn reports about its session, its process and its client.

use std::{env, process};

use super::{agent::FakeAgent, turn::RunningTurn};

impl FakeAgent {
    pub(crate) fn report_text(&mut self, turn: &RunningTurn, what: &str, about: &str) -> String {
        match what {
            "env" => {
                let value = env::var_os(about).map(|it| it.to_string_lossy().into_owned());
                return value.map_or(format!("{about} is not set"), |it| format!("{about}={it}"));
            }
            "pid" => return format!("pid {}", process::id()),
            "caps" => {
                return format!("caps {}", self.client_capabilities.clone().unwrap_or_default());
            }
            "params" => return format!("params {}", turn.params),
            "complaints" => {
                let list = self.complaints.join(" | ");
                return format!("complaints {}: {list}", self.complaints.len());
            }
            _ => {}
        }
        let Some(session) = self.sessions.open(&turn.session) else {
            return "the session is gone".to_owned();
        };
        match what {
            "count" => format!("count {}", session.prompts.len()),
            "history" => {
                let earlier = session.prompts.split_last().map_or(&[][..], |(_, it)| it);
                format!("history: {}", earlier.join(" | "))
            }
            "mode" => format!("mode {}", session.mode),
            "cwd" => {
                let real = env::current_dir().map(|it| it.display().to_string());
                format!("cwd {} process {}", session.cwd, real.unwrap_or_default())
            }
            "mcp" => format!("mcp {}", session.mcp_servers),
            option => format!("{option} {}", session.option(option)),
        }
    }
}
