//! The fake model server behaves as its manual states, over real sockets, in four dialects.
//!
//! (The modules are marked as tests for the lints.)

#[cfg(test)]
mod chat;
#[cfg(test)]
mod gemini;
#[cfg(test)]
mod http;
#[cfg(test)]
mod messages;
#[cfg(test)]
mod responses;
#[cfg(test)]
mod server;
