//! docs/local-models.md: its commands run as they stand there, with a model server of ours in place of
//! the one that the page takes for its example, and its tables say what the agent does.

use super::Desk;
use jackfield_e2e::{Client, Home, app::in_tree, home::binary, home::finish, wait_for};
use jackfield_test_support::{
    fake_model::FakeModel,
    scripted_model::{Reply, ScriptedModel},
};
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    fs,
    process::{Command, Stdio},
    time::Duration,
};

const BOUND: Duration = Duration::from_secs(30);
/// What the page takes for its example.
const EXAMPLE: &str = "http://localhost:11434/v1";
/// Programs that the page starts and that are not ours to test.
const THEIRS: [&str; 4] = ["OLLAMA_CONTEXT_LENGTH=32768", "ollama", "vllm", "llama-server"];

fn page() -> String {
    fs::read_to_string(in_tree("docs/local-models.md")).unwrap()
}

/// The blocks of code in this language.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let fence = format!("\n```{language}\n");
    let rest = page.split(&fence).skip(1);
    rest.map(|it| it.split_once("\n```").expect("a block ends").0.to_owned()).collect()
}

/// The first cells of the table under this head, without their code marks.
fn column(page: &str, head: &str) -> BTreeSet<String> {
    let (_, table) = page.split_once(head).expect("the table is there");
    let rows = table.lines().skip(2).take_while(|it| it.starts_with('|'));
    rows.map(|it| it.split('|').nth(1).unwrap().trim().trim_matches('`').to_owned()).collect()
}

