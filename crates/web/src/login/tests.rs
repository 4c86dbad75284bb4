//! Tests of links and devices.

use super::device_logins::{DeviceLogins, LoginOwner, LoginRefusal, NewLogin};
use super::stored_logins::{LINK_LIFETIME, OwnerRecord, StoredLogins, TooManyDevices, millis};
use super::{is_device_name, secret::SecretHash};
use crate::push::PushSubscription;
use bytes::Bytes;
use jackfield_transport::{
    BearerToken, ClientAuthenticator, PeerIdentity, TenantIdentity, TokenFile,
};
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::{Arc, atomic::AtomicBool, atomic::Ordering};
use std::time::Duration;

const PEER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

struct LoginBench {
    dir: tempfile::TempDir,
    logins: Arc<DeviceLogins>,
    has_tenant: Arc<AtomicBool>,
}

impl LoginBench {
    fn new() -> LoginBench {
        let dir = tempfile::tempdir().unwrap();
        let has_tenant = Arc::new(AtomicBool::new(true));
        let token = TokenFile::open(&dir.path().join("token")).unwrap();
        let is_known = has_tenant.clone();
        let logins = DeviceLogins::new(
            &dir.path().join("devices.json"),
            ClientAuthenticator::new(token, None),
            Arc::new(move |name| {
                let binding = Bytes::from_static(b"{}");
                let is_known = name == "acme" && is_known.load(Ordering::Relaxed);
                is_known.then(|| TenantIdentity { name: name.into(), binding })
            }),
        );
        LoginBench { dir, logins: Arc::new(logins), has_tenant }
    }

    fn file(&self) -> PathBuf {
        self.dir.path().join("devices.json")
    }

    fn log_in(&self, owner: LoginOwner) -> NewLogin {
        let code = self.logins.create_link(owner).unwrap().code;
        self.logins.log_in(&code, "Phone", None, PEER).unwrap()
    }

    fn is_accepted(&self, login: &NewLogin) -> bool {
        self.logins.authenticate(&login.device.id, &login.secret).is_some()
    }
}

fn operator() -> OwnerRecord {
    OwnerRecord::Operator(SecretHash::of("token"))
}

#[test]
fn link_is_used_once_and_only_its_hash_is_stored() {
    let bench = LoginBench::new();
    let code = bench.logins.create_link(LoginOwner::Operator).unwrap().code;
    assert!(!std::fs::read_to_string(bench.file()).unwrap().contains(&code));
    let login = bench.logins.log_in(&code, "Phone", None, PEER).unwrap();
    let stored = std::fs::read_to_string(bench.file()).unwrap();
    assert!(stored.contains("Phone") && !stored.contains(&login.secret), "{stored}");
    let again = bench.logins.log_in(&code, "Phone", None, PEER);
    assert!(matches!(again, Err(LoginRefusal::InvalidCode)), "{again:?}");
    assert!(bench.is_accepted(&login));
    assert!(bench.logins.authenticate(&login.device.id, "other").is_none());
    assert!(bench.logins.authenticate("d-0", &login.secret).is_none());
}

#[test]
fn link_expires_and_an_unused_device_has_to_log_in_again() {
    let mut logins = StoredLogins::default();
    let (code, expires_at) = logins.create_link(operator(), 1000);
    assert_eq!(expires_at, 1000 + millis(LINK_LIFETIME));
    assert_eq!(logins.clone().take_link(&code, expires_at - 1), Some(operator()));
    assert_eq!(logins.take_link(&code, expires_at), None);
    let device = logins.add_device(operator(), "x", None, 0).unwrap().device;
    let day = millis(Duration::from_hours(24));
    assert!(!device.is_expired(90 * day) && device.is_expired(90 * day + 1));
    assert!(!device.needs_new_last_seen(day / 24) && device.needs_new_last_seen(day));
    logins.create_link(operator(), 91 * day);
    assert!(logins.device(&device.id).is_none(), "it is removed with the next change");
}

#[test]
fn wrong_codes_of_one_address_are_limited() {
    let bench = LoginBench::new();
    let code = bench.logins.create_link(LoginOwner::Operator).unwrap().code;
    let attempt = |code: &str, peer| bench.logins.log_in(code, "x", None, peer);
    for _ in 0..10 {
        assert!(matches!(attempt("guess", PEER), Err(LoginRefusal::InvalidCode)));
    }
    assert!(matches!(attempt(&code, PEER), Err(LoginRefusal::TooManyAttempts)));
    assert!(attempt(&code, IpAddr::from([10, 0, 0, 1])).is_ok(), "others are not affected");
}

#[test]
fn device_has_the_identity_of_its_link_and_loses_it_with_its_owner() {
    let bench = LoginBench::new();
    let own = bench.log_in(LoginOwner::Operator);
    let tenant = bench.log_in(LoginOwner::Tenant("acme".into()));
    let identity = |it: &NewLogin| bench.logins.authenticate(&it.device.id, &it.secret);
    assert_eq!(identity(&own).map(|it| it.0), Some(PeerIdentity::Operator));
    let Some((PeerIdentity::Tenant(found), _)) = identity(&tenant) else { panic!("no tenant") };
    assert_eq!(&*found.name, "acme");
    bench.has_tenant.store(false, Ordering::Relaxed);
    assert!(!bench.is_accepted(&tenant) && bench.is_accepted(&own));
    let link = bench.logins.create_link(LoginOwner::Operator).unwrap();
    BearerToken::replace(&bench.dir.path().join("token")).unwrap();
    assert!(!bench.is_accepted(&own), "the token was replaced");
    let late = bench.logins.log_in(&link.code, "x", None, PEER);
    assert!(matches!(late, Err(LoginRefusal::InvalidCode)), "its link, too");
    assert_eq!(bench.logins.devices(), []);
}

