//! Everything that a client works with, without the other clients.

use super::{context::BusContext, pool::Pools, tables::RoutingTables, worker::Workers};

#[derive(Debug)]
pub(super) struct BusParts {
    pub(super) cx: BusContext,
    pub(super) workers: Workers,
    pub(super) pools: Pools,
    pub(super) tables: RoutingTables,
}
