//! What Jackfield does not know it carries: every byte but the ids arrives as it was sent, in both
//! directions, live and out of the journal.

use jackfield_e2e::{Client, Home, client::PATIENCE, wait_for};
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    time::Instant,
};

/// Odd ways to write a value, all of them good JSON.
const ODDITIES: &str = concat!(
    r#""half":1.50,"thousand":1e3,"minus":-0.0,"most":18446744073709551615,"#,
    r#""least":-9223372036854775808,"more":123456789012345678901234567890.10E-5,"#,
    r#""escapes":"\u0041\/\ud83d\ude00\t\u0000é","dup":1,"dup":{"dup":[]},"dup":null,"#,
    " \"space\" : [ 1 ,\t2 ] , \"k\\u0065y\":true,\"_meta\":{\"z\":0.10,\"a\":[{}]}"
);

/// Frames with `{odd}` for the oddities and `{sid}` for the session.
const UPDATES: &[&str] = &[
    r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"{sid}","update":{"sessionUpdate":"from_the_future",{odd}}}}"#,
    r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"{sid}","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"plain","text":"twice",{odd}},{odd}},{odd}},{odd}}"#,
    r#"{"params":{"update":{{odd},"sessionUpdate":"plan"},"sessionId":"{sid}"},"extra":{{odd}},"method":"session\/update","jsonrpc":"2.0"}"#,
    r#"{"jsonrpc":"2.0","method":"session/update","params":{"session\u0049d":"{sid}","update":{"sessionUpdate":17}}}"#,
    "{ \"method\" :\t\"session/update\" , \"params\":{\"sessionId\"\t: \"{sid}\" ,\"update\" : { } } }",
];

/// Notifications that nobody knows: they pass by and are not kept.
const NOTICES: &[&str] = &[
    r#"{"jsonrpc":"2.0","method":"_odd/notice","params":{"sessionId":"{sid}",{odd}}}"#,
    r#"{"jsonrpc":"2.0","method":"odd/notice","params":{{odd}},"extra":1.50}"#,
    r#"{"jsonrpc":"2.0","method":"_odd/list","params":[1e3,{{odd}}]}"#,
    r#"{"jsonrpc":"2.0","method":"_odd/bare"}"#,
];

fn fill(template: &str, session: &str) -> String {
    template.replace("{odd}", ODDITIES).replace("{sid}", session)
}

/// A client that keeps every line as it was written.
struct Reader {
    client: Client,
    lines: Vec<String>,
}

impl Reader {
    fn new(home: &Home, agent: Option<&[String]>) -> Reader {
        let mut client = home.dial();
        match agent {
            Some(argv) => drop(client.connect(argv)),
            None => drop(client.hello()),
        }
        Reader { client, lines: Vec::new() }
    }

    fn until(&mut self, what: &str, is_it: impl Fn(&str) -> bool) -> String {
        let begin = Instant::now();
        loop {
            let left = PATIENCE.checked_sub(begin.elapsed()).unwrap_or_default();
            let Some(line) = self.client.next_line(left) else {
                panic!("waited in vain for {what}; heard {:#?}", self.lines);
            };
            self.lines.push(line.clone());
            if is_it(&line) {
                return line;
            }
        }
    }

    /// Sends a request under an id that occurs in no other line, and waits for its answer.
    fn ask(&mut self, id: &str, method: &str, params: &Value) -> String {
        let frame = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.client.send_line(&frame.to_string());
        self.answer(id)
    }

    fn answer(&mut self, id: &str) -> String {
        let id = format!("\"id\":{}", Value::from(id));
        self.until("an answer", |line| line.contains(&id))
    }

    fn prompt(&mut self, id: &str, session: &str, text: &str) -> String {
        let prompt = json!([{ "type": "text", "text": text }]);
        self.ask(id, "session/prompt", &json!({ "sessionId": session, "prompt": prompt }))
    }

    fn load(&mut self, session: &str, cwd: &Path) -> String {
        let params = json!({ "sessionId": session, "cwd": cwd, "mcpServers": [] });
        self.ask("the load", "session/load", &params)
    }

    fn heard(&self, marks: &[&str]) -> Vec<&str> {
        let lines = self.lines.iter().map(String::as_str);
        lines.filter(|line| marks.iter().all(|it| line.contains(it))).collect()
    }
}

fn raw(frames: impl IntoIterator<Item = String>) -> String {
    let lines: Vec<String> = frames.into_iter().map(|it| format!("raw {it}")).collect();
    lines.join("\n")
}

