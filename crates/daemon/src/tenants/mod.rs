//! The tenants file: tokens and quotas of tenants. It is checked at each authentication and read
//! again when it has changed; an invalid file leaves the last valid one in force.

mod file;

use file::{TenantEntries, parse_file};
use jackfield_events::TenantName;
use jackfield_hub::Tenant;
use jackfield_transport::{TenantIdentity, TenantLookup};
use sha2::{Digest as _, Sha256};
use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};

/// Logged at the start of a daemon or gateway that has a tenants file.
pub const UNCONFINED_AGENTS_WARNING: &str = "tenants do not confine agents: a tenant's agent runs as \
    the user of the daemon and can read that user's files, the token of the operator included; run one \
    daemon with a uid or a virtual machine of its own for each tenant that you do not trust";

#[derive(Debug, thiserror::Error)]
pub enum TenantsError {
    #[error("cannot read `{}`", path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("`{}` is not a valid tenants file:\n{reason}", path.display())]
    Invalid { path: PathBuf, reason: String },
}

/// The file, and its content when it was last valid.
#[derive(Debug)]
pub struct Tenants {
    path: PathBuf,
    current: Mutex<(FileVersion, Arc<TenantTable>)>,
}

/// Identifies a version of the file.
type FileVersion = Option<(SystemTime, u64, u64)>;

#[derive(Debug, Default)]
struct TenantTable {
    tenants: BTreeMap<TenantName, Arc<Tenant>>,
    /// By the hash of a token; the hash itself does not grant access.
    tokens: BTreeMap<TokenHash, Arc<Tenant>>,
}

/// SHA-256 of a token's text.
pub(crate) type TokenHash = [u8; 32];

impl Tenants {
    /// An invalid file stops the start.
    pub fn open(path: &Path) -> Result<Tenants, TenantsError> {
        let current = (file_version(path), Arc::new(read_table(path)?));
        Ok(Tenants { path: path.to_owned(), current: Mutex::new(current) })
    }

    /// The lookup for authenticators.
    pub(crate) fn verifier(self: &Arc<Self>) -> TenantLookup {
        let this = Arc::clone(self);
        Arc::new(move |token| {
            let table = this.table();
            table.tokens.get(&hash(token)).map(|it| identity_of(it))
        })
    }

    /// The identity of the clients of a tenant.
    pub(crate) fn identity(&self, name: &str) -> Option<TenantIdentity> {
        self.tenant(name).map(|it| identity_of(&it))
    }

    pub(crate) fn tenant(&self, name: &str) -> Option<Arc<Tenant>> {
        self.table().tenants.get(name).cloned()
    }

    /// All tenants, by name.
    pub fn all(&self) -> Vec<Arc<Tenant>> {
        self.table().tenants.values().cloned().collect()
    }

    fn table(&self) -> Arc<TenantTable> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let now = file_version(&self.path);
        if now != current.0 {
            current.0 = now; // So that an invalid file is reported once.
            match read_table(&self.path) {
                Ok(table) => current.1 = Arc::new(table),
                Err(error) => {
                    let why = jackfield_protocol::chain(&error);
                    tracing::error!(why, "invalid tenants file; keeping the last valid one");
                }
            }
        }
        current.1.clone()
    }
}

fn identity_of(tenant: &Tenant) -> TenantIdentity {
    TenantIdentity { name: tenant.name.clone().into(), binding: tenant.binding().into_bytes() }
}

/// The hash of a token, as it stands in a tenants file.
pub fn token_hash(token: &str) -> String {
    let digit = |nibble: u8| char::from_digit(nibble.into(), 16).expect("four bits are one digit");
    hash(token).iter().flat_map(|it| [digit(it >> 4), digit(it & 15)]).collect()
}

fn hash(token: &str) -> TokenHash {
    Sha256::digest(token.as_bytes()).into()
}

