//! The fake model server answers as its manual says, over real sockets, in four dialects.
//!
//! (The modules are marked as tests so that the lints know them for what they are.)

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