#[test]
fn what_an_agent_says_arrives_byte_for_byte_live_and_out_of_the_journal() {
    let home = Home::new();
    let daemon = home.serve(&[]);
    let mut driver = Reader::new(&home, Some(&home.fake_agent(&[])));
    let session = driver.client.open(home.path());
    let mut other = Reader::new(&home, None);
    other.load(&session, home.path());

    let odd = |it: &&str| it.replace("{odd}", ODDITIES);
    driver.prompt("the turn", &session, &raw(UPDATES.iter().chain(NOTICES).map(odd)));
    let updates: Vec<String> = UPDATES.iter().map(|it| fill(it, &session)).collect();
    let notices: Vec<String> = NOTICES.iter().map(|it| fill(it, &session)).collect();
    let live: Vec<&str> = driver.lines[..driver.lines.len() - 1].iter().map(|it| &**it).collect();
    let said: Vec<&str> = updates.iter().chain(&notices).map(|it| &**it).collect();
    assert_eq!(live, said);
    other.until("the last notice", |line| line == notices.last().unwrap());
    assert_eq!(&other.lines[2..], &said[..], "everyone attached hears the same");

    let mut reader = Reader::new(&home, None);
    reader.load(&session, home.path());
    assert_eq!(&reader.lines[1..=updates.len()], &updates[..], "from the journal");
    daemon.kill_9();
    let daemon = home.serve(&[]);
    let mut reader = Reader::new(&home, None);
    reader.load(&session, home.path());
    assert_eq!(&reader.lines[1..=updates.len()], &updates[..], "from the journal of a dead daemon");
    assert_eq!(reader.lines.len(), updates.len() + 2, "the prompt, the updates, the answer");
    drop((driver, other, reader));
    daemon.stop();
}

/// An agent whose stdin is written down: `tee` stands before it.
struct Wiretap {
    file: PathBuf,
    argv: Vec<String>,
}