fn file_version(path: &Path) -> FileVersion {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len(), metadata.ino()))
}

fn read_table(path: &Path) -> Result<TenantTable, TenantsError> {
    let unreadable = |source| TenantsError::Unreadable { path: path.to_owned(), source };
    let text = fs::read_to_string(path).map_err(unreadable)?;
    let invalid = |reason| TenantsError::Invalid { path: path.to_owned(), reason };
    build_table(parse_file(&text).map_err(invalid)?).map_err(invalid)
}

fn build_table(entries: TenantEntries) -> Result<TenantTable, String> {
    let mut table = TenantTable::default();
    for (name, entry) in entries {
        let (tenant, tokens) = entry.into_parts(name.0);
        let tenant = Arc::new(tenant);
        for token in tokens {
            if let Some(other) = table.tokens.insert(token.hash, tenant.clone()) {
                let (a, b) = (&other.name, &tenant.name);
                let token =
                    token.name.map_or_else(|| "a token".to_owned(), |it| format!("token `{it}`"));
                return Err(format!(
                    "{token} of [{b}] is also a token of [{a}]: create another one"
                ));
            }
        }
        table.tenants.insert(tenant.name.clone(), tenant);
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenants(text: &str) -> (tempfile::TempDir, Result<Tenants, TenantsError>) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tenants.toml");
        fs::write(&path, text).unwrap();
        let tenants = Tenants::open(&path);
        (dir, tenants)
    }

    fn tenant_of_token(tenants: &Arc<Tenants>, token: &str) -> Option<String> {
        tenants.verifier()(token).map(|it| it.name.to_string())
    }

    #[test]
    fn token_is_recognized_by_its_hash() {
        let (a, b) = (token_hash("one"), token_hash("two"));
        let text =
            format!("[acme]\ntokens = [\"sha256:{a}\"]\n[other-1]\ntokens = [\"sha256:{b}\"]\n");
        let (_dir, tenants) = tenants(&text);
        let tenants = Arc::new(tenants.unwrap());
        assert_eq!(tenant_of_token(&tenants, "one").as_deref(), Some("acme"));
        assert_eq!(tenant_of_token(&tenants, "two").as_deref(), Some("other-1"));
        assert_eq!(tenant_of_token(&tenants, "three"), None);
        assert_eq!(tenant_of_token(&tenants, &a), None, "the hash itself grants no access");
    }

    #[test]
    fn changed_file_is_read_again_and_invalid_file_is_ignored() {
        let (dir, tenants) = tenants("[acme]\n");
        let (path, tenants) = (dir.path().join("tenants.toml"), Arc::new(tenants.unwrap()));
        let file_with_token =
            |token: &str| format!("[acme]\ntokens = [\"sha256:{}\"]\n", token_hash(token));
        assert_eq!(tenant_of_token(&tenants, "one"), None);
        fs::write(&path, file_with_token("one")).unwrap();
        assert!(tenant_of_token(&tenants, "one").is_some());
        fs::write(&path, "[acme\n").unwrap();
        assert!(tenant_of_token(&tenants, "one").is_some(), "the last valid one stays in force");
        fs::remove_file(&path).unwrap();
        assert!(tenant_of_token(&tenants, "one").is_some(), "also if the file is missing");
        fs::write(&path, file_with_token("another")).unwrap();
        assert!(
            tenant_of_token(&tenants, "one").is_none()
                && tenant_of_token(&tenants, "another").is_some()
        );
    }

    #[test]
    fn token_of_two_tenants_is_refused() {
        let hash = token_hash("one");
        let token = format!("{{ name = \"ci\", sha256 = \"{hash}\" }}");
        let text = format!("[a]\ntokens = [{token}]\n[b]\ntokens = [{token}]\n");
        let error = tenants(&text).1.unwrap_err().to_string();
        assert!(error.contains("token `ci` of [b] is also a token of [a]"), "{error}");
    }
}
