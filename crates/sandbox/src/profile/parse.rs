//! Parses the `[sandbox.NAME]` tables of a file, or returns every error in them.

use super::{NetworkAccess, ProfilePath, amounts::parse_bytes, parse_network};
use crate::plan::{PathAccess, ResourceLimits};
use std::{fmt, net::Ipv6Addr, ops::Range};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

const PROFILE_KEYS: &str = "`extends`, `write`, `read`, `hide`, `temporary`, `env`, `network`, `limits` and \
     `protect_files`";
const LIMIT_KEYS: &str = "`processes`, `memory`, `cpu` and `disk`";

/// One error in a `[sandbox.NAME]` table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileError {
    /// Counted from 1.
    pub line: usize,
    pub reason: String,
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)
    }
}

impl std::error::Error for ProfileError {}

/// A table as it is written, before the profile that it extends is applied.
#[derive(Debug, Clone, Default)]
pub(super) struct ProfileTable {
    pub(super) name: String,
    pub(super) line: usize,
    pub(super) extends: Option<String>,
    pub(super) paths: Vec<ProfilePath>,
    pub(super) env: Vec<String>,
    pub(super) network: Option<NetworkAccess>,
    pub(super) limits: ResourceLimits,
    pub(super) protect_files: Option<bool>,
}

/// Reads the tables. Other keys of the file belong to other readers and are ignored.
pub(super) fn read_tables(text: &str) -> Result<Vec<ProfileTable>, Vec<ProfileError>> {
    let root = DeTable::parse(text).map_err(|error| {
        let line = line_of(text, &error.span().unwrap_or_default());
        vec![ProfileError { line, reason: error.message().trim_end().replace('\n', ", ") }]
    })?;
    let mut reader = TableReader { text, errors: Vec::new() };
    let mut tables = Vec::new();
    if let Some(sandbox) = root.get_ref().get("sandbox") {
        match sandbox.get_ref() {
            DeValue::Table(named) => {
                tables.extend(named.iter().filter_map(|(name, value)| {
                    reader.read_profile(name.get_ref(), &name.span(), value)
                }));
            }
            _ => reader.add_error(&sandbox.span(), "write `[sandbox.NAME]` for a profile"),
        }
    }
    reader.errors.sort_by_key(|it| it.line);
    if reader.errors.is_empty() { Ok(tables) } else { Err(reader.errors) }
}

pub(super) struct TableReader<'a> {
    text: &'a str,
    errors: Vec<ProfileError>,
}

