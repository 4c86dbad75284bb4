//! Dialing a daemon that is running, absent or starting.

use crate::harness::{EventCollector, SocketFolder, frame, start_blocking, within};
use jackfield_transport::{
    ClientListener, DialError, EndpointAddress, dial_daemon, dial_daemon_blocking, dial_until_ready,
};
use std::error::Error as _;
use std::os::unix::net::UnixListener;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(30);

#[tokio::test]
async fn absent_daemon_is_distinguished_from_other_errors() {
    let folder = SocketFolder::new();
    let error = dial_daemon(&folder.address(), None).await.unwrap_err();
    assert!(error.is_absent(), "no file: {error:?}");
    drop(UnixListener::bind(folder.path()).unwrap());
    assert!(dial_daemon(&folder.address(), None).await.unwrap_err().is_absent(), "nobody listens");
    assert!(dial_daemon_blocking(&folder.address(), None).unwrap_err().is_absent());
    assert!(error.to_string().starts_with("no daemon answers on `unix:///"), "{error}");

    let below = EndpointAddress::Unix(folder.path().join("socket"));
    assert!(!dial_daemon_blocking(&below, None).unwrap_err().is_absent(), "not a folder");
    let long = EndpointAddress::Unix(folder.dir.path().join("x".repeat(200)));
    assert!(!dial_daemon_blocking(&long, None).unwrap_err().is_absent(), "too long a path");
}

#[tokio::test]
async fn absent_daemon_on_tcp_is_reported_as_absent() {
    let folder = SocketFolder::new();
    let listener = folder.tcp();
    let address = listener.address().clone();
    drop(listener);
    assert!(dial_daemon(&address, Some(&folder.token())).await.unwrap_err().is_absent());
    assert!(dial_daemon_blocking(&address, Some(&folder.token())).unwrap_err().is_absent());
}

#[tokio::test]
async fn token_is_required_and_never_sent_over_the_network() {
    let folder = SocketFolder::new();
    let token = folder.token();
    let far = "tcp://192.0.2.1:7777".parse().unwrap();
    for error in [
        dial_daemon(&far, Some(&token)).await.unwrap_err(),
        dial_daemon_blocking(&far, None).unwrap_err(),
    ] {
        assert!(error.to_string().contains("without TLS"), "{error}");
    }
    let near = "tcp://127.0.0.1:1".parse().unwrap();
    let error = dial_daemon_blocking(&near, None).unwrap_err();
    assert!(matches!(error, DialError::NeedsToken { .. }), "{error}");
    assert!(matches!(
        dial_daemon(&EndpointAddress::Stdio, None).await,
        Err(DialError::Unsupported { .. })
    ));
    assert!(matches!(
        dial_daemon_blocking(&EndpointAddress::Stdio, None),
        Err(DialError::Unsupported { .. })
    ));
}

#[tokio::test]
async fn finished_sender_still_receives_and_dropped_sender_closes() {
    let folder = SocketFolder::new();
    let mut listener = ClientListener::bind(&folder.address(), None).unwrap();
    for (finishes, expected) in [(true, "Finished"), (false, "Gone")] {
        let mut collector = EventCollector::new();
        let stream = dial_daemon(&folder.address(), None).await.unwrap();
        let (mut hearing, mut speaking) = stream.into_frame_halves(1 << 20);
        let mut handle = collector.open(within(listener.accept()).await.unwrap(), 1).await;
        if finishes {
            speaking.finish();
        }
        drop(speaking);
        assert_eq!(format!("{:?}", collector.next().await.1), expected);
        handle.send(frame(7, 0));
        handle.flush();
        let heard = within(hearing.next_frame()).await.unwrap();
        assert_eq!(heard, finishes.then(|| frame(7, 0)));
    }
}

#[tokio::test]
async fn dial_waits_for_a_starting_daemon() {
    let folder = SocketFolder::new();
    let address = folder.address();
    let (looked, mut looks) = tokio::sync::mpsc::channel(1);
    let accept_dialed = start_blocking(move || {
        dial_until_ready(&address, None, LONG, || {
            let _ = looked.try_send(());
            Ok(())
        })
    });
    within(looks.recv()).await.expect("it looks before there is anybody");
    let mut listener = ClientListener::bind(&folder.address(), None).unwrap();
    accept_dialed.await.unwrap();
    within(listener.accept()).await.unwrap();
}

#[test]
fn dial_gives_up_after_its_timeout() {
    let folder = SocketFolder::new();
    let within = Duration::from_millis(20);
    let error = dial_until_ready(&folder.address(), None, within, || Ok(())).unwrap_err();
    assert!(error.to_string().contains("within 20 ms"), "{error}");
    assert!(error.source().unwrap().to_string().starts_with("no daemon answers on"));
}

#[test]
fn dial_stops_waiting_when_the_started_daemon_has_exited() {
    let folder = SocketFolder::new();
    let ended = || Err("exit status 1".to_owned());
    let error = dial_until_ready(&folder.address(), None, LONG, ended).unwrap_err();
    assert!(error.to_string().ends_with("did not start: exit status 1"), "{error}");
}

#[test]
fn permanent_error_is_returned_without_waiting() {
    let error =
        dial_until_ready(&EndpointAddress::Stdio, None, LONG, || panic!("no use")).unwrap_err();
    assert!(matches!(error, DialError::Unsupported { .. }));
}
