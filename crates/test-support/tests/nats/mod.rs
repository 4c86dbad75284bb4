//! NATS servers and networks under test control: they come up, are hurt, come back, and are gone in the
//! end.
//!
//! (The modules are marked as tests so that the lints know them for what they are.)

#[cfg(test)]
mod cluster;
#[cfg(test)]
mod disk;
#[cfg(test)]
mod gone;
#[cfg(test)]
mod network;
#[cfg(test)]
mod raw;
