//! Recorded conversations with real agents, replayed against the hub. Each surprising behavior has a test;
//! `docs/recorded-agents.md` lists them.

mod every;
mod recording;
mod replay;
mod restore;
mod surprises;
mod world;
