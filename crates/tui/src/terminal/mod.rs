//! The real terminal and the connection to the hub: the only part with I/O.
//!
//! `run` is the loop. `hub_link` sends requests and receives updates, `screen` sets and resets the modes of the
//! terminal, `frame_painter` writes frames when `pacing` says so, `handover` gives the terminal to other programs; the
//! other files each execute one effect.

mod clipboard;
mod external_editor;
mod file_search;
mod frame_painter;
mod handover;
mod hub_link;
mod pacing;
mod run;
mod screen;
mod screen_backend;
mod shared_writer;
mod signals;
mod syntax_loads;

pub use hub_link::{DaemonAccess, DaemonStart};
pub use run::{TuiEnd, TuiError, TuiOptions, run_tui};
