//! What is stored about login links and devices, and how logins change it.

use super::secret::{SecretHash, random_device_secret, random_id, random_link_code};
use crate::push::PushSubscription;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How long a link can be used.
pub(super) const LINK_LIFETIME: Duration = Duration::from_mins(1);
/// Unused links at a time; the oldest is removed for a new one.
const LINKS_MAX: usize = 32;
/// Devices of the operator, and of each tenant.
const DEVICES_PER_OWNER_MAX: usize = 64;
/// A device that was not used for this long has to log in again.
const UNUSED_TIME_MAX: Duration = Duration::from_hours(90 * 24);
/// The precision of the last use, so that requests rarely cause a write.
const LAST_SEEN_PRECISION: Duration = Duration::from_hours(1);
/// The longest name of a device.
pub const DEVICE_NAME_CHARS_MAX: usize = 64;

/// The content of the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StoredLogins {
    /// Distinguishes the cookie of this daemon from those of others on the same host, because
    /// browsers send cookies to all ports.
    pub(super) cookie_id: String,
    #[serde(default)]
    links: Vec<LinkRecord>,
    #[serde(default)]
    devices: Vec<DeviceRecord>,
}

/// The owner of a link or a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum OwnerRecord {
    /// The operator, as long as the token has this hash.
    Operator(SecretHash),
    Tenant(String),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct LinkRecord {
    code: SecretHash,
    owner: OwnerRecord,
    expires_at: u64,
}

/// A browser that has logged in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeviceRecord {
    pub id: String,
    pub name: String,
    /// In Unix milliseconds, like [`DeviceRecord::last_seen_at`], which is precise to an hour.
    pub created_at: u64,
    pub last_seen_at: u64,
    pub(super) owner: OwnerRecord,
    pub(super) secret: SecretHash,
    /// Where notifications are sent, if the user wants them on this device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) push: Option<PushSubscription>,
}

impl DeviceRecord {
    /// The tenant of the device; `None` for the operator.
    pub fn tenant(&self) -> Option<&str> {
        self.owner.tenant()
    }

    pub(super) fn is_expired(&self, now: u64) -> bool {
        self.last_seen_at + millis(UNUSED_TIME_MAX) < now
    }

    pub(super) fn needs_new_last_seen(&self, now: u64) -> bool {
        self.last_seen_at + millis(LAST_SEEN_PRECISION) < now
    }
}

impl OwnerRecord {
    pub(super) fn tenant(&self) -> Option<&str> {
        if let OwnerRecord::Tenant(name) = self { Some(name) } else { None }
    }
}

/// What a login created.
#[derive(Debug)]
pub(super) struct CreatedDevice {
    pub(super) device: DeviceRecord,
    pub(super) secret: String,
}

/// The owner has as many devices as it may have.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooManyDevices;

impl Default for StoredLogins {
    fn default() -> StoredLogins {
        StoredLogins { cookie_id: random_id(""), links: Vec::new(), devices: Vec::new() }
    }
}

impl StoredLogins {
    /// Creates a link. Returns its code and when it expires.
    pub(super) fn create_link(&mut self, owner: OwnerRecord, now: u64) -> (String, u64) {
        self.remove_expired(now);
        if LINKS_MAX <= self.links.len() {
            self.links.remove(0);
        }
        let (code, expires_at) = (random_link_code(), now + millis(LINK_LIFETIME));
        self.links.push(LinkRecord { code: SecretHash::of(&code), owner, expires_at });
        (code, expires_at)
    }

    /// Removes the link with this code; `None` if it was used, has expired or never existed.
    pub(super) fn take_link(&mut self, code: &str, now: u64) -> Option<OwnerRecord> {
        self.remove_expired(now);
        let index = self.links.iter().position(|it| it.code.matches(code))?;
        Some(self.links.remove(index).owner)
    }

    /// Adds a device. If the browser already is a device of the same owner, it keeps its id and
    /// gets a new secret, so that logging in again does not fill the list.
    pub(super) fn add_device(
        &mut self,
        owner: OwnerRecord,
        name: &str,
        replaced: Option<&str>,
        now: u64,
    ) -> Result<CreatedDevice, TooManyDevices> {
        let is_replaced =
            |it: &DeviceRecord| Some(it.id.as_str()) == replaced && it.tenant() == owner.tenant();
        let replaced = self.devices.iter().position(is_replaced);
        let replaced = replaced.map(|it| self.devices.remove(it));
        let count = self.devices.iter().filter(|it| it.tenant() == owner.tenant()).count();
        if DEVICES_PER_OWNER_MAX <= count {
            return Err(TooManyDevices);
        }
        let secret = random_device_secret();
        let device = DeviceRecord {
            id: replaced.as_ref().map_or_else(|| random_id("d-"), |it| it.id.clone()),
            created_at: replaced.as_ref().map_or(now, |it| it.created_at),
            push: replaced.as_ref().and_then(|it| it.push.clone()),
            name: replaced.map_or_else(|| clean_name(name), |it| it.name),
            last_seen_at: now,
            owner,
            secret: SecretHash::of(&secret),
        };
        self.devices.push(device.clone());
        Ok(CreatedDevice { device, secret })
    }

    pub(super) fn device(&self, id: &str) -> Option<&DeviceRecord> {
        self.devices.iter().find(|it| it.id == id)
    }

    pub(super) fn device_mut(&mut self, id: &str) -> Option<&mut DeviceRecord> {
        self.devices.iter_mut().find(|it| it.id == id)
    }

    /// All devices, the last used first.
    pub(super) fn devices(&self) -> Vec<DeviceRecord> {
        let mut devices = self.devices.clone();
        devices.sort_by_key(|it| (std::cmp::Reverse(it.last_seen_at), it.id.clone()));
        devices
    }

    pub(super) fn remove_device(&mut self, id: &str) -> Option<DeviceRecord> {
        let index = self.devices.iter().position(|it| it.id == id)?;
        Some(self.devices.remove(index))
    }

    fn remove_expired(&mut self, now: u64) {
        self.links.retain(|it| now < it.expires_at);
        self.devices.retain(|it| !it.is_expired(now));
    }
}

/// Whether a user may give a device this name.
pub fn is_device_name(name: &str) -> bool {
    !name.is_empty() && clean_name(name) == name
}

/// A name that a browser proposed, without what could disturb a list.
fn clean_name(name: &str) -> String {
    let is_visible = |it: &char| !it.is_control() && !is_invisible(*it);
    let name: String = name.trim().chars().filter(is_visible).take(DEVICE_NAME_CHARS_MAX).collect();
    let name = name.trim();
    if name.is_empty() { "a browser".to_owned() } else { name.to_owned() }
}

/// Characters that change the direction of text or have no width.
fn is_invisible(it: char) -> bool {
    matches!(it, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
