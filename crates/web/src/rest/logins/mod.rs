//! Logging in and out, and who a request comes from: `/api/login-links`, `/api/login`,
//! `/api/logout`, `/api/me`; `devices` has the list of devices.

mod devices;

pub(crate) use devices::*;

use crate::{
    http::PeerAddress,
    login::{self, DeviceLogins, DeviceSession, LoginOwner, LoginRefusal},
    rest::{
        RestState,
        error::{ApiError, ErrorBody, ErrorCode},
        extract::JsonBody,
    },
};
use axum::{
    Extension, Json,
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{AppendHeaders, IntoResponse, Response},
};
use serde::{Deserialize, Serialize};
use std::{io, sync::Arc};
use utoipa::ToSchema;

/// The body of a login: a code and the name of a browser.
pub(crate) const LOGIN_BODY_BYTES_MAX: usize = 4 << 10;

/// The logins that the routes of the operator or of a tenant use.
#[derive(Debug, Clone)]
pub struct LoginScope {
    pub logins: Arc<DeviceLogins>,
    /// The tenant of the routes; `None` for the operator.
    pub tenant: Option<String>,
}

/// Who a request comes from.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({ "version": "0.1.0", "tenant": null, "device": { "id": "d-7f3a01c2d9", "name": "Firefox on Linux" }, "fleet": false, "operator": true }))]
#[schema(as = Me)]
pub(crate) struct RequestIdentity {
    /// The version of the daemon.
    version: &'static str,
    /// The tenant of the token or the device.
    tenant: Option<String>,
    /// The device, if the request has its cookie.
    device: Option<MyDevice>,
    /// Whether sessions are placed on the hosts of a fleet.
    fleet: bool,
    /// Whether the client may do what is reserved for the operator.
    operator: bool,
}

/// The device of a request.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MyDevice {
    id: String,
    name: String,
}

impl RequestIdentity {
    fn new(state: &RestState, tenant: Option<String>, device: Option<MyDevice>) -> RequestIdentity {
        let (version, fleet) = (env!("CARGO_PKG_VERSION"), state.agents.is_hosted());
        RequestIdentity { version, operator: tenant.is_none(), tenant, device, fleet }
    }
}

/// Get who a request comes from
#[utoipa::path(
    get, path = "/api/me", tag = "logins",
    responses((status = 200, description = "the tenant and the device of the request", body = RequestIdentity)),
)]
pub(crate) async fn show_me(
    State(state): State<Arc<RestState>>,
    device: Option<Extension<DeviceSession>>,
) -> Json<RequestIdentity> {
    let device = device.map(|Extension(it)| MyDevice { id: it.id, name: it.name });
    Json(RequestIdentity::new(&state, state.login.tenant.clone(), device))
}

/// For whom a login link is.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "tenant": "acme" }))]
pub(crate) struct LoginLinkBody {
    /// The tenant of the device; by default that of the token, or the operator.
    tenant: Option<String>,
}

/// A one-time login link. A browser opens `/console/login#code=CODE` of the daemon.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({ "code": "Xk3vQe1pT7mC0b9yZ2aLrw", "expiresAt": 1_700_000_060_000_u64 }))]
#[schema(as = LoginLink)]
pub(crate) struct LoginLinkCreated {
    code: String,
    /// In Unix milliseconds: 60 s after its creation.
    expires_at: u64,
}

/// Create a login link for a browser
///
/// Only with a token: a browser that has logged in cannot let another one in.
#[utoipa::path(
    post, path = "/api/login-links", tag = "logins",
    request_body = LoginLinkBody,
    responses(
        (status = 201, description = "the link, which can be used once", body = LoginLinkCreated),
        (status = 400, description = "the body is malformed", body = ErrorBody),
        (status = 403, description = "the request has a cookie instead of a token, or names another tenant", body = ErrorBody),
        (status = 413, description = "the body is too large", body = ErrorBody),
        (status = 415, description = "the body is not JSON", body = ErrorBody),
    ),
)]
pub(crate) async fn create_login_link(
    State(state): State<Arc<RestState>>,
    device: Option<Extension<DeviceSession>>,
    JsonBody(body): JsonBody<LoginLinkBody>,
) -> Result<(StatusCode, Json<LoginLinkCreated>), ApiError> {
    let forbidden = |why: &str| ApiError::new(ErrorCode::Forbidden, why);
    if device.is_some() {
        return Err(forbidden("a login link needs a token: run `jackfield console --pair`"));
    }
    let owner = match (&state.login.tenant, body.tenant) {
        (None, None) => LoginOwner::Operator,
        (None, Some(tenant)) => LoginOwner::Tenant(tenant),
        (Some(own), Some(other)) if *own != other => {
            return Err(forbidden("a tenant can create login links only for itself"));
        }
        (Some(own), _) => LoginOwner::Tenant(own.clone()),
    };
    let link = state.login.logins.create_link(owner).map_err(|it| storage_error(&it))?;
    let link = LoginLinkCreated { code: link.code, expires_at: link.expires_at };
    Ok((StatusCode::CREATED, Json(link)))
}

