//! The push subscriptions of devices.

use super::device_logins::DeviceLogins;
use crate::push::{PushKey, PushKeyError, PushSubscription};
use std::io;

/// A device that gets notifications.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscribedDevice {
    pub id: String,
    pub subscription: PushSubscription,
}

impl DeviceLogins {
    /// The key with which requests to push services are signed; it is created on first use.
    pub fn push_key(&self) -> Result<PushKey, PushKeyError> {
        PushKey::create_or_read(&self.file.sibling("push-key"))
    }

    /// Stores or removes the subscription of a device.
    pub(crate) fn set_subscription(
        &self,
        id: &str,
        subscription: Option<PushSubscription>,
    ) -> io::Result<()> {
        self.file.change(|it| {
            if let Some(device) = it.device_mut(id) {
                device.push = subscription;
            }
            Ok(())
        })
    }

    /// Removes a subscription that the push service no longer knows, unless the device has another
    /// one by now.
    pub fn drop_subscription(&self, id: &str, endpoint: &str) -> io::Result<()> {
        self.file.change(|it| {
            if let Some(device) = it.device_mut(id) {
                device.push.take_if(|it| it.endpoint == endpoint);
            }
            Ok(())
        })
    }

    /// Whether any device gets notifications.
    pub fn has_subscriptions(&self) -> bool {
        self.file.read().devices().iter().any(|it| it.push.is_some())
    }

    /// The devices of a tenant, or of the operator, that get notifications.
    pub fn subscribed_devices(&self, tenant: Option<&str>) -> Vec<SubscribedDevice> {
        let devices = self.devices().into_iter().filter(|it| it.tenant() == tenant);
        devices
            .filter_map(|it| Some(SubscribedDevice { id: it.id, subscription: it.push? }))
            .collect()
    }
}
