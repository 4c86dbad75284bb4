//! What the clients share: everything that a client works with, without the other clients.

use super::{
    config::GatewayConfig, context::GatewayContext, host_connection_id::HostConnectionOwners,
    host_directory::HostDirectory, log_readings::LogReadings, owner_searches::OwnerSearches,
    pending_merges::PendingMerges, placed_sessions::PlacedSessions, retained_bytes::RetainedBytes,
    tenant::ClientCounts,
};
use jackfield_hub::Time;
use jackfield_hub_client::RequestKeys;

#[derive(Debug)]
pub(super) struct GatewayParts {
    pub(super) cx: GatewayContext,
    pub(super) hosts: HostDirectory,
    pub(super) placed: PlacedSessions,
    pub(super) host_conn_owners: HostConnectionOwners,
    pub(super) searches: OwnerSearches,
    pub(super) merges: PendingMerges,
    pub(super) log_readings: LogReadings,
    pub(super) retained: RetainedBytes,
    pub(super) client_counts: ClientCounts,
    pub(super) prompt_keys: RequestKeys,
}

impl GatewayParts {
    pub(super) fn new(config: GatewayConfig, now: Time) -> GatewayParts {
        GatewayParts {
            prompt_keys: RequestKeys::new(config.seed),
            cx: GatewayContext::new(config, now),
            hosts: HostDirectory::default(),
            placed: PlacedSessions::default(),
            host_conn_owners: HostConnectionOwners::default(),
            searches: OwnerSearches::default(),
            merges: PendingMerges::default(),
            log_readings: LogReadings::default(),
            retained: RetainedBytes::default(),
            client_counts: ClientCounts::default(),
        }
    }
}
