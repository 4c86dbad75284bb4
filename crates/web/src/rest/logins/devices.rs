//! The browsers that have logged in: `/api/devices`.

use super::storage_error;
use crate::{
    login::{DEVICE_NAME_CHARS_MAX, DeviceRecord, DeviceSession, is_device_name},
    rest::{
        RestState,
        error::{ApiError, ErrorBody},
        extract::{JsonBody, PathParams},
    },
};
use axum::{Extension, Json, extract::State, http::StatusCode};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;

/// A browser that has logged in.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({ "id": "d-7f3a01c2d9", "name": "Firefox on Linux", "tenant": null, "createdAt": 1_700_000_000_000_u64, "lastSeenAt": 1_700_003_600_000_u64, "current": true }))]
#[schema(as = Device)]
pub(crate) struct DeviceShown {
    id: String,
    name: String,
    /// The tenant of the device; `null` for the operator.
    tenant: Option<String>,
    /// In Unix milliseconds.
    created_at: u64,
    /// In Unix milliseconds, precise to an hour.
    last_seen_at: u64,
    /// Whether the request comes from this device.
    current: bool,
}

/// The devices.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeviceList {
    /// The last used first.
    devices: Vec<DeviceShown>,
}

/// The new name of a device.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "name": "Phone" }))]
pub(crate) struct DeviceNameBody {
    /// At most 64 visible characters.
    name: String,
}

type CurrentDevice = Option<Extension<DeviceSession>>;

impl DeviceShown {
    fn new(device: DeviceRecord, current: &CurrentDevice) -> DeviceShown {
        let tenant = device.tenant().map(str::to_owned);
        let current = current.as_ref().is_some_and(|it| it.id == device.id);
        let DeviceRecord { id, name, created_at, last_seen_at, .. } = device;
        DeviceShown { id, name, tenant, created_at, last_seen_at, current }
    }
}

/// List the devices
///
/// The operator gets those of all tenants, a tenant its own.
#[utoipa::path(
    get, path = "/api/devices", tag = "logins",
    responses((status = 200, description = "the devices", body = DeviceList)),
)]
pub(crate) async fn list_devices(
    State(state): State<Arc<RestState>>,
    current: CurrentDevice,
) -> Json<DeviceList> {
    let devices = visible_devices(&state).map(|it| DeviceShown::new(it, &current)).collect();
    Json(DeviceList { devices })
}

/// Rename a device
#[utoipa::path(
    patch, path = "/api/devices/{deviceId}", tag = "logins",
    params(("deviceId" = String, Path, description = "the id of the device")),
    request_body = DeviceNameBody,
    responses(
        (status = 200, description = "the device", body = DeviceShown),
        (status = 400, description = "the name is empty, too long or not visible", body = ErrorBody),
        (status = 404, description = "there is no such device", body = ErrorBody),
        (status = 413, description = "the body is too large", body = ErrorBody),
        (status = 415, description = "the body is not JSON", body = ErrorBody),
    ),
)]
pub(crate) async fn rename_device(
    State(state): State<Arc<RestState>>,
    current: CurrentDevice,
    PathParams(id): PathParams<String>,
    JsonBody(body): JsonBody<DeviceNameBody>,
) -> Result<Json<DeviceShown>, ApiError> {
    require_visible(&state, &id)?;
    if !is_device_name(&body.name) {
        let message = format!("a name has 1 to {DEVICE_NAME_CHARS_MAX} visible characters");
        return Err(ApiError::invalid(message));
    }
    let renamed = state.login.logins.rename_device(&id, &body.name);
    let renamed = renamed.map_err(|it| storage_error(&it))?.ok_or_else(|| unknown_device(&id))?;
    Ok(Json(DeviceShown::new(renamed, &current)))
}

/// Revoke a device
///
/// Its cookie is no longer accepted, and its open streams end within a second.
#[utoipa::path(
    delete, path = "/api/devices/{deviceId}", tag = "logins",
    params(("deviceId" = String, Path, description = "the id of the device")),
    responses(
        (status = 204, description = "the device is revoked"),
        (status = 404, description = "there is no such device", body = ErrorBody),
    ),
)]
pub(crate) async fn revoke_device(
    State(state): State<Arc<RestState>>,
    PathParams(id): PathParams<String>,
) -> Result<StatusCode, ApiError> {
    require_visible(&state, &id)?;
    let revoked = state.login.logins.revoke_device(&id).map_err(|it| storage_error(&it))?;
    revoked.map(|_| StatusCode::NO_CONTENT).ok_or_else(|| unknown_device(&id))
}

/// The devices that the client may see and change.
fn visible_devices(state: &RestState) -> impl Iterator<Item = DeviceRecord> {
    let own = state.login.tenant.clone();
    let is_visible = move |it: &DeviceRecord| own.is_none() || it.tenant() == own.as_deref();
    state.login.logins.devices().into_iter().filter(is_visible)
}

fn require_visible(state: &RestState, id: &str) -> Result<(), ApiError> {
    let is_visible = visible_devices(state).any(|it| it.id == id);
    if is_visible { Ok(()) } else { Err(unknown_device(id)) }
}

fn unknown_device(id: &str) -> ApiError {
    ApiError::not_found(format!("no device `{id}`"))
}
