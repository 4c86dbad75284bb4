//! What the bus carries: files of others, floods, and hours of everything at once.

mod bus;
mod drop_in;
mod fairness;
mod soak;
