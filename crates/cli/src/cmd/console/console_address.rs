//! The addresses at which a browser reaches the console.

use crate::{
    context::CommandContext,
    exit::CliExitCode,
    hub::{CommandConnection, EndpointAddress, default_options},
    report::CommandError,
};
use jackfield_protocol::acp::Method;
use serde_json::{Value, json};
use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    str::FromStr,
};

/// The port that is tried first, so that bookmarks stay valid.
const DEFAULT_PORT: u16 = 7456;

/// `http://host[:port]` or `https://host[:port]`, without a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ConsoleAddress(String);

/// From where the console has to be reachable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConsoleReach {
    Machine,
    Network,
}

impl ConsoleAddress {
    fn new(scheme: &str, host: impl fmt::Display, port: u16) -> ConsoleAddress {
        ConsoleAddress(format!("{scheme}://{host}:{port}"))
    }

    /// The code is in the fragment, which browsers do not send, so that no log has it.
    pub(super) fn login_link(&self, code: &str) -> String {
        format!("{}/console/login#code={code}", self.0)
    }

    /// Refuses an unencrypted address that is not on this machine, unless the user permits it.
    pub(super) fn require_encrypted(self, insecure: bool) -> Result<ConsoleAddress, CommandError> {
        if insecure || self.0.starts_with("https://") || self.is_loopback() {
            return Ok(self);
        }
        let message = format!("`{}` is not encrypted", self.0);
        Err(CommandError::usage(message, ENCRYPTION_HINT.to_owned()))
    }

    fn is_loopback(&self) -> bool {
        let authority = self.0.split_once("://").map_or("", |(_, it)| it);
        let host = authority.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok());
        let host = host.map_or(authority, |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']');
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|it| it.is_loopback())
    }
}

/// What to do about an address that is not encrypted.
const ENCRYPTION_HINT: &str = "everyone on the way could read the login and all messages, and act as you. Use TLS: \
    `cert` and `key` under [http] in config.toml and `jackfield listen https://0.0.0.0:7456`, or a proxy or tunnel with TLS and its \
    address as `--url`; or accept the risk with `--insecure`";

impl FromStr for ConsoleAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<ConsoleAddress, String> {
        let text = text.trim_end_matches('/');
        let is_good = |it: u8| it.is_ascii_alphanumeric() || b"-_.:[]".contains(&it);
        let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
        match rest {
            Some(rest) if !rest.is_empty() && rest.bytes().all(is_good) => {
                Ok(ConsoleAddress(text.to_owned()))
            }
            _ => Err("write it as `https://build.example.org`, without a path".to_owned()),
        }
    }
}

/// The addresses of the daemon that a browser can use; one is opened if there is none.
pub(super) fn find_addresses(
    context: &CommandContext,
    reach: ConsoleReach,
    insecure: bool,
) -> Result<Vec<ConsoleAddress>, CommandError> {
    let names = default_options(context.daemon.paths())?.settings.http.hosts();
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    let mut conn = context.daemon.connect("console")?;
    let listening = list_listeners(&mut conn)?;
    let mut found: Vec<ConsoleAddress> =
        listening.iter().flat_map(|it| browser_addresses(it, reach, insecure, &names)).collect();
    if found.is_empty() {
        let ip = match reach {
            ConsoleReach::Machine => Ipv4Addr::LOCALHOST,
            ConsoleReach::Network if insecure => Ipv4Addr::UNSPECIFIED,
            ConsoleReach::Network => return Err(not_reachable()),
        };
        let opened = open_listener(&mut conn, ip, insecure)?;
        found = browser_addresses(&opened, reach, insecure, &names);
    }
    // Encrypted addresses first.
    found.sort_by_key(|it| !it.0.starts_with("https://"));
    found.dedup();
    if found.is_empty() { Err(not_reachable()) } else { Ok(found) }
}

fn not_reachable() -> CommandError {
    let message = "the daemon has no encrypted address that other machines can reach".to_owned();
    CommandError::usage(message, format!("over plain HTTP {ENCRYPTION_HINT}"))
}

fn list_listeners(conn: &mut CommandConnection) -> Result<Vec<EndpointAddress>, CommandError> {
    let result = call_listen(conn, &json!({}))?;
    let rows = result["listeners"].as_array().cloned().unwrap_or_default();
    Ok(rows.iter().filter_map(|it| it["address"].as_str()?.parse().ok()).collect())
}

/// Listens on the default port, or on another one if that is taken.
fn open_listener(
    conn: &mut CommandConnection,
    ip: Ipv4Addr,
    insecure: bool,
) -> Result<EndpointAddress, CommandError> {
    let mut open = |port: u16| {
        let address = EndpointAddress::Http(SocketAddr::new(ip.into(), port));
        call_listen(conn, &json!({ "add": address.to_string(), "insecure": insecure }))
    };
    let result = open(DEFAULT_PORT).or_else(|_| open(0))?;
    let changed = result["changed"].as_str().unwrap_or_default();
    changed.parse().map_err(|error| CommandError::Local {
        what: "the daemon opened an unknown address".to_owned(),
        source: Box::new(error),
        exit: CliExitCode::Failed,
        hint: "`jackfield listen` lists the addresses".to_owned(),
    })
}

