//! The fake agent behaves as its manual states, over real pipes.
//!
//! (The modules are marked as tests for the lints.)

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
