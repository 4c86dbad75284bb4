//! The tenants file: who may come in beside the owner, in whose name, and how much it may have. It is looked
//! at whenever a token is shown, and read again when it has changed; one that is not valid leaves the last
//! one in force.

mod file;

use file::{Entries, parse};
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
    #[error("`{}` names no tenants as it should:\n{reason}", path.display())]
    Invalid { path: PathBuf, reason: String },
}

/// The file, and what it said when it was last valid.
#[derive(Debug)]
pub struct Tenants {
    path: PathBuf,
    known: Mutex<(Stamp, Arc<Table>)>,
}

/// What shows that a file is another than before.
type Stamp = Option<(SystemTime, u64, u64)>;

#[derive(Debug, Default)]
struct Table {
    tenants: BTreeMap<TenantName, Arc<Tenant>>,
    /// By what is kept of a token: nothing that lets anybody in.
    tokens: BTreeMap<Hash, Arc<Tenant>>,
}

/// SHA-256 of a token's text.
pub(crate) type Hash = [u8; 32];

impl Tenants {
    /// A file that is not valid stops the start.
    pub fn open(path: &Path) -> Result<Tenants, TenantsError> {
        let known = (stamp(path), Arc::new(read(path)?));
        Ok(Tenants { path: path.to_owned(), known: Mutex::new(known) })
    }

    /// For whoever lets clients in.
    pub(crate) fn vouch(self: &Arc<Self>) -> TenantLookup {
        let this = Arc::clone(self);
        Arc::new(move |shown| {
            let table = this.table();
            let tenant = table.tokens.get(&hash(shown))?;
            Some(TenantIdentity {
                name: tenant.name.clone().into(),
                binding: tenant.binding().into_bytes(),
            })
        })
    }

    pub(crate) fn tenant(&self, name: &str) -> Option<Arc<Tenant>> {
        self.table().tenants.get(name).cloned()
    }

    /// All of them, by name.
    pub fn all(&self) -> Vec<Arc<Tenant>> {
        self.table().tenants.values().cloned().collect()
    }

    fn table(&self) -> Arc<Table> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let now = stamp(&self.path);
        if now != known.0 {
            known.0 = now; // Once: a broken file is complained about when it breaks.
            match read(&self.path) {
                Ok(table) => known.1 = Arc::new(table),
                Err(error) => {
                    let why = jackfield_protocol::chain(&error);
                    tracing::error!(why, "the tenants file cannot be used; the last one stays");
                }
            }
        }
        known.1.clone()
    }
}

/// What a tenants file keeps of a token.
pub fn token_hash(token: &str) -> String {
    let digit = |nibble: u8| char::from_digit(nibble.into(), 16).expect("four bits are one digit");
    hash(token).iter().flat_map(|it| [digit(it >> 4), digit(it & 15)]).collect()
}

fn hash(token: &str) -> Hash {
    Sha256::digest(token.as_bytes()).into()
}

fn stamp(path: &Path) -> Stamp {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len(), metadata.ino()))
}

fn read(path: &Path) -> Result<Table, TenantsError> {
    let unreadable = |source| TenantsError::Unreadable { path: path.to_owned(), source };
    let text = fs::read_to_string(path).map_err(unreadable)?;
    let invalid = |reason| TenantsError::Invalid { path: path.to_owned(), reason };
    table(parse(&text).map_err(invalid)?).map_err(invalid)
}

fn table(entries: Entries) -> Result<Table, String> {
    let mut table = Table::default();
    for (name, entry) in entries {
        let (tenant, tokens) = entry.into_parts(name.0);
        let tenant = Arc::new(tenant);
        for token in tokens {
            if let Some(other) = table.tokens.insert(token.hash, tenant.clone()) {
                let (a, b) = (&other.name, &tenant.name);
                let token =
                    token.name.map_or_else(|| "a token".to_owned(), |it| format!("token `{it}`"));
                return Err(format!("{token} of [{b}] is that of [{a}], too: make another one"));
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

    fn whose(tenants: &Arc<Tenants>, token: &str) -> Option<String> {
        tenants.vouch()(token).map(|it| it.name.to_string())
    }

    #[test]
    fn a_token_is_known_by_its_hash() {
        let (a, b) = (token_hash("one"), token_hash("two"));
        let text =
            format!("[acme]\ntokens = [\"sha256:{a}\"]\n[other-1]\ntokens = [\"sha256:{b}\"]\n");
        let (_dir, tenants) = tenants(&text);
        let tenants = Arc::new(tenants.unwrap());
        assert_eq!(whose(&tenants, "one").as_deref(), Some("acme"));
        assert_eq!(whose(&tenants, "two").as_deref(), Some("other-1"));
        assert_eq!(whose(&tenants, "three"), None);
        assert_eq!(whose(&tenants, &a), None, "the hash itself lets nobody in");
    }

    #[test]
    fn a_file_that_has_changed_is_read_again_and_a_broken_one_is_not() {
        let (dir, tenants) = tenants("[acme]\n");
        let (path, tenants) = (dir.path().join("tenants.toml"), Arc::new(tenants.unwrap()));
        let with = |token: &str| format!("[acme]\ntokens = [\"sha256:{}\"]\n", token_hash(token));
        assert_eq!(whose(&tenants, "one"), None);
        fs::write(&path, with("one")).unwrap();
        assert!(whose(&tenants, "one").is_some());
        fs::write(&path, "[acme\n").unwrap();
        assert!(whose(&tenants, "one").is_some(), "the last valid one holds");
        fs::remove_file(&path).unwrap();
        assert!(whose(&tenants, "one").is_some(), "one that is away leaves it, too");
        fs::write(&path, with("another")).unwrap();
        assert!(whose(&tenants, "one").is_none() && whose(&tenants, "another").is_some());
    }

    #[test]
    fn a_token_of_two_tenants_is_refused() {
        let hash = token_hash("one");
        let token = format!("{{ name = \"ci\", sha256 = \"{hash}\" }}");
        let text = format!("[a]\ntokens = [{token}]\n[b]\ntokens = [{token}]\n");
        let error = tenants(&text).1.unwrap_err().to_string();
        assert!(error.contains("token `ci` of [b] is that of [a], too"), "{error}");
    }
}
