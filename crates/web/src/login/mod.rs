//! Logins of browsers: a one-time link becomes a device, which a cookie authenticates.
//!
//! Read in this order: `stored_logins` is what is stored about links and devices, `login_file` the
//! file that the daemon and the commands share, `secret` creates and compares secrets, `cookie`
//! reads and writes the cookie. [`DeviceLogins`] combines them; `attempt_limiter` limits wrong
//! codes, `subscriptions` has the devices that get notifications.
//!
//! **Invariant:** the file contains no secret, only hashes of them.
//!
//! **Invariant:** a device has the rights of its tenant or of the operator, and none after its
//! tenant was removed or the operator's token was replaced.

mod attempt_limiter;
mod cookie;
mod device_logins;
mod login_file;
mod secret;
mod stored_logins;
mod subscriptions;
#[cfg(test)]
mod tests;

pub(crate) use cookie::{DeviceCookie, expired_cookies, login_cookie};
pub use device_logins::{
    DeviceLogins, DeviceSession, FindTenant, LoginLink, LoginOwner, LoginRefusal,
};
pub use stored_logins::{DEVICE_NAME_CHARS_MAX, DeviceRecord, is_device_name};
pub use subscriptions::SubscribedDevice;
