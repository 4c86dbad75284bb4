//! The headers of every response: what caches may store, and what browsers may do with it.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::Response;

/// An extension of responses that caches may store as their headers say: files of the console.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StorableResponse;

/// The headers of responses that are not pages. No page may embed one, and a browser that opens
/// one runs nothing in it.
const DATA_HEADERS: [(&str, &str); 5] = [
    ("content-security-policy", "default-src 'none'; frame-ancestors 'none'; sandbox"),
    ("referrer-policy", "no-referrer"),
    ("x-frame-options", "DENY"),
    ("x-content-type-options", "nosniff"),
    ("cross-origin-resource-policy", "same-origin"),
];

/// Forbids what the route of a response did not permit.
pub(super) fn restrict_use(response: &mut Response) {
    let is_storable = response.extensions_mut().remove::<StorableResponse>().is_some();
    let headers = response.headers_mut();
    if !is_storable {
        forbid_storing(headers);
    }
    if !headers.contains_key(header::CONTENT_SECURITY_POLICY) {
        for (name, value) in DATA_HEADERS {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
    }
}

/// Forbids caches to store the response, in addition to other cache headers of its route.
fn forbid_storing(headers: &mut HeaderMap) {
    let forbids_storing = |it: &HeaderValue| it.to_str().is_ok_and(|it| it.contains("no-store"));
    if !headers.get(header::CACHE_CONTROL).is_some_and(forbids_storing) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
}
