//! What `bwrap` enforces.

mod files;
mod network;
mod processes;
