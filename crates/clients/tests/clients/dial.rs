//! Reaching a daemon: there, not there, not yet there.

use crate::desk::{Desk, Home, beside, frame, within};
use jackfield_clients::{Address, DialError, Listener, dial, dial_blocking, dial_until_up};
use std::error::Error as _;
use std::os::unix::net::UnixListener;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(30);

#[tokio::test]
async fn an_absent_daemon_is_told_from_other_trouble() {
    let home = Home::new();
    let error = dial(&home.address(), None).await.unwrap_err();
    assert!(error.is_absent(), "no file: {error:?}");
    drop(UnixListener::bind(home.path()).unwrap());
    assert!(dial(&home.address(), None).await.unwrap_err().is_absent(), "nobody listens");
    assert!(dial_blocking(&home.address(), None).unwrap_err().is_absent());
    assert!(error.to_string().starts_with("no daemon answers on `unix:///"), "{error}");

    let below = Address::Unix(home.path().join("socket"));
    assert!(!dial_blocking(&below, None).unwrap_err().is_absent(), "not a folder");
    let long = Address::Unix(home.dir.path().join("x".repeat(200)));
    assert!(!dial_blocking(&long, None).unwrap_err().is_absent(), "too long a path");
}

#[tokio::test]
async fn an_absent_daemon_on_tcp_is_absent_too() {
    let home = Home::new();
    let listener = home.tcp();
    let address = listener.address().clone();
    drop(listener);
    assert!(dial(&address, Some(&home.token())).await.unwrap_err().is_absent());
    assert!(dial_blocking(&address, Some(&home.token())).unwrap_err().is_absent());
}

#[tokio::test]
async fn a_token_is_not_sent_into_the_network_and_not_forgotten() {
    let home = Home::new();
    let token = home.token();
    let far = "tcp://192.0.2.1:7777".parse().unwrap();
    for error in
        [dial(&far, Some(&token)).await.unwrap_err(), dial_blocking(&far, None).unwrap_err()]
    {
        assert!(error.to_string().contains("without TLS"), "{error}");
    }
    let near = "tcp://127.0.0.1:1".parse().unwrap();
    let error = dial_blocking(&near, None).unwrap_err();
    assert!(matches!(error, DialError::NeedsToken { .. }), "{error}");
    assert!(matches!(dial(&Address::Stdio, None).await, Err(DialError::Undialled { .. })));
    assert!(matches!(dial_blocking(&Address::Stdio, None), Err(DialError::Undialled { .. })));
}

#[tokio::test]
async fn who_stops_talking_still_hears_and_who_is_dropped_is_gone() {
    let home = Home::new();
    let mut listener = Listener::bind(&home.address(), None).unwrap();
    for (finishes, expected) in [(true, "Finished"), (false, "Gone")] {
        let mut desk = Desk::new();
        let stream = dial(&home.address(), None).await.unwrap();
        let (mut hearing, mut speaking) = stream.talk(1 << 20);
        let mut handle = desk.open(within(listener.accept()).await.unwrap(), 1).await;
        if finishes {
            speaking.finish();
        }
        drop(speaking);
        assert_eq!(format!("{:?}", desk.next().await.1), expected);
        handle.send(frame(7, 0));
        handle.flush();
        let heard = within(hearing.next()).await.unwrap();
        assert_eq!(heard, finishes.then(|| frame(7, 0)));
    }
}

#[tokio::test]
async fn a_daemon_that_starts_is_waited_for() {
    let home = Home::new();
    let address = home.address();
    let (looked, mut looks) = tokio::sync::mpsc::channel(1);
    let dialled = beside(move || {
        dial_until_up(&address, None, LONG, || {
            let _ = looked.try_send(());
            Ok(())
        })
    });
    within(looks.recv()).await.expect("it looks before there is anybody");
    let mut listener = Listener::bind(&home.address(), None).unwrap();
    dialled.await.unwrap();
    within(listener.accept()).await.unwrap();
}

#[test]
fn the_wait_for_a_daemon_has_an_end() {
    let home = Home::new();
    let within = Duration::from_millis(20);
    let error = dial_until_up(&home.address(), None, within, || Ok(())).unwrap_err();
    assert!(error.to_string().contains("within 20 ms"), "{error}");
    assert!(error.source().unwrap().to_string().starts_with("no daemon answers on"));
}

#[test]
fn the_wait_ends_when_the_daemon_that_was_started_has_ended() {
    let home = Home::new();
    let ended = || Err("exit status 1".to_owned());
    let error = dial_until_up(&home.address(), None, LONG, ended).unwrap_err();
    assert!(error.to_string().ends_with("did not start: exit status 1"), "{error}");
}

#[test]
fn trouble_that_waiting_does_not_cure_is_not_waited_for() {
    let error = dial_until_up(&Address::Stdio, None, LONG, || panic!("no use")).unwrap_err();
    assert!(matches!(error, DialError::Undialled { .. }));
}
