//! The Landlock layer. Each attack works without the sandbox and fails inside it.

mod attack_world;
mod files;
mod processes;
mod profiles;
mod sockets;
