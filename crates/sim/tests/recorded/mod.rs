//! Conversations with real agents, recorded, and replayed against the hub: what they do that nobody
//! would expect of the protocol is a test here. `docs/recorded-agents.md` says which.

mod every;
mod replay;
mod surprises;
mod tape;
mod wake;
mod world;
