//! Which actions of clients are audited.

use super::*;

fn action(method: &str, session: &str) -> ClientAction {
    let (client, session) = (Some("emacs".to_owned()), Some(session.into()));
    let (tenant, answer, refused) = Default::default();
    ClientAction { conn: A, tenant, client, method: method.to_owned(), session, answer, refused }
}

#[test]
fn opening_prompting_answering_and_errors_are_audited_reading_is_not() {
    let mut fixture = GatewayFixture::new();
    let initialize = json!({ "protocolVersion": 1, "clientInfo": { "name": "emacs" } });
    let (_, host_conn, relayed) = fixture.relay(A, &request(&json!(0), "initialize", &initialize));
    fixture.respond(host_conn, &relayed, &json!({ "protocolVersion": 1 }));
    let host_conn = fixture.open_session(A, "s-1");
    assert_eq!(fixture.actions, [action("session/new", "s-1")]);

    let prompt = request(&json!(2), "session/prompt", &json!({ "sessionId": "s-1", "prompt": [] }));
    let (_, _, relayed) = fixture.relay(A, &prompt);
    let ask = json!({ "id": 9, "method": "session/request_permission", "params": { "sessionId": "s-1" } });
    fixture.send_from_host(host_conn, &ask);
    let (_, forwarded) = fixture.last_client_frame();
    let outcome = json!({ "outcome": { "outcome": "selected", "optionId": "allow" } });
    fixture.send_from_client(A, &json!({ "id": forwarded["id"], "result": outcome }));
    let answer = Some("allow".to_owned());
    let chosen = ClientAction { answer, ..action("session/request_permission", "s-1") };
    assert_eq!(fixture.actions[1..], [chosen]);

    let fault = json!({ "code": -31006, "message": "no", "data": { "jackfield": { "code": "interrupted" } } });
    fixture.send_from_host(host_conn, &json!({ "id": relayed["id"], "error": fault }));
    let refused = Some("interrupted".to_owned());
    assert_eq!(fixture.actions[2..], [ClientAction { refused, ..action("session/prompt", "s-1") }]);

    fixture.send_from_client(A, &request(&json!(3), "session/list", &json!({})));
    assert_eq!(fixture.actions.len(), 3, "reading is not audited");
}
