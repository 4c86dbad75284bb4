//! The hub, driven by seeds and by Markdown: one test binary for both.

mod bus_sim;
mod gateway_sim;
mod seeds;
mod sim;
mod spec;
