//! The fake agent does what its manual says, over real pipes.
//!
//! (The modules are marked as tests so that the lints know them for what they are.)

#[cfg(test)]
mod client;
#[cfg(test)]
mod noise;
#[cfg(test)]
mod processes;
#[cfg(test)]
mod sessions;
#[cfg(test)]
mod turns;