impl TableReader<'_> {
    pub(super) fn add_error(&mut self, span: &Range<usize>, reason: impl Into<String>) {
        self.errors.push(ProfileError { line: line_of(self.text, span), reason: reason.into() });
    }

    fn read_profile(
        &mut self,
        name: &str,
        span: &Range<usize>,
        value: &Spanned<DeValue<'_>>,
    ) -> Option<ProfileTable> {
        let DeValue::Table(keys) = value.get_ref() else {
            let reason = format!("`{name}` is not a profile; write `[sandbox.{name}]`");
            self.add_error(span, reason);
            return None;
        };
        let line = line_of(self.text, span);
        let mut table = ProfileTable { name: name.to_owned(), line, ..ProfileTable::default() };
        if !name.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-' || it == b'_') {
            self.add_error(span, format!("`{name}`: use letters, digits, `-` and `_` in a name"));
        }
        for (key, value) in keys {
            match key.get_ref().as_ref() {
                "extends" => table.extends = self.read_text(value, "extends"),
                "write" => self.read_paths(value, "write", PathAccess::Writable, &mut table.paths),
                "read" => self.read_paths(value, "read", PathAccess::ReadOnly, &mut table.paths),
                "hide" => self.read_paths(value, "hide", PathAccess::Hidden, &mut table.paths),
                "temporary" => {
                    self.read_paths(value, "temporary", PathAccess::Temporary, &mut table.paths);
                }
                "env" => table.env = self.read_env(value),
                "network" => table.network = parse_network::read(self, value),
                "limits" => table.limits = self.read_limits(value),
                "protect_files" => table.protect_files = self.read_flag(value, "protect_files"),
                other => {
                    let reason = format!("unknown key `{other}`; valid keys are {PROFILE_KEYS}");
                    self.add_error(&key.span(), reason);
                }
            }
        }
        // Of several entries for the same path the last one applies.
        table.paths.sort_by_key(|it| match it.access {
            PathAccess::Hidden => 0,
            PathAccess::Temporary => 1,
            PathAccess::ReadOnly => 2,
            PathAccess::Writable => 3,
        });
        Some(table)
    }

    pub(super) fn read_text(&mut self, value: &Spanned<DeValue<'_>>, key: &str) -> Option<String> {
        if let DeValue::String(it) = value.get_ref() {
            return Some(it.to_string());
        }
        self.add_error(&value.span(), format!("`{key}` must be a text"));
        None
    }

    fn read_flag(&mut self, value: &Spanned<DeValue<'_>>, key: &str) -> Option<bool> {
        if let DeValue::Boolean(it) = value.get_ref() {
            return Some(*it);
        }
        self.add_error(&value.span(), format!("`{key}` must be `true` or `false`"));
        None
    }

    /// The texts of a list, each with its place.
    pub(super) fn read_list(
        &mut self,
        value: &Spanned<DeValue<'_>>,
        key: &str,
    ) -> Vec<(String, Range<usize>)> {
        let DeValue::Array(items) = value.get_ref() else {
            self.add_error(&value.span(), format!("`{key}` must be a list of texts"));
            return Vec::new();
        };
        let items = items.iter().filter_map(|it| Some((self.read_text(it, key)?, it.span())));
        items.collect()
    }

    fn read_paths(
        &mut self,
        value: &Spanned<DeValue<'_>>,
        key: &str,
        access: PathAccess,
        paths: &mut Vec<ProfilePath>,
    ) {
        for (path, span) in self.read_list(value, key) {
            if let Some(reason) = find_path_error(&path) {
                self.add_error(&span, format!("`{path}` in `{key}`: {reason}"));
            } else if paths.iter().any(|it| it.path == path) {
                self.add_error(&span, format!("`{path}` occurs twice in this profile"));
            } else {
                paths.push(ProfilePath { path, access });
            }
        }
    }

    fn read_env(&mut self, value: &Spanned<DeValue<'_>>) -> Vec<String> {
        let names = self.read_list(value, "env");
        for (name, span) in &names {
            let is_name_byte = |it: u8| it.is_ascii_alphanumeric() || it == b'_' || it == b'*';
            if name.is_empty() || !name.bytes().all(is_name_byte) {
                let reason = "use letters, digits, `_`, and `*` for any text";
                self.add_error(span, format!("`{name}` is not a variable name: {reason}"));
            }
        }
        names.into_iter().map(|(name, _)| name).collect()
    }

    fn read_limits(&mut self, value: &Spanned<DeValue<'_>>) -> ResourceLimits {
        let mut limits = ResourceLimits::default();
        let DeValue::Table(keys) = value.get_ref() else {
            self.add_error(&value.span(), format!("`limits` must be a table of {LIMIT_KEYS}"));
            return limits;
        };
        for (key, value) in keys {
            match key.get_ref().as_ref() {
                "processes" => limits.processes = self.read_count(value, "processes"),
                "cpu" => limits.cpu_seconds = self.read_count(value, "cpu"),
                "memory" => limits.memory_bytes = self.read_size(value, "memory"),
                "disk" => limits.file_bytes = self.read_size(value, "disk"),
                other => {
                    let reason = format!("unknown limit `{other}`; valid limits are {LIMIT_KEYS}");
                    self.add_error(&key.span(), reason);
                }
            }
        }
        limits
    }

    fn read_count(&mut self, value: &Spanned<DeValue<'_>>, key: &str) -> Option<u64> {
        let count = match value.get_ref() {
            DeValue::Integer(it) => u64::from_str_radix(it.as_str(), it.radix()).ok(),
            _ => None,
        };
        let count = count.filter(|it| *it > 0);
        if count.is_none() {
            let unit = if key == "cpu" { " of seconds" } else { "" };
            self.add_error(&value.span(), format!("`{key}` must be a positive number{unit}"));
        }
        count
    }

    fn read_size(&mut self, value: &Spanned<DeValue<'_>>, key: &str) -> Option<u64> {
        let size = match value.get_ref() {
            DeValue::String(it) => parse_bytes(it),
            _ => None,
        };
        if size.is_none() {
            let reason = format!("`{key}` must be a size such as \"512MiB\" or \"4GB\"");
            self.add_error(&value.span(), reason);
        }
        size
    }
}

/// Returns the reason why a path is invalid, or `None`.
fn find_path_error(path: &str) -> Option<&'static str> {
    let is_anchored =
        matches!(path, "." | "~") || ["/", "~/", "./"].iter().any(|it| path.starts_with(it));
    if !is_anchored {
        return Some("begin with `/`, `~/` or `./`; `.` is each directory of the session");
    }
    if path.contains('*') {
        return Some("patterns are not supported; name the directory");
    }
    path.split('/').any(|it| it == "..").then_some("`..` is not supported")
}

pub(super) fn is_host_pattern(host: &str) -> bool {
    let is_port = |it: &str| it.parse::<u16>().is_ok_and(|it| it > 0);
    if let Some((address, port)) = host.strip_prefix('[').and_then(|it| it.split_once(']')) {
        let is_end = port.is_empty() || port.strip_prefix(':').is_some_and(is_port);
        return is_end && address.parse::<Ipv6Addr>().is_ok();
    }
    let (name, port) = host.split_once(':').unwrap_or((host, "1"));
    let name = name.strip_prefix("*.").unwrap_or(name);
    let is_name_byte = |it: u8| it.is_ascii_alphanumeric() || it == b'-' || it == b'.';
    !name.is_empty() && name.bytes().all(is_name_byte) && is_port(port)
}

fn line_of(text: &str, span: &Range<usize>) -> usize {
    text.get(..span.start).unwrap_or(text).matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_is_a_name_or_an_address_with_an_optional_port() {
        for host in ["a.example", "*.a.example", "a:8080", "192.168.1.10", "[fd00::10]", "[::1]:80"]
        {
            assert!(is_host_pattern(host), "{host}");
        }
        for host in ["", "*.", "a b", "a:0", "a:x", "https://a", "a/b", "[::1", "[a]:80", "[::1]80"]
        {
            assert!(!is_host_pattern(host), "{host}");
        }
    }
}
