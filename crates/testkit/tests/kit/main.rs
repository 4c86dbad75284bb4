//! The hub, driven by seeds and by Markdown: one test binary for both.

mod sim;
mod spec;
