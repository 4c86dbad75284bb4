//! The format of the tenants file. A mistake is reported with its line and column.

use super::TokenHash;
use jackfield_hub::{TENANT_NAME_RULE, Tenant, is_tenant_name};
use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Visitor, value::MapAccessDeserializer},
};
use std::{collections::BTreeMap, fmt, path::PathBuf};

pub(super) type TenantEntries = BTreeMap<NameKey, TenantEntry>;

pub(super) fn parse_file(text: &str) -> Result<TenantEntries, String> {
    toml::from_str(text).map_err(|error| error.to_string())
}

/// The name of a tenant, which is part of its session ids.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NameKey(pub(super) String);

/// `[NAME]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TenantEntry {
    /// Clients with one of these tokens act for the tenant.
    #[serde(default)]
    tokens: Vec<TokenEntry>,
    #[serde(default)]
    sessions: Option<usize>,
    #[serde(default)]
    agents: Option<usize>,
    #[serde(default)]
    events_per_second: Option<std::num::NonZeroU32>,
    #[serde(default)]
    commands: bool,
    #[serde(default)]
    roots: Vec<RootDir>,
}

impl TenantEntry {
    pub(super) fn into_parts(self, name: String) -> (Tenant, Vec<TokenEntry>) {
        let tenant = Tenant {
            name: name.into(),
            sessions: self.sessions,
            agents: self.agents,
            events_per_second: self.events_per_second.map(Into::into),
            commands: self.commands,
            roots: self.roots.into_iter().map(|it| it.0).collect(),
        };
        (tenant, self.tokens)
    }
}

/// `"sha256:HEX"`, or `{ name = "…", sha256 = "HEX" }`.
#[derive(Debug)]
pub(super) struct TokenEntry {
    pub(super) name: Option<String>,
    pub(super) hash: TokenHash,
}

/// A directory that sessions may work in.
#[derive(Debug)]
struct RootDir(PathBuf);

impl<'de> Deserialize<'de> for NameKey {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<NameKey, D::Error> {
        let name = String::deserialize(from)?;
        if is_tenant_name(&name) {
            return Ok(NameKey(name));
        }
        Err(D::Error::custom(format!("`{}`: {TENANT_NAME_RULE}", name.escape_debug())))
    }
}

impl<'de> Deserialize<'de> for RootDir {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<RootDir, D::Error> {
        let path = PathBuf::deserialize(from)?;
        let has_parent = path.components().any(|it| it == std::path::Component::ParentDir);
        if path.is_absolute() && !has_parent {
            return Ok(RootDir(path));
        }
        Err(D::Error::custom("a root is an absolute path without `..`"))
    }
}

impl<'de> Deserialize<'de> for TokenEntry {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<TokenEntry, D::Error> {
        from.deserialize_any(TokenVisitor)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NamedToken {
    name: String,
    sha256: String,
}

struct TokenVisitor;

impl<'de> Visitor<'de> for TokenVisitor {
    type Value = TokenEntry;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"sha256:HEX\" or { name = \"…\", sha256 = \"HEX\" }")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<TokenEntry, E> {
        let hex = text.strip_prefix("sha256:").ok_or_else(|| {
            let why = "only the hash of a token belongs here, as `sha256:HEX`; `jackfield tenants token` \
                       creates both";
            E::custom(why)
        })?;
        Ok(TokenEntry { name: None, hash: parse_hash(hex)? })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<TokenEntry, A::Error> {
        let NamedToken { name, sha256 } = NamedToken::deserialize(MapAccessDeserializer::new(map))?;
        Ok(TokenEntry { hash: parse_hash(&sha256)?, name: Some(name) })
    }
}

fn parse_hash<E: Error>(hex: &str) -> Result<TokenHash, E> {
    let invalid = || E::custom("a SHA-256 hash has 64 hex digits");
    let mut hash = TokenHash::default();
    if hex.len() != 2 * hash.len() || !hex.bytes().all(|it| it.is_ascii_hexdigit()) {
        return Err(invalid());
    }
    for (byte, digits) in hash.iter_mut().zip(hex.as_bytes().chunks(2)) {
        let digits = std::str::from_utf8(digits).map_err(|_| invalid())?;
        *byte = u8::from_str_radix(digits, 16).map_err(|_| invalid())?;
    }
    Ok(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenant_entry_is_read_completely() {
        let hex = "0f".repeat(32);
        let text = format!(
            "[acme]\ntokens = [\"sha256:{hex}\", {{ name = \"ci\", sha256 = \"{hex}\" }}]\nsessions = 100\n\
             agents = 20\nevents_per_second = 5000\nroots = [\"/srv/acme\"]\n[b]\n"
        );
        let mut entries = parse_file(&text).unwrap().into_iter();
        let (name, entry) = entries.next().unwrap();
        let (tenant, tokens) = entry.into_parts(name.0);
        assert_eq!((tenant.sessions, tenant.agents), (Some(100), Some(20)));
        assert_eq!((tenant.events_per_second, tenant.commands), (Some(5000), false));
        assert_eq!(tenant.roots, [PathBuf::from("/srv/acme")]);
        assert_eq!(tokens.len(), 2);
        assert_eq!((tokens[1].name.as_deref(), tokens[1].hash), (Some("ci"), [0x0f; 32]));
        let (name, entry) = entries.next().unwrap();
        let (tenant, tokens) = entry.into_parts(name.0);
        assert!(tokens.is_empty() && tenant.roots.is_empty() && tenant.sessions.is_none());
    }

    #[test]
    fn mistake_is_reported_with_its_position() {
        for (text, place, why) in [
            ("[acme]\nagnets = 1\n", "line 2, column 1", "agnets"),
            ("[acme]\n\n[Acme Inc]\n", "line 3", "unclosed table"),
            ("[acme]\n[\"Acme\"]\n", "line 2, column 2", "`Acme`: a tenant is called by"),
            ("[acme]\ntokens = [\"secret\"]\n", "line 2, column 11", "only the hash"),
            ("[acme]\ntokens = [\"sha256:abc\"]\n", "line 2, column 11", "64 hex digits"),
            ("[acme]\ntokens = [{ name = \"x\" }]\n", "line 2, column 11", "sha256"),
            ("[acme]\nsessions = -1\n", "line 2, column 12", "-1"),
            ("[acme]\nevents_per_second = 0\n", "line 2, column 21", "0"),
            ("[acme]\nroots = [\"srv\"]\n", "line 2, column 9", "absolute"),
            ("[acme]\nroots = [\"/srv/../etc\"]\n", "line 2, column 9", "`..`"),
        ] {
            let reason = parse_file(text).unwrap_err();
            assert!(reason.contains(place) && reason.contains(why), "{text}: {reason}");
        }
    }
}
