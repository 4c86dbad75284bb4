//! A server with a full disk.

use super::raw::RawClient;
use jackfield_test_support::nats::Cluster;
use std::{fs, time::Duration};

const SIZE: u64 = 32 * 1024 * 1024;

#[test]
fn full_disk_acknowledges_nothing_until_space_is_free_and_server_restarts() {
    let Some(mut cluster) = Cluster::start_with_small_disk(1, 0, SIZE) else { return };
    let mut client = RawClient::connect(&cluster.urls()[0]);
    client.create_stream("kept", 1);
    assert_eq!(client.request("kept", "fits")["seq"], 1);
    cluster.fill_disk();
    let message = "x".repeat(1024 * 1024);
    let response = client.try_request("kept", &message, Duration::from_secs(1));
    assert!(response.is_none(), "the server does not respond: {response:?}");
    assert!(cluster.servers()[0].said().contains("no space left on device"));
    cluster.empty_disk();
    assert!(client.try_request("kept", "fits", Duration::from_secs(1)).is_none(), "nor later");
    assert!(!cluster.servers()[0].is_healthy());
    cluster.stop(0);
    cluster.restart(0);
    cluster.wait_until_well();
    let mut client = RawClient::connect(&cluster.urls()[0]);
    assert_eq!(client.request("kept", &message)["seq"], 2, "the first one is still there");
}

#[test]
fn dropped_small_disk_is_removed() {
    let mounts = || fs::read_to_string("/proc/mounts").unwrap();
    let Some(cluster) = Cluster::start_with_small_disk(1, 0, SIZE) else { return };
    let words =
        fs::read_to_string(format!("/proc/{}/cmdline", cluster.servers()[0].pid().unwrap()));
    let words = words.unwrap();
    let dir = words.split('\0').find_map(|it| it.split_once("/server-")).unwrap().0.to_owned();
    assert!(mounts().contains(&dir));
    drop(cluster);
    assert!(!mounts().contains(&dir));
    assert!(!fs::exists(dir).unwrap());
}