fn call_listen(conn: &mut CommandConnection, params: &Value) -> Result<Value, CommandError> {
    conn.call_hub(Method::ControlListen, params, "the addresses of the daemon")
}

/// How a browser reaches a listener; empty if it cannot.
fn browser_addresses(
    listener: &EndpointAddress,
    reach: ConsoleReach,
    insecure: bool,
    names: &[String],
) -> Vec<ConsoleAddress> {
    let (scheme, at) = match listener {
        EndpointAddress::Http(at) => ("http", at),
        EndpointAddress::Https(at) => ("https", at),
        _ => return Vec::new(),
    };
    let (ip, port) = (at.ip().to_canonical(), at.port());
    let by_ip = |it: IpAddr| {
        let host = if it.is_ipv6() { format!("[{it}]") } else { it.to_string() };
        ConsoleAddress::new(scheme, host, port)
    };
    let by_name = || names.iter().map(|it| ConsoleAddress::new(scheme, it, port));
    match reach {
        // A certificate is for a name, not for 127.0.0.1.
        ConsoleReach::Machine if scheme == "https" => by_name().collect(),
        ConsoleReach::Machine if ip.is_loopback() => vec![by_ip(ip)],
        ConsoleReach::Machine if ip.is_unspecified() => vec![by_ip(Ipv4Addr::LOCALHOST.into())],
        ConsoleReach::Network if ip.is_loopback() || scheme == "http" && !insecure => Vec::new(),
        ConsoleReach::Network if ip.is_unspecified() => {
            by_name().chain(outgoing_ips().into_iter().map(by_ip)).collect()
        }
        ConsoleReach::Machine => vec![by_ip(ip)],
        ConsoleReach::Network => by_name().chain([by_ip(ip)]).collect(),
    }
}

/// The addresses of this machine that the system uses for other networks. Nothing is sent.
fn outgoing_ips() -> Vec<IpAddr> {
    // Addresses that are reserved for documentation.
    let v4 = (IpAddr::from(Ipv4Addr::UNSPECIFIED), IpAddr::from([192, 0, 2, 1]));
    let v6 = (IpAddr::from(Ipv6Addr::UNSPECIFIED), IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1]));
    let own_ip = |(any, remote): (IpAddr, IpAddr)| {
        let socket = UdpSocket::bind((any, 0)).ok()?;
        socket.connect((remote, 9)).ok()?;
        let ip = socket.local_addr().ok()?.ip();
        (!ip.is_loopback() && !ip.is_unspecified()).then_some(ip)
    };
    [v4, v6].into_iter().filter_map(own_ip).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reached(listener: &str, reach: ConsoleReach, insecure: bool) -> Vec<String> {
        let names = ["build.example.org".to_owned()];
        let found = browser_addresses(&listener.parse().unwrap(), reach, insecure, &names);
        found.into_iter().map(|it| it.0).collect()
    }

    #[test]
    fn browser_on_this_machine_uses_loopback_or_the_name_of_the_certificate() {
        let local = |it| reached(it, ConsoleReach::Machine, false);
        assert_eq!(local("http://127.0.0.1:7456"), ["http://127.0.0.1:7456"]);
        assert_eq!(local("http://0.0.0.0:80"), ["http://127.0.0.1:80"]);
        assert_eq!(local("http://[::1]:1"), ["http://[::1]:1"]);
        assert_eq!(local("https://0.0.0.0:7456"), ["https://build.example.org:7456"]);
        assert!(local("tcp://127.0.0.1:1").is_empty());
    }

    #[test]
    fn phone_gets_no_unencrypted_address_unless_it_is_permitted() {
        let network = |it, insecure| reached(it, ConsoleReach::Network, insecure);
        assert!(network("http://10.0.0.7:80", false).is_empty());
        assert!(network("http://127.0.0.1:80", true).is_empty());
        assert!(network("https://127.0.0.1:80", true).is_empty());
        let named = "https://build.example.org:443";
        assert_eq!(network("https://10.0.0.7:443", false), [named, "https://10.0.0.7:443"]);
        assert_eq!(network("https://0.0.0.0:443", false)[0], named);
        assert_eq!(network("http://10.0.0.7:80", true)[1], "http://10.0.0.7:80");
    }

    #[test]
    fn url_of_the_user_must_be_encrypted_or_local() {
        let check = |it: &str, insecure| {
            it.parse::<ConsoleAddress>().unwrap().require_encrypted(insecure).is_ok()
        };
        for good in
            ["https://a.example", "http://localhost:1", "http://127.0.0.1", "http://[::1]:1"]
        {
            assert!(check(good, false), "{good}");
        }
        for bad in ["http://a.example", "http://10.0.0.1:80", "http://localhost.evil.example"] {
            assert!(!check(bad, false) && check(bad, true), "{bad}");
        }
        for invalid in ["a.example", "ftp://a", "https://", "https://a/b", "https://a\"b"] {
            assert!(invalid.parse::<ConsoleAddress>().is_err(), "{invalid}");
        }
        let link = "https://a.example/".parse::<ConsoleAddress>().unwrap().login_link("x");
        assert_eq!(link, "https://a.example/console/login#code=x");
    }
}
