//! Connects to the NATS servers of a fleet: addresses, credentials and connection options.
//!
//! A server on the network requires credentials: client certificates, or a user and password in its
//! address. A server on loopback requires none.

mod connection;

use async_nats::{ConnectOptions, ServerAddr};
pub use connection::{NatsConnection, StartError};
use percent_encoding::percent_decode_str;
use std::{
    fs::File,
    io,
    net::IpAddr,
    path::{Path, PathBuf},
    time::Duration,
};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// A server that does not answer three pings counts as lost, even if its connection is open.
const PING_INTERVAL: Duration = Duration::from_secs(2);
/// The longest delay between two attempts to reconnect.
const RECONNECT_DELAY_MAX: Duration = Duration::from_millis(250);

/// File name of the client certificate in a certificate directory.
pub const CERTIFICATE_FILE: &str = "cert.pem";
/// File name of the private key of the client certificate.
pub const KEY_FILE: &str = "key.pem";
/// File name of the certificate authority that signed the certificates of clients and servers.
pub const AUTHORITY_FILE: &str = "ca.pem";

/// Prefix of the inbox subjects of hosts and gateways. Operators may not subscribe below it.
pub const MEMBER_INBOX: &str = "_INBOX_MEMBER";
/// Prefix of the inbox subjects of operator commands.
pub const OPERATOR_INBOX: &str = "_INBOX";

/// The purpose of a connection. It selects the inbox prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientRole {
    /// A host or a gateway.
    Member,
    /// A command that inspects the fleet or drains a host.
    Operator,
}

/// The servers of one fleet. The constructor checks that each is on loopback or has credentials.
#[derive(Clone, PartialEq, Eq)]
pub struct NatsServers {
    urls: Vec<String>,
    role: ClientRole,
    certificates: Option<PathBuf>,
    /// User and password, or a token without a password, from the first address that contains them.
    login: Option<(String, Option<String>)>,
}

#[derive(Debug, thiserror::Error)]
pub enum ServersError {
    #[error(
        "`{url}` is not the address of a NATS server ({reason}): write nats://HOST:PORT or tls://HOST:PORT"
    )]
    Address { url: String, reason: String },
    #[error(
        "the NATS server `{host}` is on the network and no credentials are given: \
         anyone who reaches it could read and change every session. \
         Create certificates with `jackfield fleet certs` and pass them with --fleet-certs DIR, \
         or write tls://USER:PASSWORD@{host}"
    )]
    NoCredentials { host: String },
    #[error("cannot read `{}`: a directory for --fleet-certs has cert.pem, key.pem and ca.pem, as `jackfield fleet certs` writes them", .path.display())]
    Certificates {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

impl NatsServers {
    /// Checks addresses and credentials. Does not connect.
    pub fn new(
        urls: Vec<String>,
        certificates: Option<PathBuf>,
        role: ClientRole,
    ) -> Result<NatsServers, ServersError> {
        if let Some(directory) = &certificates {
            check_certificate_files(directory)?;
        }
        let mut login = None;
        let mut network_host = None;
        for url in &urls {
            let address: ServerAddr = url.parse().map_err(|error: io::Error| {
                ServersError::Address { url: url.clone(), reason: error.to_string() }
            })?;
            login = login.or_else(|| parse_login(&address));
            if !is_loopback(address.host()) {
                network_host = network_host.or_else(|| Some(address.host().to_owned()));
            }
        }
        if let Some(host) = network_host
            && certificates.is_none()
            && login.is_none()
        {
            return Err(ServersError::NoCredentials { host });
        }
        Ok(NatsServers { urls, role, certificates, login })
    }

    /// Servers on this machine that need no credentials.
    pub fn on_loopback(urls: Vec<String>) -> NatsServers {
        NatsServers::new(urls, None, ClientRole::Member).expect("loopback needs no credentials")
    }

    pub fn urls(&self) -> &[String] {
        &self.urls
    }

    /// The addresses without user names and passwords, for messages.
    pub fn redacted_urls(&self) -> String {
        let urls: Vec<_> = self.urls.iter().map(|it| strip_login(it)).collect();
        urls.join(", ")
    }

    /// The options for a connection to any of these servers, including the credentials.
    pub fn connect_options(&self) -> ConnectOptions {
        let inbox = match self.role {
            ClientRole::Member => MEMBER_INBOX,
            ClientRole::Operator => OPERATOR_INBOX,
        };
        let mut options = ConnectOptions::new()
            .name("jackfield")
            .custom_inbox_prefix(inbox)
            .connection_timeout(CONNECT_TIMEOUT)
            .ping_interval(PING_INTERVAL)
            .reconnect_delay_callback(|attempts| match attempts {
                0 | 1 => Duration::ZERO,
                _ => RECONNECT_DELAY_MAX,
            });
        // The client library ignores a user and password in the address.
        match &self.login {
            Some((user, Some(password))) => {
                options = options.user_and_password(user.clone(), password.clone());
            }
            Some((token, None)) => options = options.token(token.clone()),
            None => {}
        }
        if let Some(directory) = &self.certificates {
            // Servers advertise the IP addresses of their peers, for which the certificates are not
            // valid.
            options = options
                .require_tls(true)
                .add_root_certificates(directory.join(AUTHORITY_FILE))
                .add_client_certificate(directory.join(CERTIFICATE_FILE), directory.join(KEY_FILE))
                .ignore_discovered_servers();
        }
        options
    }
}

/// Omits passwords.
impl std::fmt::Debug for NatsServers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NatsServers({})", self.redacted_urls())
    }
}

