//! NATS servers and networks under test control: they start, fail, recover and are removed.
//!
//! (The modules are marked as tests for the lints.)

#[cfg(test)]
mod cleanup;
#[cfg(test)]
mod cluster;
#[cfg(test)]
mod disk;
#[cfg(test)]
mod network;
#[cfg(test)]
mod raw;
