//! Hosts that no rule names.

use crate::test_host::TestHost;
use crate::test_proxy::{TestProxy, rules, within_time_limit};
use jackfield_network_proxy::HostAnswer;
use std::time::Duration;

#[tokio::test]
async fn ten_connections_to_an_unknown_host_ask_once_and_share_the_answer() {
    let mut proxy = TestProxy::start(&[]);
    let mut clients = Vec::new();
    for _ in 0..10 {
        let mut client = proxy.dial().await;
        client.send("CONNECT new.test:443 HTTP/1.1\r\n\r\n").await;
        clients.push(client);
    }
    let question = within_time_limit(proxy.questions.recv()).await.unwrap();
    assert_eq!((question.host.as_str(), question.port), ("new.test", 443));
    question.reply.send(HostAnswer::RefuseSession).unwrap();
    for client in &mut clients {
        let response = client.read_to_end().await;
        assert!(response.contains("Reason: the user refused it."), "{response}");
    }
    assert!(proxy.questions.try_recv().is_err(), "there is one question");
    assert!(proxy.resolver.take_queries().is_empty());
    let expected = "new.test:443 Refused(UserRefused)".to_owned();
    assert_eq!(proxy.take_reports(), vec![expected; 10]);
}

#[tokio::test]
async fn allowed_host_is_reached_and_asked_about_again_unless_for_the_session() {
    // Names of the public internet have no addresses here: what is observed is that they are resolved.
    let mut proxy = TestProxy::start(&[]);
    for (answer, reason) in
        [(HostAnswer::AllowOnce, "AnswerOnce"), (HostAnswer::AllowSession, "AnswerSession")]
    {
        let mut client = proxy.dial().await;
        client.send("GET http://new.test/ HTTP/1.1\r\nHost: new.test\r\n\r\n").await;
        let question = within_time_limit(proxy.questions.recv()).await.unwrap();
        assert_eq!((question.host.as_str(), question.port), ("new.test", 80));
        question.reply.send(answer).unwrap();
        assert!(client.read_to_end().await.contains("the name has no address"));
        assert_eq!(proxy.take_reports(), [format!("new.test:80 Allowed({reason})")]);
    }
    let request = "GET http://new.test/ HTTP/1.1\r\nHost: new.test\r\n\r\n";
    assert!(proxy.exchange(request).await.contains("the name has no address"));
    assert_eq!(proxy.resolver.take_queries(), ["new.test"; 3]);
}

#[tokio::test]
async fn question_without_an_answer_ends_with_a_refusal() {
    let mut proxy = TestProxy::start_with(rules(&[], false), |config| {
        config.limits.question_timeout = Duration::from_millis(20);
    });
    let response = proxy.exchange("CONNECT new.test:443 HTTP/1.1\r\n\r\n").await;
    assert!(response.contains("the user did not answer in time"), "{response}");
    assert!(within_time_limit(proxy.questions.recv()).await.unwrap().reply.is_closed());
}

#[tokio::test]
async fn question_is_withdrawn_when_its_connection_closes() {
    let host = TestHost::bind().await;
    let target = format!("a.test:{}", host.port);
    let mut proxy = TestProxy::start(&[&target]);
    let mut client = proxy.dial().await;
    client.send("CONNECT new.test:443 HTTP/1.1\r\n\r\n").await;
    let mut question = within_time_limit(proxy.questions.recv()).await.unwrap();
    drop(client);
    within_time_limit(question.reply.closed()).await;
}