fn check_certificate_files(directory: &Path) -> Result<(), ServersError> {
    for name in [CERTIFICATE_FILE, KEY_FILE, AUTHORITY_FILE] {
        let path = directory.join(name);
        File::open(&path).map_err(|source| ServersError::Certificates { path, source })?;
    }
    Ok(())
}

fn parse_login(address: &ServerAddr) -> Option<(String, Option<String>)> {
    let decode = |it: &str| percent_decode_str(it).decode_utf8_lossy().into_owned();
    Some((decode(address.username()?), address.password().map(decode)))
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|it| it.is_loopback())
}

fn strip_login(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("nats", url));
    let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    format!("{scheme}://{host}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn member_servers(
        urls: &[&str],
        certificates: Option<PathBuf>,
    ) -> Result<NatsServers, ServersError> {
        let urls = urls.iter().map(|&it| it.to_owned()).collect();
        NatsServers::new(urls, certificates, ClientRole::Member)
    }

    #[test]
    fn servers_on_the_network_need_credentials() {
        for (urls, accepted) in [
            (&["nats://127.0.0.1:4222"][..], true),
            (&["nats://127.9.8.7:4222", "localhost:4222", "nats://[::1]:4222"], true),
            (&["nats://10.0.0.1:4222"], false),
            (&["tls://nats.example.org:4222"], false),
            (&["nats://127.0.0.1:4222", "nats://10.0.0.1:4222"], false),
            (&["nats://127.0.0.1.example.org:4222"], false),
            (&["nats://localhost.example.org"], false),
            (&["nats://[2001:db8::1]:4222"], false),
            (&["nats://0.0.0.0:4222"], false),
            (&["nats://user:secret@10.0.0.1:4222"], true),
            (&["tls://a-token@10.0.0.1:4222"], true),
            (&["http://127.0.0.1:4222"], false),
        ] {
            assert_eq!(member_servers(urls, None).is_ok(), accepted, "{urls:?}");
        }
    }

    #[test]
    fn missing_credentials_error_names_the_host_and_both_remedies() {
        let text = member_servers(&["nats://10.0.0.1:4222"], None).unwrap_err().to_string();
        for part in ["`10.0.0.1`", "jackfield fleet certs", "--fleet-certs", "tls://USER:PASSWORD@"]
        {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn certificate_directory_must_be_complete() {
        let directory = tempfile::tempdir().unwrap();
        for name in [CERTIFICATE_FILE, KEY_FILE] {
            fs::write(directory.path().join(name), "").unwrap();
        }
        let path = directory.path().to_owned();
        let text = member_servers(&["tls://n1:4222"], Some(path.clone())).unwrap_err().to_string();
        assert!(text.contains("ca.pem"), "{text}");
        fs::write(path.join(AUTHORITY_FILE), "").unwrap();
        assert!(member_servers(&["tls://n1:4222"], Some(path)).is_ok());
    }

    #[test]
    fn login_is_parsed_from_the_address_and_never_printed() {
        let servers =
            member_servers(&["nats://n1:4222", "nats://us%40er:se%3Acret@n2:4222"], None).unwrap();
        assert_eq!(servers.login, Some(("us@er".to_owned(), Some("se:cret".to_owned()))));
        assert_eq!(servers.redacted_urls(), "nats://n1:4222, nats://n2:4222");
        assert!(!format!("{servers:?}").contains("cret"));
    }
}
