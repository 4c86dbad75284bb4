//! The response headers of the console. Agent output is hostile: even if a part of it became
//! markup, no script of it runs, and nothing is loaded from or sent to another server.

use axum::http::{HeaderMap, HeaderName, HeaderValue};

/// What a page of the console may load and do. `jackfield` is the one Trusted Types policy of the
/// application, `dompurify` that of the sanitizer.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     img-src 'self' data: blob:; connect-src 'self'; font-src 'self'; manifest-src 'self'; \
     worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
     require-trusted-types-for 'script'; trusted-types jackfield dompurify";

/// The console uses none of these; copying text and notifications need no entry.
const PERMISSIONS_POLICY: &str = "accelerometer=(), autoplay=(), camera=(), display-capture=(), \
     geolocation=(), gyroscope=(), magnetometer=(), microphone=(), midi=(), payment=(), usb=()";

/// The headers of every response below the path of the console.
const PAGE_HEADERS: [(&str, &str); 7] = [
    ("content-security-policy", CONTENT_SECURITY_POLICY),
    ("permissions-policy", PERMISSIONS_POLICY),
    ("referrer-policy", "no-referrer"),
    // For browsers that do not know `frame-ancestors`.
    ("x-frame-options", "DENY"),
    ("x-content-type-options", "nosniff"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
];

pub(super) fn add_page_headers(headers: &mut HeaderMap) {
    for (name, value) in PAGE_HEADERS {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
}
