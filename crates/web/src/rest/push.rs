//! Web Push for devices: `/api/push`.

use crate::{
    login::DeviceSession,
    push::{EndpointPolicy, PushSubscription},
    rest::{
        RestState,
        error::{ApiError, ErrorBody, ErrorCode},
        extract::JsonBody,
    },
};
use axum::{Extension, Json, extract::State, http::StatusCode};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;

/// The public key with which the daemon signs requests to push services.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PushKey)]
#[schema(example = json!({ "key": "BNcRdreALRFXTkOOUHK1EtK2wtaz5Ry4YfYCA_0QTpQtUbVlUls0VJXg7A8u-Ts1XbjhazAkj7I99e8QcYP7DkM" }))]
pub(crate) struct PushKeyShown {
    /// `applicationServerKey` of `PushManager.subscribe()`.
    key: String,
}

/// Get the public key for push subscriptions
#[utoipa::path(
    get, path = "/api/push/key", tag = "push",
    responses(
        (status = 200, description = "the key", body = PushKeyShown),
        (status = 409, description = "this is a gateway of a fleet, which sends no notifications", body = ErrorBody),
    ),
)]
pub(crate) async fn show_push_key(
    State(state): State<Arc<RestState>>,
) -> Result<Json<PushKeyShown>, ApiError> {
    require_notifications(&state)?;
    let key = state.login.logins.push_key().map_err(|error| {
        tracing::error!(%error, "failed to read the key for Web Push");
        ApiError::new(ErrorCode::InternalError, error.to_string())
    })?;
    Ok(Json(PushKeyShown { key: key.public_key() }))
}

/// A push subscription, as `PushSubscription.toJSON()` of a browser has it.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({ "endpoint": "https://push.example.net/p/JzLQ3raZ", "keys": { "p256dh": "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4", "auth": "BTBZMqHH6r4Tts7J_aSIgg" } }))]
pub(crate) struct SubscriptionBody {
    /// A public `https` address of a push service.
    endpoint: String,
    keys: SubscriptionKeys,
}

/// The keys of a push subscription, in base64url.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct SubscriptionKeys {
    p256dh: String,
    auth: String,
}

/// Send notifications to this device
///
/// One subscription per device: the last one replaces the others. It ends when the device is revoked, or when the
/// push service reports that it has expired.
#[utoipa::path(
    post, path = "/api/push/subscriptions", tag = "push",
    request_body = SubscriptionBody,
    responses(
        (status = 204, description = "the device gets notifications"),
        (status = 400, description = "the subscription is not valid", body = ErrorBody),
        (status = 403, description = "the request does not come from a device", body = ErrorBody),
        (status = 409, description = "this is a gateway of a fleet, which sends no notifications", body = ErrorBody),
        (status = 413, description = "the body is too large", body = ErrorBody),
        (status = 415, description = "the body is not JSON", body = ErrorBody),
    ),
)]
pub(crate) async fn subscribe_device(
    State(state): State<Arc<RestState>>,
    device: Option<Extension<DeviceSession>>,
    JsonBody(body): JsonBody<SubscriptionBody>,
) -> Result<StatusCode, ApiError> {
    require_notifications(&state)?;
    let SubscriptionKeys { p256dh, auth } = body.keys;
    let subscription = PushSubscription { endpoint: body.endpoint, p256dh, auth };
    // A tenant must not make the daemon send requests to this machine.
    let policy = match state.login.tenant {
        None => EndpointPolicy::PublicOrLoopback,
        Some(_) => EndpointPolicy::PublicOnly,
    };
    subscription.check(policy).map_err(|it| ApiError::invalid(it.to_string()))?;
    store_subscription(&state, device, Some(subscription))
}

/// Send no more notifications to this device
#[utoipa::path(
    delete, path = "/api/push/subscriptions", tag = "push",
    responses(
        (status = 204, description = "the device gets no notifications"),
        (status = 403, description = "the request does not come from a device", body = ErrorBody),
    ),
)]
pub(crate) async fn unsubscribe_device(
    State(state): State<Arc<RestState>>,
    device: Option<Extension<DeviceSession>>,
) -> Result<StatusCode, ApiError> {
    store_subscription(&state, device, None)
}

fn store_subscription(
    state: &RestState,
    device: Option<Extension<DeviceSession>>,
    subscription: Option<PushSubscription>,
) -> Result<StatusCode, ApiError> {
    let Some(Extension(device)) = device else {
        let why = "a push subscription belongs to a browser that has logged in, not to a token";
        return Err(ApiError::new(ErrorCode::Forbidden, why));
    };
    state.login.logins.set_subscription(&device.id, subscription).map_err(|error| {
        tracing::error!(%error, "failed to store a push subscription");
        ApiError::new(ErrorCode::InternalError, "failed to store the subscription")
    })?;
    Ok(StatusCode::NO_CONTENT)
}

/// Notifications come from the hub, which a gateway does not have.
fn require_notifications(state: &RestState) -> Result<(), ApiError> {
    if state.agents.is_hosted() {
        let why = "a gateway of a fleet sends no notifications: log in at a host";
        return Err(ApiError::new(ErrorCode::Conflict, why));
    }
    Ok(())
}
