//! The same with goose, a real agent: nothing in the command is made for it.

use super::{formats::kinds, talk::Talk};
use jackfield_e2e::{Cli, Home};
use jackfield_test_support::fake_model::FakeModel;
use serde_json::Value;
use std::fs;

#[test]
fn goose_answers_turn_after_turn_with_the_model_that_was_chosen() {
    let (home, model) = (Home::new(), FakeModel::start());
    let cli = Cli::new("goose", &home.path().join("goose"), &model.url());
    let project = home.path().join("project");
    fs::create_dir_all(&project).unwrap();
    let goose = cli.argv(&["acp", "--with-builtin", "developer"]);
    let goose: Vec<&str> = goose.iter().map(String::as_str).collect();
    let wishes = ["-m", "fake-model-mini", "--mode", "approve", "--approve", "all"];
    let how =
        ["run", "-i", "--isolated", "--format", "envelopes+", "--cwd", project.to_str().unwrap()];
    let mut command = home.command(&[&how[..], &wishes, &["--"], &goose].concat());
    let mut talk = Talk::spawn(command.envs(&cli.env));
    talk.say("Say hello");
    talk.hear("\"completed\"", 1);
    talk.say("Be SLOW about it");
    talk.hear("tick-3 ", 1);
    talk.interrupt();
    talk.hear("\"cancelled\"", 1);
    talk.say("TOUCH something");
    talk.hear("\"completed\"", 2);
    let ended = talk.finish();
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
    assert!(project.join("touched-by-tool.txt").exists(), "the tool ran: {}", ended.stdout);
    let envelopes: Vec<Value> =
        ended.stdout.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    let told = kinds(&envelopes);
    let count = |what: &str| told.iter().filter(|it| *it == what).count();
    assert_eq!((count("turn-start"), count("turn-end completed")), (3, 2), "{told:?}");
    assert_eq!((count("permission-request"), count("permission-response")), (1, 1), "{told:?}");
    assert_eq!(told.last().unwrap(), "turn-end completed");
    let prompted = model.log();
    let spoken: Vec<&Value> = prompted.iter().filter(|it| it["stream"] == true).collect();
    assert!(spoken.iter().any(|it| it["model"] == "fake-model-mini"), "{prompted:?}");
}