#[test]
fn browser_that_logs_in_again_keeps_its_place_and_gets_a_new_secret() {
    let bench = LoginBench::new();
    let first = bench.log_in(LoginOwner::Operator);
    let (_, session) = bench.logins.authenticate(&first.device.id, &first.secret).unwrap();
    let code = |owner| bench.logins.create_link(owner).unwrap().code;
    let again = code(LoginOwner::Operator);
    let second = bench.logins.log_in(&again, "Other", Some(&session), PEER).unwrap();
    assert_eq!((&second.device.id, second.device.name.as_str()), (&first.device.id, "Phone"));
    assert!(bench.is_accepted(&second) && !bench.is_accepted(&first));
    let acme = code(LoginOwner::Tenant("acme".into()));
    let third = bench.logins.log_in(&acme, "Other", Some(&session), PEER).unwrap();
    assert_ne!(third.device.id, first.device.id, "it belongs to another owner");
    assert!(bench.is_accepted(&second));
}

#[test]
fn one_owner_cannot_use_up_the_devices_of_another() {
    let mut logins = StoredLogins::default();
    let tenant = || OwnerRecord::Tenant("acme".into());
    for _ in 0..64 {
        logins.add_device(tenant(), "x", None, 1).unwrap();
    }
    assert_eq!(logins.add_device(tenant(), "x", None, 1).unwrap_err(), TooManyDevices);
    assert!(logins.add_device(operator(), "x", None, 1).is_ok());
    for _ in 0..100 {
        logins.create_link(tenant(), 1);
    }
    let stored = serde_json::to_value(&logins).unwrap();
    assert_eq!(stored["links"].as_array().unwrap().len(), 32);
}

#[tokio::test(start_paused = true)]
async fn revocation_by_another_process_ends_the_session_within_a_second() {
    let bench = LoginBench::new();
    let login = bench.log_in(LoginOwner::Operator);
    let (_, session) = bench.logins.authenticate(&login.device.id, &login.secret).unwrap();
    let revoked = session.wait_revoked();
    tokio::pin!(revoked);
    let early = tokio::time::timeout(Duration::from_mins(5), &mut revoked).await;
    assert!(early.is_err(), "the device is still valid");
    let token = BearerToken::read(&bench.dir.path().join("token")).unwrap();
    let command =
        DeviceLogins::new(&bench.file(), ClientAuthenticator::from(&token), Arc::new(|_| None));
    assert!(command.rename_device(&login.device.id, "Tablet").unwrap().is_some());
    assert_eq!(bench.logins.devices()[0].name, "Tablet");
    assert!(command.revoke_device(&login.device.id).unwrap().is_some());
    assert!(command.revoke_device(&login.device.id).unwrap().is_none());
    tokio::time::timeout(Duration::from_secs(1), revoked).await.expect("the session ends");
    assert!(!bench.is_accepted(&login));
}

#[test]
fn damaged_file_logs_out_all_devices_and_is_not_overwritten() {
    let bench = LoginBench::new();
    let login = bench.log_in(LoginOwner::Operator);
    std::fs::write(bench.file(), "{").unwrap();
    assert!(!bench.is_accepted(&login));
    let error = bench.logins.create_link(LoginOwner::Operator).unwrap_err().to_string();
    assert!(error.contains("is damaged, remove it"), "{error}");
    assert_eq!(std::fs::read_to_string(bench.file()).unwrap(), "{");
}

#[test]
fn device_name_is_visible_text_of_limited_length() {
    for good in ["Phone", "Firefox on Linux", "é"] {
        assert!(is_device_name(good), "{good}");
    }
    let long = "x".repeat(65);
    for bad in ["", " ", "a\nb", "a\u{202e}b", "\u{200b}", " x", long.as_str()] {
        assert!(!is_device_name(bad), "{bad:?}");
    }
    let named =
        |it: &str| StoredLogins::default().add_device(operator(), it, None, 1).unwrap().device.name;
    assert_eq!([named("\u{1b}[31mX\u{202e}"), named(" \n")], ["[31mX", "a browser"]);
}

#[test]
fn subscription_belongs_to_its_device_and_is_dropped_with_it_or_when_it_expires() {
    let bench = LoginBench::new();
    let (own, tenant) =
        (bench.log_in(LoginOwner::Operator), bench.log_in(LoginOwner::Tenant("acme".into())));
    let subscription = |endpoint: &str| PushSubscription {
        endpoint: endpoint.to_owned(),
        p256dh: "key".to_owned(),
        auth: "auth".to_owned(),
    };
    let subscribe = |login: &NewLogin, endpoint: &str| {
        bench.logins.set_subscription(&login.device.id, Some(subscription(endpoint))).unwrap();
    };
    assert!(!bench.logins.has_subscriptions());
    subscribe(&own, "one");
    subscribe(&tenant, "two");
    let endpoints = |tenant: Option<&str>| -> Vec<String> {
        let devices = bench.logins.subscribed_devices(tenant);
        devices.into_iter().map(|it| it.subscription.endpoint).collect()
    };
    assert_eq!(
        (endpoints(None), endpoints(Some("acme"))),
        (vec!["one".into()], vec!["two".into()])
    );
    assert_eq!(endpoints(Some("other")), [""; 0]);
    subscribe(&own, "three");
    bench.logins.drop_subscription(&own.device.id, "one").unwrap();
    assert_eq!(endpoints(None), ["three"], "another subscription has expired");
    bench.logins.drop_subscription(&own.device.id, "three").unwrap();
    assert_eq!(endpoints(None), [""; 0]);
    bench.logins.revoke_device(&tenant.device.id).unwrap();
    assert!(!bench.logins.has_subscriptions());
}
