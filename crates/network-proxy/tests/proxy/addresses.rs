//! Which addresses a name may have.

use crate::test_host::TestHost;
use crate::test_proxy::{TestProxy, rules};
use jackfield_network_proxy::{HostRule, HostRules};

/// The response to a `CONNECT` to this target.
async fn connect(proxy: &TestProxy, target: &str) -> String {
    let mut client = proxy.dial().await;
    client.send(&format!("CONNECT {target} HTTP/1.1\r\n\r\n")).await;
    let head = client.read_until("\r\n\r\n").await;
    if head.starts_with("HTTP/1.1 200 ") { head } else { head + &client.read_to_end().await }
}

#[tokio::test]
async fn name_with_an_address_that_is_not_public_is_refused() {
    let mut proxy = TestProxy::start_with(rules(&["*.test"], false), |_| {});
    for (index, (address, class)) in [
        ("127.0.0.1", "loopback"),
        ("10.0.0.1", "private"),
        ("192.168.1.1", "private"),
        ("100.64.0.1", "shared network"),
        ("169.254.169.254", "link-local"),
        ("0.0.0.0", "unspecified"),
        ("224.0.0.1", "multicast"),
        ("::1", "loopback"),
        ("::ffff:10.0.0.1", "private"),
        ("fd00::1", "private"),
        ("fe80::1", "link-local"),
        ("64:ff9b::a9fe:a9fe", "link-local"),
        ("2002:7f00:1::", "loopback"),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("n{index}.test");
        proxy.resolver.add_answer(&name, &[address]);
        let response = connect(&proxy, &format!("{name}:443")).await;
        assert!(response.starts_with("HTTP/1.1 403 "), "{address}: {response}");
        let expected = format!("Reason: it has the {class} address {address}, which no rule");
        assert!(response.contains(&expected), "{response}");
        assert!(proxy.take_reports()[0].contains("Refused(NotPublic"), "{address}");
    }
}

#[tokio::test]
async fn address_in_the_request_needs_a_rule_that_names_it() {
    let host = TestHost::bind().await;
    let named = format!("127.0.0.1:{}", host.port);
    let mut proxy = TestProxy::start_with(rules(&[&named, "*.test"], false), |_| {});
    for target in [named.clone(), format!("[::ffff:127.0.0.1]:{}", host.port)] {
        assert!(connect(&proxy, &target).await.starts_with("HTTP/1.1 200 "), "{target}");
    }
    for target in ["127.0.0.1:1", "127.0.0.2:80", "169.254.169.254:80", "[::1]:80", "1.1.1.1:443"] {
        let response = connect(&proxy, target).await;
        assert!(response.contains("no rule names this address"), "{target}: {response}");
    }
    assert!(proxy.questions.try_recv().is_err(), "addresses are not asked about");
}

#[tokio::test]
async fn connection_goes_to_the_address_that_was_checked() {
    let host = TestHost::bind().await;
    let target = format!("changing.test:{}", host.port);
    let named = format!("127.0.0.1:{}", host.port);
    let proxy = TestProxy::start_with(rules(&[&target, &named], false), |_| {});
    // The first answer has one permitted address. All later answers would lead elsewhere.
    proxy.resolver.add_answer("changing.test", &["192.168.77.1", "127.0.0.1", "fd00::1"]);
    proxy.resolver.add_answer("changing.test", &["127.0.0.9", "169.254.169.254"]);
    assert!(connect(&proxy, &target).await.starts_with("HTTP/1.1 200 "));
    host.accept().await;
    assert_eq!(proxy.resolver.take_queries(), ["changing.test"], "there is one query");
    let response = connect(&proxy, &target).await;
    assert!(response.contains("the loopback address 127.0.0.9"), "{response}");
    assert!(host.has_no_connection().await);
}

#[tokio::test]
async fn answer_of_the_user_does_not_permit_private_addresses() {
    let mut proxy = TestProxy::start_with(HostRules::default(), |_| {});
    let mut client = proxy.dial().await;
    client.send("CONNECT a.test:443 HTTP/1.1\r\n\r\n").await;
    let question = proxy.questions.recv().await.unwrap();
    question.reply.send(jackfield_network_proxy::HostAnswer::AllowSession).unwrap();
    let response = client.read_to_end().await;
    assert!(response.contains("add its address to the allowed hosts"), "{response}");
}

#[tokio::test]
async fn refused_address_wins_over_an_allowed_name() {
    let host = TestHost::bind().await;
    let target = format!("a.test:{}", host.port);
    let rule = HostRule { pattern: target.parse().unwrap(), private: true };
    let rules = HostRules { allowed: vec![rule], refused: vec!["127.0.0.1".parse().unwrap()] };
    let proxy = TestProxy::start_with(rules, |_| {});
    let response = connect(&proxy, &target).await;
    let expected = "it has the address 127.0.0.1, which the rule `127.0.0.1` refuses";
    assert!(response.contains(expected), "{response}");
    assert!(host.has_no_connection().await);
}
