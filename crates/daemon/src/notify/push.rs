//! Delivers a notification to the browsers that have subscribed to Web Push.

use super::{message::UserNotification, settings::NotifyEvent};
use jackfield_protocol::chain;
use jackfield_web::{
    login::{DeviceLogins, SubscribedDevice},
    push::{PUSH_PAYLOAD_BYTES_MAX, PushKey, PushRequest, PushUrgency, is_public_ip},
};
use reqwest::{
    Client, StatusCode,
    dns::{Addrs, Name, Resolve, Resolving},
    redirect::Policy,
};
use serde_json::{Value, json};
use std::{
    io,
    sync::{Arc, OnceLock},
    time::{Duration, SystemTime},
};

/// The timeout of a request to a push service.
const PUSH_TIMEOUT: Duration = Duration::from_secs(10);

/// Sends notifications to the push services of browsers.
pub(super) struct PushSender {
    logins: Arc<DeviceLogins>,
    /// Titles and requests are sent, too, and not only that something happened.
    with_content: bool,
    /// Created on first use, since it reads the machine's certificates.
    client: OnceLock<Option<Client>>,
}

impl PushSender {
    pub(super) fn new(logins: Arc<DeviceLogins>, with_content: bool) -> PushSender {
        PushSender { logins, with_content, client: OnceLock::new() }
    }

    /// Sends the notification to all devices that may see its session.
    pub(super) async fn deliver(&self, message: &UserNotification) {
        let devices = self.logins.subscribed_devices(message.tenant.as_deref());
        if devices.is_empty() {
            return;
        }
        let key = match self.logins.push_key() {
            Ok(key) => key,
            Err(error) => {
                tracing::warn!(why = chain(&error), "failed to read the key for Web Push");
                return;
            }
        };
        let text = push_text(message, self.with_content);
        for device in devices {
            if let Err(why) = self.send(&device, message, &text, &key).await {
                let (device, event) = (&device.id, message.event.as_str());
                tracing::warn!(%device, event, why, "failed to send a push notification");
            }
        }
    }

    async fn send(
        &self,
        device: &SubscribedDevice,
        message: &UserNotification,
        text: &str,
        key: &PushKey,
    ) -> Result<(), String> {
        let Some(client) = self.client.get_or_init(create_client) else {
            return Err("TLS is not available on this machine".to_owned());
        };
        let urgency = match message.event {
            NotifyEvent::NeedsYou | NotifyEvent::Failed => PushUrgency::High,
            NotifyEvent::Done => PushUrgency::Normal,
        };
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let request =
            device.subscription.to_request(text.as_bytes(), &message.session, urgency, key, now);
        let PushRequest { url, headers, body } = request.map_err(|error| error.to_string())?;
        let mut request = client.post(url).body(body);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let answer = request.send().await.map_err(|error| chain(&error.without_url()))?;
        match answer.status() {
            status if status.is_success() => Ok(()),
            // The user has removed the subscription in the browser, or it has expired.
            StatusCode::NOT_FOUND | StatusCode::GONE => {
                let endpoint = &device.subscription.endpoint;
                let dropped = self.logins.drop_subscription(&device.id, endpoint);
                tracing::info!(device = %device.id, "dropped an expired push subscription");
                dropped.map_err(|error| format!("cannot drop an expired subscription: {error}"))
            }
            status => Err(format!("the push service responded with {status}")),
        }
    }
}

/// What the browser gets: that something happened and where, and with `with_content` also what.
fn push_text(message: &UserNotification, with_content: bool) -> String {
    let content_free =
        || json!({ "event": message.event.as_str(), "sessionId": &*message.session }).to_string();
    if !with_content {
        return content_free();
    }
    if message.json.len() <= PUSH_PAYLOAD_BYTES_MAX {
        return message.json.clone();
    }
    // A long command is what makes it too long.
    let mut shorter: Value = serde_json::from_str(&message.json).unwrap_or_default();
    if let Some(members) = shorter.as_object_mut() {
        members.remove("call");
    }
    let shorter = shorter.to_string();
    if shorter.len() <= PUSH_PAYLOAD_BYTES_MAX { shorter } else { content_free() }
}

/// Redirects are not followed, since only the address of the subscription was checked.
fn create_client() -> Option<Client> {
    // Another part of this process may have installed one.
    let _ignored = rustls::crypto::ring::default_provider().install_default();
    let client = Client::builder().timeout(PUSH_TIMEOUT).redirect(Policy::none()).no_proxy();
    let client = client.dns_resolver(Arc::new(PublicResolver));
    let client = client.user_agent(concat!("jackfield/", env!("CARGO_PKG_VERSION")));
    client
        .build()
        .inspect_err(|error| {
            tracing::warn!(why = chain(error), "failed to create the push client");
        })
        .ok()
}

/// Resolves names to public addresses only: a subscription must not lead into the own network.
struct PublicResolver;

impl Resolve for PublicResolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let public: Vec<_> = found.filter(|it| is_public_ip(it.ip())).collect();
            if public.is_empty() {
                let why = format!("`{}` has no public address", name.as_str());
                return Err(io::Error::other(why).into());
            }
            Ok(Box::new(public.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> UserNotification {
        let json = json!({ "event": "needs_you", "sessionId": "s-1", "title": "fix it",
            "what": text, "call": { "commands": [text] } });
        UserNotification {
            event: NotifyEvent::NeedsYou,
            session: "s-1".into(),
            tenant: None,
            json: json.to_string(),
        }
    }

    #[test]
    fn push_has_no_content_unless_the_user_wants_it() {
        let parse = |text: String| serde_json::from_str::<Value>(&text).unwrap();
        let short = message("npm test");
        let bare = json!({ "event": "needs_you", "sessionId": "s-1" });
        assert_eq!(parse(push_text(&short, false)), bare);
        assert_eq!(parse(push_text(&short, true))["what"], "npm test");
        let long = parse(push_text(&message(&"x".repeat(3000)), true));
        assert_eq!((long["title"].as_str(), long.get("call")), (Some("fix it"), None));
        assert_eq!(parse(push_text(&message(&"x".repeat(9000)), true)), bare);
    }

    #[tokio::test]
    async fn names_of_this_machine_are_not_resolved() {
        let name = "localhost".parse::<Name>().unwrap();
        let error = PublicResolver.resolve(name).await.err().expect("it is refused");
        assert!(error.to_string().contains("no public address"), "{error}");
    }
}
