//! Real CLIs through the real daemon, with a model server of ours on loopback: what each of them can
//! do, as the table in `docs/agents.md` says it.
//!
//! A [`Rig`] is one CLI and one way to drive it; a case is one thing a client does with it and gives
//! the cells of the table that it saw. Each pair is a test, and it fails when the table says
//! something else. `JACKFIELD_LIVE=write` writes the table instead.

mod by_name;
mod errors;
mod permission;
mod processes;
mod rig;
mod sandboxed;
mod sdk;
mod stage;
mod stop;
mod table;
mod talk;
mod turn;

use rig::Rig;
use stage::Stage;
use table::Cell;

/// Plays a case with a rig; what was seen is written down and must be what the table says.
fn play(rig: &str, case: fn(&mut Stage) -> Vec<Cell>) {
    let rig = Rig::named(rig);
    let mut stage = Stage::new(rig);
    let cells = case(&mut stage);
    stage.end();
    table::keep(rig.id, &cells);
}

/// One module of tests for each rig, with attributes for all of them and for the one that resumes.
macro_rules! rig {
    ($rig:ident [$(#[$all:meta])*] [$(#[$resume:meta])*]) => {
        mod $rig {
            use super::{errors, permission, play, processes, stop, talk};

            const RIG: &str = stringify!($rig);

            $(#[$all])*
            #[test]
            fn says_once_what_the_model_says() {
                play(RIG, talk::text);
            }

            $(#[$all])*
            #[test]
            fn shows_a_tool_and_what_it_answered() {
                play(RIG, talk::tool);
            }

            $(#[$all])*
            #[test]
            fn remembers_the_turn_before() {
                play(RIG, talk::memory);
            }

            $(#[$resume])*
            #[test]
            fn goes_on_after_the_daemon_was_killed() {
                play(RIG, talk::resume);
            }

            $(#[$all])*
            #[test]
            fn asks_before_it_changes_something() {
                play(RIG, permission::ask);
            }

            $(#[$all])*
            #[test]
            fn stops_when_it_is_told_to() {
                play(RIG, stop::cancel);
            }

            $(#[$all])*
            #[test]
            fn says_what_the_provider_refused() {
                play(RIG, errors::quick);
            }

            $(#[$all])*
            #[test]
            fn leaves_no_process() {
                play(RIG, processes::gone);
            }
        }
    };
}

macro_rules! rigs {
    ($attributes:tt $($rig:ident)*) => { $( rig! { $rig $attributes $attributes } )* };
}

// One adapter that speaks to a program turn by turn, one that speaks to a server, and one program that speaks ACP.
rigs! { [] claude codex_app_server goose }

rigs! {
    [#[ignore = "nightly: recorded output of the same version is tested with every change"]]
    claude_agent_acp codex_acp codex_exec gemini_acp gemini_json
}

// They need `scripts/install-agents.sh --all`, and some of them look for the outside world whatever
// they are told.
rigs! {
    [#[ignore = "nightly: the agent is large, and installed for the nightly tier only"]]
    cline copilot hermes kimi opencode pi qwen vibe
}

#[ignore = "nightly: gemini retries for minutes"]
#[test]
fn gemini_acp_says_in_the_end_what_the_provider_refused() {
    play("gemini_acp", errors::slow);
}

#[ignore = "nightly: gemini retries for minutes"]
#[test]
fn gemini_json_says_in_the_end_what_the_provider_refused() {
    play("gemini_json", errors::slow);
}
