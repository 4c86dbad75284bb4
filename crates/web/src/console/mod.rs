//! The web console: the files of its single-page application, embedded in the binary.
//!
//! `scripts/build-console.sh` builds the files from `console/` and writes them, compressed, to
//! `crates/web/console` and their list to `asset_table`. `headers` has the response headers that
//! restrict what a page of the console may load and do.
//!
//! **Invariant:** the files are public and contain no data of any session.

mod asset_table;
mod headers;

use self::asset_table::ASSETS;
use self::headers::add_page_headers;
use crate::http::{CONSOLE_PATH, StorableResponse};
use axum::Router;
use axum::extract::Path;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::get;

/// One embedded file.
#[derive(Debug)]
struct ConsoleAsset {
    /// Below [`CONSOLE_PATH`].
    path: &'static str,
    content_type: &'static str,
    /// Whether the name contains a hash of the content, so that a cache never has to ask again.
    is_immutable: bool,
    gzip: &'static [u8],
}

/// The routes of the console, and the redirect of `/` to it.
pub fn console_routes() -> Router {
    let to_console = || get(async || Redirect::temporary(CONSOLE_PATH));
    Router::new()
        .route("/", to_console())
        .route("/console", to_console())
        .route("/console/", get(async |headers: HeaderMap| serve_path("", &headers)))
        .route(
            "/console/{*path}",
            get(async |Path(path): Path<String>, headers: HeaderMap| serve_path(&path, &headers)),
        )
}

/// Whether a path is a page of the application, which `index.html` draws. Files have a dot in their names, and so have
/// the ids of sessions that belong to a tenant.
fn is_page(path: &str) -> bool {
    path.starts_with("sessions/") || !path.contains('.')
}

/// Serves a file or a page.
fn serve_path(path: &str, request: &HeaderMap) -> Response {
    let path = if is_page(path) { "index.html" } else { path };
    let mut response = match ASSETS.iter().find(|it| it.path == path) {
        Some(_) if !accepts_gzip(request) => {
            let why = "the console is stored as gzip only: send `Accept-Encoding: gzip`\n";
            (StatusCode::NOT_ACCEPTABLE, why).into_response()
        }
        Some(asset) => asset.to_response(),
        None => (StatusCode::NOT_FOUND, "the console has no such file\n").into_response(),
    };
    add_page_headers(response.headers_mut());
    response
}

impl ConsoleAsset {
    fn to_response(&self) -> Response {
        let caching =
            if self.is_immutable { "public, max-age=31536000, immutable" } else { "no-cache" };
        let headers = [
            (header::CONTENT_TYPE, self.content_type),
            (header::CONTENT_ENCODING, "gzip"),
            (header::CACHE_CONTROL, caching),
            (header::VARY, "accept-encoding"),
        ];
        let headers = headers.map(|(name, value)| (name, HeaderValue::from_static(value)));
        let mut response = (HeaderMap::from_iter(headers), self.gzip).into_response();
        response.extensions_mut().insert(StorableResponse);
        response
    }
}

/// Whether a client accepts `gzip`, which also a client without the header does.
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(header::ACCEPT_ENCODING).iter().peekable();
    if values.peek().is_none() {
        return true;
    }
    let codings = values.filter_map(|it| it.to_str().ok()).flat_map(|it| it.split(','));
    let mut accepted = codings.filter_map(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let name = parts.next()?.to_ascii_lowercase();
        let weight = parts.find_map(|it| it.strip_prefix("q=")).map_or(Ok(1.0), str::parse::<f32>);
        Some((name, weight.is_ok_and(|it| 0.0 < it)))
    });
    accepted.any(|(name, is_accepted)| is_accepted && ["gzip", "x-gzip", "*"].contains(&&*name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepting(coding: Option<&str>) -> HeaderMap {
        let value = coding.map(|it| (header::ACCEPT_ENCODING, HeaderValue::from_str(it).unwrap()));
        value.into_iter().collect()
    }

    #[test]
    fn page_paths_have_the_application_and_unknown_files_are_not_found() {
        let status = |path: &str| serve_path(path, &accepting(None)).status();
        for page in ["", "inbox", "sessions/s-1/changes", "sessions/acme.s-1", "login"] {
            let response = serve_path(page, &accepting(Some("gzip, br")));
            assert_eq!(response.status(), 200, "{page}");
            assert_eq!(response.headers()[header::CONTENT_TYPE], "text/html; charset=utf-8");
            assert_eq!(response.headers()[header::CONTENT_ENCODING], "gzip");
            assert_eq!(response.headers()[header::CACHE_CONTROL], "no-cache");
        }
        for missing in ["missing.js", "../index.html", "assets/../index.html", "index.html/x"] {
            assert_eq!(status(missing), 404, "{missing}");
        }
    }

    #[test]
    fn client_that_refuses_gzip_gets_no_unreadable_bytes() {
        for refused in ["identity", "br", "gzip;q=0", "br, gzip; q=0.0", ""] {
            let response = serve_path("", &accepting(Some(refused)));
            assert_eq!(response.status(), 406, "{refused}");
        }
        for accepted in [None, Some("gzip"), Some("br;q=1, GZIP;q=0.5"), Some("*")] {
            assert_eq!(serve_path("", &accepting(accepted)).status(), 200, "{accepted:?}");
        }
    }

    #[test]
    fn every_file_is_a_gzip_file_under_a_safe_path_and_all_together_are_small() {
        for asset in ASSETS {
            assert!(asset.gzip.starts_with(&[0x1f, 0x8b]), "{}", asset.path);
            assert!(asset.path.contains('.') && !asset.path.contains(".."), "{}", asset.path);
            assert!(HeaderValue::from_str(asset.content_type).is_ok(), "{}", asset.path);
        }
        let bytes: usize = ASSETS.iter().map(|it| it.gzip.len()).sum();
        assert!(bytes <= 1 << 20, "the files add {bytes} bytes to the binary");
    }
}