impl Wiretap {
    fn new(home: &Home) -> Wiretap {
        let file = home.path().join("stdin");
        let shell = ["/bin/sh", "-c", r#"tee "$0" | "$@""#];
        let mut argv: Vec<String> = shell.map(str::to_owned).into();
        argv.push(file.to_string_lossy().into_owned());
        argv.extend(home.fake_agent(&[]));
        Wiretap { file, argv }
    }

    /// Waits for a line that is `template` with some number for `{id}`; the number.
    fn number_in(&self, template: &str) -> String {
        let (head, tail) = template.split_once("{id}").expect("the template has an id");
        wait_for(template, PATIENCE, || {
            let stdin = fs::read_to_string(&self.file).unwrap_or_default();
            let id = stdin.lines().find_map(|it| it.strip_prefix(head)?.strip_suffix(tail));
            id.filter(|it| it.bytes().all(|it| it.is_ascii_digit())).map(str::to_owned)
        })
    }

    fn has(&self, line: &str) {
        wait_for(line, PATIENCE, || {
            let stdin = fs::read_to_string(&self.file).unwrap_or_default();
            stdin.lines().any(|it| it == line).then_some(())
        });
    }
}

/// The session as its agent calls it.
fn agents_own(client: &mut Client) -> String {
    let rows = client.result("_jackfield/sessions", &json!({}));
    rows["sessions"][0]["agentSession"].as_str().expect("one session").to_owned()
}

#[test]
fn what_a_client_says_arrives_byte_for_byte() {
    let home = Home::new();
    let daemon = home.serve(&[]);
    let tap = Wiretap::new(&home);
    let mut reader = Reader::new(&home, Some(&tap.argv));
    let session = reader.client.open(home.path());
    let theirs = agents_own(&mut reader.client);
    let requests = [
        r#"{"jsonrpc":"2.0","id":{id},"method":"_odd/request","params":{"sessionId":"{sid}",{odd}}}"#,
        r#"{"jsonrpc":"2.0","id":{id},"method":"odd/request","params":{{odd}}}"#,
        r#"{"method":"_odd\/bare","extra":{{odd}},"id":{id}}"#,
        r#"{"jsonrpc":"2.0","id":{id},"method":"session/set_mode","params":{"modeId":"plan",{odd},"session\u0049d":"{sid}"}}"#,
        r#"{"jsonrpc":"2.0","id":{id},"method":"session/prompt","params":{"sessionId":"{sid}","prompt":[{"type":"text","text":"h\u0069",{odd}}],{odd}},"extra":1.50}"#,
    ];
    for (number, template) in requests.iter().enumerate() {
        let id = format!("question {number}");
        reader
            .client
            .send_line(&fill(template, &session).replace("{id}", &Value::from(&*id).to_string()));
        tap.number_in(&fill(template, &theirs));
        let answer = reader.answer(&id);
        let unknown = answer.contains("-32601");
        assert_eq!(unknown, number < 3, "the agent's own answer comes back: {answer}");
    }
    for template in NOTICES {
        reader.client.send_line(&fill(template, &session));
        tap.has(&fill(template, &theirs));
    }
    drop(reader);
    daemon.stop();
}

#[test]
fn an_agents_request_and_its_answer_keep_every_byte_but_the_id() {
    let home = Home::new();
    let daemon = home.serve(&[]);
    let tap = Wiretap::new(&home);
    let mut reader = Reader::new(&home, Some(&tap.argv));
    let session = reader.client.open(home.path());
    let asks = [
        // Passed to the driver.
        r#"{"jsonrpc":"2.0","id":{id},"method":"odd/ask","params":{"sessionId":"{sid}",{odd}},"extra":1.50}"#,
        // Written down, and asked of everyone.
        r#"{"id":{id},"params":{"options":[{"optionId":"a","name":"A","kind":"from_the_future",{odd}}],"toolCall":{"toolCallId":"t",{odd}},"sessionId":"{sid}",{odd}},"method":"session/request_permission"}"#,
    ];
    let answers = [
        r#"{"jsonrpc":"2.0","id":{id},"result":{{odd}},"extra":1.50}"#,
        r#"{"result":{"outcome":{"outcome":"selected","optionId":"a",{odd}},{odd}},"id":{id}}"#,
    ];
    let odd = |it: &str| it.replace("{odd}", ODDITIES);
    let ids = [r#""first \u0061sk""#, "-7"];
    let said = asks.iter().zip(ids).map(|(it, id)| odd(it).replace("{id}", id));
    let text = raw(said) + "\nhang";
    let prompt = json!([{ "type": "text", "text": text }]);
    reader.client.send("session/prompt", &json!({ "sessionId": session, "prompt": prompt }));
    for ((ask, answer), id) in asks.iter().zip(answers).zip(ids) {
        let ask = fill(ask, &session);
        let (head, tail) = ask.split_once("{id}").unwrap();
        let line = reader.until("the ask", |it| it.starts_with(head) && it.ends_with(tail));
        let ours = &line[head.len()..line.len() - tail.len()];
        assert!(ours.parse::<u64>().is_ok(), "an id of the hub's own: {line}");
        reader.client.send_line(&odd(answer).replace("{id}", ours));
        tap.has(&odd(answer).replace("{id}", id));
    }
    reader.client.notify("session/cancel", &json!({ "sessionId": session }));
    reader.until("the end of the turn", |it| it.contains("cancelled"));
    drop(reader);
    daemon.stop();
}

#[test]
fn answers_of_an_agent_keep_every_byte_but_the_id() {
    let home = Home::new();
    let daemon = home.serve(&[]);
    let tap = Wiretap::new(&home);
    let mut reader = Reader::new(&home, Some(&tap.argv));
    let session = reader.client.open(home.path());
    let theirs = agents_own(&mut reader.client);
    let question =
        r#"{"jsonrpc":"2.0","id":{id},"method":"_fake/hang","params":{"sessionId":"{sid}"}}"#;
    let answers = [
        r#"{"jsonrpc":"2.0","id":{id},"result":{"sessionId":"someone's",{odd}},"extra":1.50}"#,
        r#"{"error":{"code":-1e3,"message":"\u0041",{odd}},"id":{id},"jsonrpc":"2.0"}"#,
        r#"{ "id" : {id} ,"result":null , "error" : null }"#,
    ];
    for (number, template) in answers.iter().enumerate() {
        let answer = template.replace("{odd}", ODDITIES);
        let id = json!(format!("question {number}")).to_string();
        let asked = question.replace("{id}", &id).replace("{sid}", &session);
        // Each question differs, so that each has its own number at the agent.
        let mark = format!("\"{number}\":0,\"sessionId\"");
        reader.client.send_line(&asked.replace("\"sessionId\"", &mark));
        let at_agent = question.replace("{sid}", &theirs).replace("\"sessionId\"", &mark);
        let theirs_id = tap.number_in(&at_agent);
        reader.prompt(
            &format!("turn {number}"),
            &session,
            &raw([answer.replace("{id}", &theirs_id)]),
        );
        assert_eq!(reader.heard(&["question"]), [answer.replace("{id}", &id)]);
        reader.lines.clear();
    }
    let result = format!(r#"{{"stopReason":"from_the_future",{ODDITIES}}}"#);
    let answer = format!(r#"{{"jsonrpc":"2.0","id":{{id}},"result":{result}}}"#);
    let heard = reader.prompt("the last turn", &session, &raw([answer]));
    assert!(heard.contains(&format!("\"result\":{result}")), "{heard}");
    drop(reader);
    daemon.stop();
}

#[test]
fn what_an_agent_says_of_itself_and_of_a_new_session_is_kept() {
    let home = Home::new();
    let daemon = home.serve(&[]);
    let told = format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{{"protocolVersion":1,"agentCapabilities":{{"future":{{{ODDITIES}}}}},{ODDITIES}}}}}"#
    );
    let opened = format!(r#"{{"result":{{{ODDITIES},"sessionId":"theirs"}},"extra":1.50,"id":2}}"#);
    // It answers the two first lines as it was told, and then listens.
    let script = r#"read -r a; printf '%s\n' "$0"; read -r b; printf '%s\n' "$1"; cat >/dev/null"#;
    let argv = ["/bin/sh", "-c", script, &told, &opened].map(str::to_owned);
    let mut reader = Reader { client: home.dial(), lines: Vec::new() };
    reader.client.notify("_jackfield/connect", &json!({ "agent": { "name": "sh", "argv": argv } }));
    let hello = reader.ask("hello", "initialize", &json!({ "protocolVersion": 1 }));
    let (hello, told): (Value, Value) =
        (serde_json::from_str(&hello).unwrap(), serde_json::from_str(&told).unwrap());
    // The hub adds what every session of its own can do; whatever the agent told is still there.
    let future = "/result/agentCapabilities/future";
    assert_eq!(hello.pointer(future), told.pointer(future));
    assert_eq!(hello["result"]["_meta"]["a"], told["result"]["_meta"]["a"]);
    assert_eq!(hello["result"]["most"], told["result"]["most"]);

    let params = json!({ "cwd": home.path(), "mcpServers": [] });
    let answer = reader.ask("the new one", "session/new", &params);
    let sessions = reader.client.result("_jackfield/sessions", &json!({}));
    let session = sessions["sessions"][0]["sessionId"].as_str().unwrap();
    let opened = opened.replace("theirs", session).replace("\"id\":2", "\"id\":\"the new one\"");
    assert_eq!(answer, opened);
    let loaded: Value = serde_json::from_str(&reader.load(session, home.path())).unwrap();
    let mut opened: Value = serde_json::from_str(&opened).unwrap();
    opened["result"].as_object_mut().unwrap().remove("sessionId");
    assert_eq!(loaded["result"], opened["result"]);
    drop(reader);
    daemon.stop();
}

#[test]
fn another_clients_prompt_is_shown_with_every_byte_of_its_content() {
    let home = Home::new();
    let daemon = home.serve(&[]);
    let mut driver = Reader::new(&home, Some(&home.fake_agent(&[])));
    let session = driver.client.open(home.path());
    let mut other = Reader::new(&home, None);
    other.load(&session, home.path());
    let blocks = [
        format!(r#"{{"type":"text","text":"h\u0069",{ODDITIES}}}"#),
        format!(r#"{{"type":"from_the_future","uri":"a\/b",{ODDITIES}}}"#),
    ];
    driver.client.send_line(&format!(
        r#"{{"jsonrpc":"2.0","id":"p","method":"session/prompt","params":{{"sessionId":"{session}","prompt":[{}]}}}}"#,
        blocks.join(" , ")
    ));
    driver.answer("p");
    let mut later = Reader::new(&home, None);
    later.load(&session, home.path());
    other.until("the agent's words", |line| line.contains("you said"));
    for reader in [&other, &later] {
        let shown = reader.heard(&["user_message_chunk"]);
        assert_eq!(shown.len(), blocks.len());
        for (line, block) in shown.iter().zip(&blocks) {
            assert!(line.contains(&format!("\"content\":{block}")), "{line}");
        }
    }
    drop((driver, other, later));
    daemon.stop();
}
