//! Credentials that the proxy adds to requests, so that the process never has them.

use crate::forwarded_headers::is_hop_by_hop;
use crate::target_host::{HostError, HostPort, TargetHost};
use hyper::HeaderMap;
use hyper::header::{self, HeaderName, HeaderValue};
use rustls_platform_verifier::BuilderVerifierExt as _;
use std::sync::Arc;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

const HTTP_PORT: u16 = 80;
const HTTPS_PORT: u16 = 443;

/// A header for all plain HTTP requests to one host. The request is sent over TLS. It has no `Debug`, because
/// the value is secret.
pub struct HeaderInjection {
    target: HostPort,
    header: HeaderName,
    value: HeaderValue,
}

/// Why a [`HeaderInjection`] is invalid. The message does not contain the value.
#[derive(Debug, thiserror::Error)]
pub enum InjectionError {
    #[error("failed to read the host `{host}` of a header")]
    Host { host: String, source: HostError },
    #[error("`{host}` is an address; a header is added to requests to a name only")]
    Address { host: String },
    #[error("`{header}` is no header that can be added to a request to `{host}`")]
    Header { host: String, header: String },
    #[error(
        "the value of the header `{header}` for `{host}` contains a character that HTTP forbids"
    )]
    Value { host: String, header: String },
}

impl HeaderInjection {
    /// `host` is a name with an optional port; the default is 443.
    pub fn new(host: &str, header: &str, value: &str) -> Result<HeaderInjection, InjectionError> {
        let (host, header) = (host.to_owned(), header.to_owned());
        let target = match HostPort::parse(&host, Some(HTTPS_PORT)) {
            Ok(target) => target,
            Err(source) => return Err(InjectionError::Host { host, source }),
        };
        if matches!(target.host, TargetHost::Address(_)) {
            return Err(InjectionError::Address { host });
        }
        let name = HeaderName::from_bytes(header.as_bytes()).ok();
        let Some(name) = name.filter(is_credential_header) else {
            return Err(InjectionError::Header { host, header });
        };
        let Ok(mut value) = HeaderValue::from_str(value) else {
            return Err(InjectionError::Value { host, header });
        };
        value.set_sensitive(true);
        Ok(HeaderInjection { target, header: name, value })
    }
}

/// Whether the header does not change where a message ends or where it is sent.
fn is_credential_header(name: &HeaderName) -> bool {
    !is_hop_by_hop(name) && ![header::HOST, header::CONTENT_LENGTH, header::EXPECT].contains(name)
}

/// Headers to add, and how the hosts that get them are recognized.
pub struct CredentialInjection {
    pub headers: Vec<HeaderInjection>,
    pub tls: Arc<ClientConfig>,
}

impl CredentialInjection {
    /// The destination of a plain HTTP request that gets headers: the request names port 80, or the port
    /// that is used with TLS.
    pub(crate) fn secure_target(&self, requested: &HostPort) -> Option<&HostPort> {
        self.headers
            .iter()
            .map(|it| &it.target)
            .find(|it| it.host == requested.host && [it.port, HTTP_PORT].contains(&requested.port))
    }

    /// Replaces the headers that the process may have sent.
    pub(crate) fn add_headers(&self, target: &HostPort, headers: &mut HeaderMap) {
        for injection in self.headers.iter().filter(|it| it.target == *target) {
            headers.insert(injection.header.clone(), injection.value.clone());
        }
    }
}

/// Trusts what this machine trusts, like all other HTTPS clients of the daemon.
pub fn system_tls_config() -> Result<Arc<ClientConfig>, rustls::Error> {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_platform_verifier()?
        .with_no_client_auth();
    Ok(with_http_1(config))
}

/// Trusts these certificates only.
pub fn tls_config_with_roots(roots: RootCertStore) -> Result<Arc<ClientConfig>, rustls::Error> {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(with_http_1(config))
}

fn with_http_1(mut config: ClientConfig) -> Arc<ClientConfig> {
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Arc::new(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(host: &str, header: &str, value: &str) -> String {
        HeaderInjection::new(host, header, value)
            .err()
            .map_or_else(String::new, |it| it.to_string())
    }

    #[test]
    fn invalid_injection_is_an_error_without_the_value() {
        assert_eq!(error("api.example.com", "authorization", "Bearer 1"), "");
        assert_eq!(error("api.example.com:8443", "X-Api-Key", "1"), "");
        let address = "`127.0.0.1` is an address; a header is added to requests to a name only";
        assert_eq!(error("127.0.0.1", "x-api-key", "1"), address);
        for header in ["host", "Content-Length", "transfer-encoding", "connection", "a b", ""] {
            let expected = "no header that can be added";
            assert!(error("a.example", header, "1").contains(expected), "{header}");
        }
        let value = error("a.example", "authorization", "secret\r\nx: y");
        assert!(value.contains("forbids") && !value.contains("secret"), "{value}");
        assert!(error("*.example.com", "authorization", "1").contains("failed to read the host"));
    }

    #[test]
    fn request_is_secured_on_port_80_and_on_the_port_of_the_injection() {
        let injection = CredentialInjection {
            headers: vec![HeaderInjection::new("a.example:8443", "x-api-key", "1").unwrap()],
            tls: tls_config_with_roots(RootCertStore::empty()).unwrap(),
        };
        for (requested, is_secured) in [
            ("a.example:80", true),
            ("a.example:8443", true),
            ("a.example:8080", false),
            ("b.a.example:80", false),
        ] {
            let target = HostPort::parse(requested, None).unwrap();
            let expected = HostPort::parse("a.example:8443", None).unwrap();
            assert_eq!(injection.secure_target(&target), is_secured.then_some(&expected));
        }
    }
}
