//! The terminal interface: a board of all sessions, the transcript of one session, and open requests to the user.
//!
//! Read in this order. `app` is the core: `app::AppState` changes only in `update`, which takes an input (a key,
//! a message of the hub, time) and returns effects. `board`, `session` and `inbox` are its parts, each with its
//! own state; `page` has what they share. `transcript` folds the events of a log into items, `text` turns foreign
//! text into safe, styled lines, `editor` is the input field, `keymap` names the actions and their keys. `view`
//! draws the state. `hub` has the messages that are exchanged with the hub. All of this is pure: no I/O, no clock,
//! no randomness.
//! `terminal` is the rest: it reads keys, executes effects, and restores the terminal when it ends.
//!
//! **Invariant:** text of agents reaches the terminal only through `text`, which removes control characters.
//!
//! **Invariant:** a request to the user is never answered by a key that was typed before the request was drawn.

mod app;
mod board;
#[cfg(test)]
mod demo_settings;
mod editor;
mod hub;
mod inbox;
mod keymap;
mod page;
#[cfg(test)]
mod planted_tests;
mod session;
mod terminal;
#[cfg(test)]
mod test_data;
mod text;
mod transcript;
mod view;

pub use hub::{AgentEntry, AgentOverview, OverviewLine};
pub use keymap::{EditingKeys, KeyBindingError, check_key_bindings};
pub use terminal::{DaemonAccess, DaemonStart, TuiEnd, TuiError, TuiOptions, run_tui};