/// A program with nothing but what this home gives, and our own program on its path.
fn command(home: &Home, program: &str) -> Command {
    let bin = binary("jackfield").parent().unwrap().display().to_string();
    let ours = home.command(&[]);
    let mut command = Command::new(program);
    command.current_dir(home.path()).env_clear();
    command.envs(ours.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.env("PATH", format!("{bin}:/usr/local/bin:/usr/bin:/bin"));
    command
}

fn stop_daemon(home: &Home) {
    assert!(home.run(&["daemon", "stop"], BOUND).status.success());
    wait_for("all to be gone", BOUND, || home.alive(&[]).is_empty().then_some(()));
}

/// A server as the page has it: it counts and calls for the probe, and answers whoever asks.
fn example_model() -> ScriptedModel {
    let cities = [r#"{"city":"Paris"}"#, r#"{"city":"Rome"}"#];
    let model = ScriptedModel::start([
        Reply::say("one, two, three"),
        Reply::calls(&cities.map(|it| ("weather", it))),
        Reply::say("It counts."),
        Reply::say("It cannot count."),
    ]);
    let qwen3 = json!({ "id": "qwen3", "max_model_len": 32768 });
    model.serve_models(&json!({ "object": "list", "data": [qwen3] }));
    model
}

#[test]
fn every_command_of_the_page_does_what_it_is_said_to_do() {
    let (home, model) = (Home::new(), example_model());
    let (mut exports, mut said) = (Vec::new(), Vec::new());
    for line in blocks(&page(), "console").iter().flat_map(|it| it.lines()) {
        let line = line.strip_prefix("$ ").expect("the page shows commands and no output");
        match line.split_whitespace().next().unwrap() {
            "export" => exports.push(line.replace(EXAMPLE, &model.url())),
            "jackfield" => {
                let mut shell = command(&home, "sh");
                let line = line.replace(EXAMPLE, &model.url());
                shell.arg("-euc").arg(format!("{}\n{line}", exports.join("\n")));
                let output = finish(shell, BOUND);
                assert!(output.status.success(), "`{line}`: {output:?}");
                let text = String::from_utf8(output.stdout).unwrap();
                said.push(text.lines().last().unwrap_or_default().to_owned());
            }
            program => assert!(THEIRS.contains(&program), "nobody knows how to run `{line}`"),
        }
    }
    assert_eq!(said, ["qwen3 is suitable as an agent", "It counts.", "It cannot count."]);
    assert_eq!(model.left(), 0);
    assert!(model.asked().iter().all(|it| it.body["model"] == "qwen3"));
    stop_daemon(&home);
}

/// One prompt to what an editor starts with these settings.
fn talk_as_an_editor(home: &Home, settings: &Value, url: &str) {
    let args = settings["args"].as_array().unwrap().iter().map(|it| it.as_str().unwrap());
    let mut agent = command(home, settings["command"].as_str().unwrap());
    agent.args(args);
    for (name, value) in settings["env"].as_object().unwrap() {
        agent.env(name, value.as_str().unwrap().replace(EXAMPLE, url));
    }
    let mut agent = agent.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (stdin, stdout) = (agent.stdin.take().unwrap(), agent.stdout.take().unwrap());
    let mut client = Client::new(Box::new(stdout), Box::new(stdin));
    client.hello();
    let session = client.open(home.path());
    assert_eq!(client.prompt(&session, "hello"), "end_turn");
    assert_eq!(client.text(), "Hello from the fake model.");
    drop(client);
    let ended = wait_for("its end", BOUND, || agent.try_wait().expect("our own child"));
    assert!(ended.success());
}

#[test]
fn the_settings_for_an_editor_start_the_agent_with_and_without_the_daemon() {
    let (home, model) = (Home::new(), FakeModel::start());
    let url = format!("{}/v1", model.url());
    let page = page();
    let settings: Value = serde_json::from_str(&blocks(&page, "json")[0]).unwrap();
    let mut settings = settings["agent_servers"]["My model"].clone();
    talk_as_an_editor(&home, &settings, &url);
    assert_eq!(home.alive(&[]), [0; 0], "without the daemon nothing stays");

    let other = page.split_once("With `\"args\": ").expect("there is another way").1;
    settings["args"] = serde_json::from_str(other.split_once('`').unwrap().0).unwrap();
    assert_eq!(settings["args"][0], "acp");
    talk_as_an_editor(&home, &settings, &url);
    stop_daemon(&home);
}

#[test]
fn the_table_of_variables_has_those_that_are_read_and_no_others() {
    let source = fs::read_to_string(in_tree("crates/chat-agent/src/settings.rs")).unwrap();
    let source = source.split("#[cfg(test)]").next().unwrap();
    let read = source.split('"').filter(|it| {
        it.starts_with("OPENAI_") && it.bytes().all(|it| it.is_ascii_uppercase() || it == b'_')
    });
    let read: BTreeSet<String> = read.map(str::to_owned).collect();
    assert!(12 < read.len(), "{read:?}");
    let page = page();
    assert_eq!(column(&page, "| variable | default | |"), read);
    for default in ["https://api.openai.com/v1", "gpt-4o"] {
        assert!(
            source.contains(&format!("\"{default}\""))
                && page.contains(&format!("| `{default}` |"))
        );
    }
}

#[test]
fn the_page_names_the_modes_tools_and_commands_that_there_are() {
    let variables = [
        ("OPENAI_WEB_FETCH", "1"),
        ("OPENAI_WEB_SEARCH_URL", "http://127.0.0.1:9/"),
        ("OPENAI_CODE_SEARCH", "1"),
        ("OPENAI_LANGUAGE_SERVERS", "rs=rust-analyzer"),
    ];
    let mut desk = Desk::new(FakeModel::start(), &variables);
    let place = json!({ "cwd": desk.home.path(), "mcpServers": [] });
    let new = desk.client.result("session/new", &place);
    let modes = new["modes"]["availableModes"].as_array().unwrap();
    let modes: BTreeSet<String> =
        modes.iter().map(|it| it["id"].as_str().unwrap().to_owned()).collect();
    let page = page();
    assert_eq!(column(&page, "| mode | |"), modes);
    let is_commands =
        |it: &Value| it["params"]["update"]["sessionUpdate"] == "available_commands_update";
    let told = desk.client.until("the commands", is_commands);
    for command in told["params"]["update"]["availableCommands"].as_array().unwrap() {
        let name = format!("`/{}", command["name"].as_str().unwrap());
        assert!(page.contains(&name), "the page does not name {name}`");
    }
    let session = new["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(desk.client.prompt(&session, "hello"), "end_turn");
    let log = desk.model.log();
    let tools = log.iter().find_map(|it| it["tools"].as_array()).expect("tools were offered");
    for tool in tools.iter().filter_map(Value::as_str).filter(|it| *it != "web_fetch") {
        assert!(page.contains(&format!("`{tool}`")), "the page does not name `{tool}`");
    }
    assert!(tools.contains(&json!("web_fetch")) && page.contains("`OPENAI_WEB_FETCH=1`"));
}

#[test]
fn what_the_page_says_one_sees_is_what_one_sees() {
    let seen = column(&page(), "| what you see | what it means |");
    let seen: Vec<&str> = seen.iter().filter_map(|it| it.strip_suffix('…')).collect();
    assert_eq!(seen.len(), 4, "{seen:?}");
    let mut desk = Desk::new(ScriptedModel::start([]), &[]);
    let session = desk.open();
    let mut nowhere =
        Desk::new(FakeModel::start(), &[("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")]);
    let session_nowhere = nowhere.open();
    for words in seen {
        let status = words.split_once("(HTTP ").and_then(|it| it.1.get(..3)?.parse().ok());
        let (_, said) = match status {
            Some(status) => {
                desk.model.then(Reply::status(status).header("retry-after", "60"));
                desk.failed_turn(&session, "hello")
            }
            None => nowhere.failed_turn(&session_nowhere, "hello"),
        };
        assert!(said.starts_with(words), "the page has `{words}`, and what is said is `{said}`");
    }
}
