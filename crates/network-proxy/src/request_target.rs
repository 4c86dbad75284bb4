//! Where a request wants to go, if everything in it says the same.

use crate::request_failure::RequestFailure;
use crate::target_host::{HostError, HostPort, TargetHost, split_port};
use hyper::Request;
use hyper::header;

const HTTP_PORT: u16 = 80;

/// An error with the text of the host, if the host is the problem.
pub(crate) enum TargetError {
    Malformed(&'static str),
    InvalidHost { text: String, error: HostError },
}

impl From<TargetError> for RequestFailure {
    fn from(error: TargetError) -> RequestFailure {
        match error {
            TargetError::Malformed(problem) => RequestFailure::Malformed(problem),
            TargetError::InvalidHost { error, .. } => RequestFailure::InvalidHost(error),
        }
    }
}

/// The destination of a `CONNECT` request.
pub(crate) fn tunnel_target<B>(request: &Request<B>) -> Result<HostPort, TargetError> {
    let Some(authority) = request.uri().authority() else {
        return Err(TargetError::Malformed("CONNECT needs a host and a port"));
    };
    let target = HostPort::parse(authority.as_str(), None)
        .map_err(|error| TargetError::InvalidHost { text: authority.to_string(), error })?;
    let headers = request.headers();
    if headers.contains_key(header::CONTENT_LENGTH)
        || headers.contains_key(header::TRANSFER_ENCODING)
    {
        return Err(TargetError::Malformed("CONNECT has no body"));
    }
    match host_header(request)? {
        // Many clients leave the port out of this header.
        Some((host, port)) if host != target.host || port.is_some_and(|it| it != target.port) => {
            Err(TargetError::Malformed("the header `Host` names another host than CONNECT"))
        }
        _ => Ok(target),
    }
}

/// The destination of any other request. The request line contains a complete URL.
pub(crate) fn plain_target<B>(request: &Request<B>) -> Result<HostPort, TargetError> {
    let uri = request.uri();
    let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
        return Err(TargetError::Malformed(
            "this is a proxy, which needs a complete URL in the request line",
        ));
    };
    if scheme != "http" {
        return Err(TargetError::Malformed(
            "only http:// URLs are forwarded; use CONNECT for others",
        ));
    }
    let target = HostPort::parse(authority.as_str(), Some(HTTP_PORT))
        .map_err(|error| TargetError::InvalidHost { text: authority.to_string(), error })?;
    match host_header(request)? {
        Some((host, port)) if host == target.host && port.unwrap_or(HTTP_PORT) == target.port => {
            Ok(target)
        }
        Some(_) => Err(TargetError::Malformed("the header `Host` names another host than the URL")),
        None => Err(TargetError::Malformed("the header `Host` is missing")),
    }
}

fn host_header<B>(request: &Request<B>) -> Result<Option<(TargetHost, Option<u16>)>, TargetError> {
    let mut values = request.headers().get_all(header::HOST).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(TargetError::Malformed("the header `Host` is repeated"));
    }
    let text = String::from_utf8_lossy(value.as_bytes()).into_owned();
    match split_port(&text) {
        Ok(host) => Ok(Some(host)),
        Err(error) => Err(TargetError::InvalidHost { text, error }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::Method;

    fn target(method: &Method, uri: &str, headers: &[(&str, &str)]) -> Result<String, String> {
        let mut request = Request::builder().method(method.clone()).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(()).unwrap();
        let target = if *method == Method::CONNECT {
            tunnel_target(&request)
        } else {
            plain_target(&request)
        };
        target.map(|it| it.to_string()).map_err(|error| match error {
            TargetError::Malformed(problem) => problem.to_owned(),
            TargetError::InvalidHost { text, error } => format!("{text}: {error}"),
        })
    }

    #[test]
    fn connect_needs_one_destination_and_no_body() {
        let connect = |uri, headers: &[_]| target(&Method::CONNECT, uri, headers);
        let expected = Ok("a.example:443".to_owned());
        assert_eq!(connect("A.example:443", &[]), expected);
        assert_eq!(connect("a.example.:443", &[("host", "a.example")]), expected);
        assert_eq!(connect("a.example:443", &[("host", "A.EXAMPLE:443")]), expected);
        for (uri, headers) in [
            ("a.example", &[][..]),
            ("a.example:443", &[("host", "b.example:443")]),
            ("a.example:443", &[("host", "a.example:80")]),
            ("a.example:443", &[("host", "a.example"), ("host", "a.example")]),
            ("a.example:443", &[("content-length", "0")]),
            ("a.example:443", &[("transfer-encoding", "chunked")]),
            ("user@a.example:443", &[]),
            ("127.1:443", &[]),
        ] {
            assert!(connect(uri, headers).is_err(), "{uri} {headers:?}");
        }
    }

    #[test]
    fn url_and_host_header_must_agree() {
        let get = |uri, headers: &[_]| target(&Method::GET, uri, headers);
        let expected = Ok("a.example:80".to_owned());
        assert_eq!(get("http://A.example/x?y", &[("host", "a.example")]), expected);
        assert_eq!(get("http://a.example:80/", &[("host", "a.example.")]), expected);
        assert_eq!(
            get("http://[::1]:8080/", &[("host", "[0::1]:8080")]),
            Ok("[::1]:8080".to_owned())
        );
        for (uri, headers) in [
            ("/x", &[("host", "a.example")][..]),
            ("https://a.example/", &[("host", "a.example")]),
            ("ftp://a.example/", &[("host", "a.example")]),
            ("http://a.example/", &[]),
            ("http://a.example/", &[("host", "b.example")]),
            ("http://a.example/", &[("host", "a.example:8080")]),
            ("http://a.example:8080/", &[("host", "a.example")]),
            ("http://a.example/", &[("host", "a.example"), ("host", "b.example")]),
            ("http://a.example/", &[("host", "")]),
            ("http://b.example@a.example/", &[("host", "a.example")]),
            ("http://2130706433/", &[("host", "2130706433")]),
        ] {
            assert!(get(uri, headers).is_err(), "{uri} {headers:?}");
        }
    }
}
