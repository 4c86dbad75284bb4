//! What is told of clients, for whoever keeps it.

use super::*;

fn deed(method: &str, session: &str) -> ClientAction {
    let (client, session) = (Some("emacs".to_owned()), Some(session.into()));
    let (tenant, answer, refused) = Default::default();
    ClientAction { conn: A, tenant, client, method: method.to_owned(), session, answer, refused }
}

#[test]
fn what_is_opened_said_chosen_and_refused_is_told_and_looking_is_not() {
    let mut scene = Scene::new();
    let hello = json!({ "protocolVersion": 1, "clientInfo": { "name": "emacs" } });
    let (_, host_conn, asked) = scene.ask(A, &request(&json!(0), "initialize", &hello));
    scene.answer(host_conn, &asked, &json!({ "protocolVersion": 1 }));
    let host_conn = scene.open(A, "s-1");
    assert_eq!(scene.deeds, [deed("session/new", "s-1")]);

    let prompt = request(&json!(2), "session/prompt", &json!({ "sessionId": "s-1", "prompt": [] }));
    let (_, _, asked) = scene.ask(A, &prompt);
    let ask = json!({ "id": 9, "method": "session/request_permission", "params": { "sessionId": "s-1" } });
    scene.host_says(host_conn, &ask);
    let (_, heard) = scene.last();
    let outcome = json!({ "outcome": { "outcome": "selected", "optionId": "allow" } });
    scene.say(A, &json!({ "id": heard["id"], "result": outcome }));
    let answer = Some("allow".to_owned());
    let chosen = ClientAction { answer, ..deed("session/request_permission", "s-1") };
    assert_eq!(scene.deeds[1..], [chosen]);

    let fault = json!({ "code": -31006, "message": "no", "data": { "jackfield": { "code": "interrupted" } } });
    scene.host_says(host_conn, &json!({ "id": asked["id"], "error": fault }));
    let refused = Some("interrupted".to_owned());
    assert_eq!(scene.deeds[2..], [ClientAction { refused, ..deed("session/prompt", "s-1") }]);

    scene.say(A, &request(&json!(3), "session/list", &json!({})));
    assert_eq!(scene.deeds.len(), 3, "who looks does nothing");
}
