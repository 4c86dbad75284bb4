//! Unit tests of the gateway state machine: `routing` of frames, `placement` of new sessions, `loss`
//! of hosts and released sessions, `unhosted` sessions without an eligible host, `merge` requests to
//! all hosts, `flow` control and limits, `tenants` visibility and quotas, `client_actions` auditing.

mod client_actions;
mod fixture;
mod flow;
mod loss;
mod merge;
mod placement;
mod routing;
mod tenants;
mod unhosted;

use super::*;
use fixture::{A, B, GatewayFixture, error_code, host, request, update};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
