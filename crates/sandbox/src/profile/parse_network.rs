//! Parses `network` of a profile: a word, or lists of hosts.

use super::parse::{TableReader, is_host_pattern};
use super::{HostHeader, HostLists, NetworkAccess};
use toml::{Spanned, de::DeValue};

const NETWORK_FORMS: &str = "`network` must be \"none\", \"all\" or { hosts = [\"example.com\"] }";
const NETWORK_KEYS: &str = "`hosts`, `private`, `refuse` and `headers`";
const HEADER_FORM: &str = "an entry of `headers` is { host = \"example.com\", name = \"Authorization\", \
     value_file = \"~/token\" }";

pub(super) fn read(
    reader: &mut TableReader<'_>,
    value: &Spanned<DeValue<'_>>,
) -> Option<NetworkAccess> {
    match value.get_ref() {
        DeValue::String(it) if it == "none" => Some(NetworkAccess::None),
        DeValue::String(it) if it == "all" => Some(NetworkAccess::All),
        DeValue::Table(keys) => {
            let mut lists = HostLists::default();
            for (key, value) in keys {
                match key.get_ref().as_ref() {
                    "hosts" => lists.allowed = read_hosts(reader, value, "hosts"),
                    "private" => lists.private = read_hosts(reader, value, "private"),
                    "refuse" => lists.refused = read_hosts(reader, value, "refuse"),
                    "headers" => lists.headers = read_headers(reader, value),
                    other => {
                        let reason =
                            format!("unknown key `{other}`; valid keys are {NETWORK_KEYS}");
                        reader.add_error(&key.span(), reason);
                    }
                }
            }
            Some(NetworkAccess::Hosts(lists))
        }
        _ => {
            reader.add_error(&value.span(), NETWORK_FORMS);
            None
        }
    }
}

fn read_hosts(
    reader: &mut TableReader<'_>,
    value: &Spanned<DeValue<'_>>,
    key: &str,
) -> Vec<String> {
    let hosts = reader.read_list(value, key);
    for (host, span) in &hosts {
        if !is_host_pattern(host) {
            let reason = "write a host as `example.com`, `*.example.com` or `example.com:8080`";
            reader.add_error(span, format!("`{host}` in `{key}`: {reason}"));
        }
    }
    hosts.into_iter().map(|(host, _)| host).collect()
}

fn read_headers(reader: &mut TableReader<'_>, value: &Spanned<DeValue<'_>>) -> Vec<HostHeader> {
    let DeValue::Array(items) = value.get_ref() else {
        reader.add_error(&value.span(), HEADER_FORM);
        return Vec::new();
    };
    items.iter().filter_map(|it| read_header(reader, it)).collect()
}

fn read_header(reader: &mut TableReader<'_>, value: &Spanned<DeValue<'_>>) -> Option<HostHeader> {
    let text = |name: &str| match value.get_ref() {
        DeValue::Table(keys) if keys.len() == 3 => match keys.get(name)?.get_ref() {
            DeValue::String(text) => Some(text.to_string()),
            _ => None,
        },
        _ => None,
    };
    let header = (text("host"), text("name"), text("value_file"));
    let (Some(host), Some(name), Some(value_file)) = header else {
        reader.add_error(&value.span(), HEADER_FORM);
        return None;
    };
    if host.contains('*') || !is_host_pattern(&host) {
        let reason = format!("`{host}` in `headers`: name one host, such as `example.com`");
        reader.add_error(&value.span(), reason);
    }
    if !["/", "~/"].iter().any(|it| value_file.starts_with(it)) {
        let reason = format!("`{value_file}` in `headers`: begin with `/` or `~/`");
        reader.add_error(&value.span(), reason);
    }
    Some(HostHeader { host, name, value_file })
}
