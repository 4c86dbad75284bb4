//! Simulation worlds, scenarios and recordings.

mod bus_sim;
mod gateway_sim;
mod hub_sim;
mod planted_bugs;
mod recorded;
mod scenario;
mod seeds;