/// A login.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(example = json!({ "code": "Xk3vQe1pT7mC0b9yZ2aLrw", "deviceName": "Firefox on Linux" }))]
pub(crate) struct LoginBody {
    /// The code of the login link.
    code: String,
    /// How the browser is named in the list of devices.
    #[serde(default)]
    device_name: String,
}

/// Log in a browser with a login link
///
/// The response sets an `HttpOnly` cookie, which authenticates requests of pages of this server.
#[utoipa::path(
    post, path = "/api/login", tag = "logins", security(()),
    request_body = LoginBody,
    responses(
        (status = 200, description = "the browser is now a device", body = RequestIdentity),
        (status = 400, description = "the link was used, has expired or never existed", body = ErrorBody),
        (status = 403, description = "the request does not come from a page of this server", body = ErrorBody),
        (status = 409, description = "there are too many devices", body = ErrorBody),
        (status = 413, description = "the body is too large", body = ErrorBody),
        (status = 415, description = "the body is not JSON", body = ErrorBody),
        (status = 429, description = "too many wrong links from this address", body = ErrorBody),
    ),
)]
pub(crate) async fn log_in(
    State(state): State<Arc<RestState>>,
    Extension(PeerAddress(peer)): Extension<PeerAddress>,
    device: Option<Extension<DeviceSession>>,
    headers: HeaderMap,
    JsonBody(body): JsonBody<LoginBody>,
) -> Result<Response, ApiError> {
    let replaced = device.as_ref().map(|Extension(it)| it);
    let logins = &state.login.logins;
    let login = logins.log_in(&body.code, &body.device_name, replaced, peer)?;
    // Browsers send the origin of the page with each POST; behind a proxy only it shows TLS.
    let origin = headers.get(header::ORIGIN).and_then(|it| it.to_str().ok()).unwrap_or_default();
    let is_tls = origin.starts_with("https://");
    let device = login.device;
    let cookie = login::login_cookie(&login.cookie_id, &device.id, &login.secret, is_tls);
    let tenant = device.tenant().map(str::to_owned);
    let me =
        RequestIdentity::new(&state, tenant, Some(MyDevice { id: device.id, name: device.name }));
    Ok(([(header::SET_COOKIE, cookie)], Json(me)).into_response())
}

/// Log out the browser that sends the request
///
/// Its device is removed, and its open streams end within a second.
#[utoipa::path(
    post, path = "/api/logout", tag = "logins",
    responses((status = 204, description = "the browser is no longer a device")),
)]
pub(crate) async fn log_out(
    State(state): State<Arc<RestState>>,
    device: Option<Extension<DeviceSession>>,
) -> Result<impl IntoResponse, ApiError> {
    let logins = &state.login.logins;
    if let Some(Extension(device)) = device {
        logins.revoke_device(&device.id).map_err(|it| storage_error(&it))?;
    }
    let expired: [(_, HeaderValue); 2] =
        login::expired_cookies(&logins.cookie_id()).map(|it| (header::SET_COOKIE, it));
    Ok((StatusCode::NO_CONTENT, AppendHeaders(expired)))
}

impl From<LoginRefusal> for ApiError {
    fn from(refusal: LoginRefusal) -> ApiError {
        let code = match &refusal {
            LoginRefusal::InvalidCode => ErrorCode::BadRequest,
            LoginRefusal::TooManyAttempts => ErrorCode::RateLimited,
            LoginRefusal::TooManyDevices => ErrorCode::Conflict,
            LoginRefusal::Storage(error) => return storage_error(error),
        };
        ApiError::new(code, refusal.to_string())
    }
}

fn storage_error(error: &io::Error) -> ApiError {
    tracing::error!(%error, "failed to store the devices");
    ApiError::new(ErrorCode::InternalError, "failed to store the devices: see the daemon's log")
}
