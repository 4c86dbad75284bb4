//! Deliberate mistakes in the state machines. `cargo xtask plant` makes one at a time and checks that the simulator
//! finds it.
//!
//! A hook is an ordinary condition, so it is compiled and renamed with the code around it:
//!
//! ```text
//! if is_full && !is_planted("ignore-slow-client") {
//! ```
//!
//! Only a build with `--cfg planted_bugs` can make a mistake. In every other build the condition is a constant.

#[cfg(planted_bugs)]
use std::cell::Cell;

#[cfg(planted_bugs)]
thread_local! {
    static PLANTED: Cell<&'static str> = const { Cell::new("") };
}

/// Whether the mistake with this name is made on this thread.
#[cfg(planted_bugs)]
pub fn is_planted(name: &str) -> bool {
    PLANTED.get() == name
}

/// Whether the mistake with this name is made.
#[cfg(not(planted_bugs))]
#[inline]
#[must_use]
pub const fn is_planted(_name: &str) -> bool {
    false
}

/// Makes the mistake with this name on this thread until the next call; with an empty name, makes none.
#[cfg(planted_bugs)]
pub fn plant_bug(name: &'static str) {
    PLANTED.set(name);
}
