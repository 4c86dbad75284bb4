//! Simulated worlds around the hub, the bus and the gateway, driven by seeds, and scenarios in Markdown.
//!
//! Read in this order: [`worlds`] (what the three have in common, and how one seed is run), [`hub_sim`], [`bus_sim`],
//! [`gateway_sim`], [`scenario`], [`planted_bugs`] (bugs that the simulators must find).

pub mod bus_sim;
pub mod gateway_sim;
pub mod hub_sim;
pub mod planted_bugs;
pub mod scenario;
pub mod worlds;
