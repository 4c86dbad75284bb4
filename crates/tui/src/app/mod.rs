//! The core of the interface: `update(state, input)` changes the state and returns effects.

mod effect;
mod input;
mod state;
mod update;

pub(crate) use effect::AppEffect;
pub(crate) use input::AppInput;
pub(crate) use state::{ActivePage, AppState, ViewOptions};
