//! Whether a request comes from a page that we served. A cookie alone does not show it: pages on
//! other ports of the same host are the same site, so browsers add the cookie to their requests.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};

/// Says where a request comes from; scripts cannot set it. Browsers send it to loopback addresses
/// and over TLS.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// A header that pages of other origins cannot set without a preflight, which is refused. For
/// unencrypted addresses on other machines, where browsers do not send `Sec-Fetch-Site`.
const CONSOLE_MARK: HeaderName = HeaderName::from_static("x-jackfield-console");

/// `own` is our own origin, as `scheme://host[:port]`. The origin of the request was accepted before.
pub(super) fn is_from_own_page(headers: &HeaderMap, own: &str) -> bool {
    let is = |value: &HeaderValue, text: &str| {
        value.to_str().is_ok_and(|it| it.eq_ignore_ascii_case(text))
    };
    // Behind a proxy that terminates TLS, the origin differs from ours in its scheme.
    if headers.contains_key(SEC_FETCH_SITE) {
        return headers.get_all(SEC_FETCH_SITE).iter().all(|it| is(it, "same-origin"));
    }
    match headers.get(header::ORIGIN) {
        Some(origin) => is(origin, own),
        None => headers.contains_key(CONSOLE_MARK),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_own(headers: &[(&'static str, &'static str)]) -> bool {
        let header =
            |(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value));
        is_from_own_page(&headers.iter().copied().map(header).collect(), "http://localhost:7456")
    }

    #[test]
    fn only_a_page_of_our_origin_is_our_own() {
        assert!(is_own(&[("sec-fetch-site", "same-origin")]));
        assert!(is_own(&[("origin", "http://localhost:7456")]));
        assert!(is_own(&[("x-jackfield-console", "1")]));
        let proxied = [("sec-fetch-site", "same-origin"), ("origin", "https://localhost:7456")];
        assert!(is_own(&proxied));
        assert!(!is_own(&[]), "a program, or a browser that does not say where it comes from");
        for site in ["same-site", "cross-site", "none", ""] {
            assert!(!is_own(&[("sec-fetch-site", site)]), "{site}");
            let own = ("origin", "http://localhost:7456");
            let mark = ("x-jackfield-console", "1");
            assert!(!is_own(&[("sec-fetch-site", site), own, mark]), "{site}");
        }
        for origin in ["http://localhost:9999", "https://console.example.org", "null"] {
            assert!(!is_own(&[("origin", origin), ("x-jackfield-console", "1")]), "{origin}");
        }
    }
}
