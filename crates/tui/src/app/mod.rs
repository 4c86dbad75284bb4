//! The core of the interface: `update(state, input)` changes the state and returns effects.

mod help;
mod layout;
mod pages;
mod state;
mod update;

pub(crate) use help::HelpState;
pub(crate) use layout::frame_layout;
pub(crate) use state::AppState;
