//! Creates login links, turns them into devices, and authenticates devices.

use super::attempt_limiter::AttemptLimiter;
use super::login_file::LoginFile;
use super::secret::SecretHash;
use super::stored_logins::{DeviceRecord, OwnerRecord, TooManyDevices, millis};
use jackfield_transport::{ClientAuthenticator, PeerIdentity, TenantIdentity};
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Finds a tenant by its name.
pub type FindTenant = Arc<dyn Fn(&str) -> Option<TenantIdentity> + Send + Sync>;

/// How often an open stream of a device checks that the device may still use it.
const SESSION_CHECK_EVERY: Duration = Duration::from_secs(1);

/// The login links and devices of one state directory.
pub struct DeviceLogins {
    pub(super) file: LoginFile,
    authenticator: ClientAuthenticator,
    find_tenant: FindTenant,
    attempts: AttemptLimiter,
}

/// The owner of a new link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoginOwner {
    Operator,
    Tenant(String),
}

/// A one-time login link.
#[derive(Debug, PartialEq, Eq)]
pub struct LoginLink {
    pub code: String,
    /// In Unix milliseconds.
    pub expires_at: u64,
}

/// Why a login or a change of a device fails.
#[derive(Debug, thiserror::Error)]
pub enum LoginRefusal {
    #[error(
        "the login link is not valid: it was used, or it is older than 60 s; `jackfield console` \
         creates another one"
    )]
    InvalidCode,
    #[error("too many wrong login links came from this address: try again in a minute")]
    TooManyAttempts,
    #[error(
        "there are already 64 devices: revoke one, in the list of devices or with `jackfield \
         devices revoke`"
    )]
    TooManyDevices,
    #[error("failed to store the devices")]
    Storage(#[from] io::Error),
}

/// An authenticated device, for as long as a request and its response take.
#[derive(Clone)]
pub struct DeviceSession {
    pub id: String,
    pub name: String,
    secret: SecretHash,
    logins: Arc<DeviceLogins>,
}

/// What a login gives to a browser.
#[derive(Debug)]
pub(crate) struct NewLogin {
    pub(crate) device: DeviceRecord,
    pub(crate) secret: String,
    pub(crate) cookie_id: String,
}

impl DeviceLogins {
    /// The logins in this file, which is created with the first link.
    pub fn new(
        path: &Path,
        authenticator: ClientAuthenticator,
        find_tenant: FindTenant,
    ) -> DeviceLogins {
        let attempts = AttemptLimiter::default();
        DeviceLogins { file: LoginFile::new(path), authenticator, find_tenant, attempts }
    }

    pub fn create_link(&self, owner: LoginOwner) -> io::Result<LoginLink> {
        let owner = match owner {
            LoginOwner::Operator => OwnerRecord::Operator(self.token_hash()),
            LoginOwner::Tenant(name) => OwnerRecord::Tenant(name),
        };
        self.file.change(|it| {
            let (code, expires_at) = it.create_link(owner, unix_millis());
            Ok(LoginLink { code, expires_at })
        })
    }

    /// Uses up a link and creates a device. `replaced` is the device that the browser already is.
    pub(crate) fn log_in(
        &self,
        code: &str,
        name: &str,
        replaced: Option<&DeviceSession>,
        peer: IpAddr,
    ) -> Result<NewLogin, LoginRefusal> {
        let now = unix_millis();
        if !self.attempts.is_allowed(peer, now) {
            return Err(LoginRefusal::TooManyAttempts);
        }
        // The link is removed, also if the rest fails.
        let taken = self.file.change(|it| io::Result::Ok(it.take_link(code, now)))?;
        let Some(owner) = taken.filter(|it| self.identify(it).is_some()) else {
            self.attempts.add_failure(peer, now);
            return Err(LoginRefusal::InvalidCode);
        };
        let replaced = replaced.map(|it| it.id.as_str());
        self.file.change(|it| {
            let created = it.add_device(owner, name, replaced, now);
            let created = created.map_err(|TooManyDevices| LoginRefusal::TooManyDevices)?;
            let cookie_id = it.cookie_id.clone();
            Ok(NewLogin { device: created.device, secret: created.secret, cookie_id })
        })
    }

    /// The id in the name of the cookie.
    pub(crate) fn cookie_id(&self) -> String {
        self.file.read().cookie_id.clone()
    }

    /// Authenticates a device by the content of its cookie.
    pub(crate) fn authenticate(
        self: &Arc<Self>,
        id: &str,
        secret: &str,
    ) -> Option<(PeerIdentity, DeviceSession)> {
        let (logins, now) = (self.file.read(), unix_millis());
        let device = logins.device(id)?;
        if !device.secret.matches(secret) || device.is_expired(now) {
            return None;
        }
        let identity = self.identify(&device.owner)?;
        if device.needs_new_last_seen(now) {
            self.store_last_seen(id, now);
        }
        let session = DeviceSession {
            id: device.id.clone(),
            name: device.name.clone(),
            secret: device.secret.clone(),
            logins: Arc::clone(self),
        };
        Some((identity, session))
    }

    /// All devices that may be used, the last used first.
    pub fn devices(&self) -> Vec<DeviceRecord> {
        let now = unix_millis();
        let is_valid =
            |it: &DeviceRecord| !it.is_expired(now) && self.identify(&it.owner).is_some();
        self.file.read().devices().into_iter().filter(is_valid).collect()
    }

    /// Renames a device; `None` if it does not exist.
    pub fn rename_device(&self, id: &str, name: &str) -> io::Result<Option<DeviceRecord>> {
        self.file.change(|it| {
            Ok(it.device_mut(id).map(|device| {
                name.clone_into(&mut device.name);
                device.clone()
            }))
        })
    }

    /// Removes a device; `None` if it does not exist. Its open streams end within a second.
    pub fn revoke_device(&self, id: &str) -> io::Result<Option<DeviceRecord>> {
        self.file.change(|it| Ok(it.remove_device(id)))
    }

    /// The identity that an owner has now.
    fn identify(&self, owner: &OwnerRecord) -> Option<PeerIdentity> {
        match owner {
            OwnerRecord::Operator(token) => {
                token.is_same(&self.token_hash()).then_some(PeerIdentity::Operator)
            }
            OwnerRecord::Tenant(name) => (self.find_tenant)(name).map(PeerIdentity::Tenant),
        }
    }

    fn token_hash(&self) -> SecretHash {
        SecretHash::of(self.authenticator.own_token().reveal())
    }

    fn store_last_seen(&self, id: &str, now: u64) {
        let stored: io::Result<()> = self.file.change(|it| {
            if let Some(device) = it.device_mut(id) {
                device.last_seen_at = now;
            }
            Ok(())
        });
        if let Err(error) = stored {
            tracing::warn!(%error, "failed to store when a device was last used");
        }
    }
}

impl DeviceSession {
    /// Completes when the device was revoked, has logged in again, or has lost its owner. The file
    /// is checked every second, because commands change it, too.
    pub(crate) async fn wait_revoked(self) {
        while self.is_valid() {
            tokio::time::sleep(SESSION_CHECK_EVERY).await;
        }
    }

    fn is_valid(&self) -> bool {
        let logins = self.logins.file.read();
        logins.device(&self.id).is_some_and(|it| {
            it.secret.is_same(&self.secret) && self.logins.identify(&it.owner).is_some()
        })
    }
}

impl std::fmt::Debug for DeviceLogins {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeviceLogins").field("file", &self.file).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for DeviceSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeviceSession").field("id", &self.id).finish_non_exhaustive()
    }
}

fn unix_millis() -> u64 {
    millis(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default())
}
