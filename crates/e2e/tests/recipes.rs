//! The programs in docs/recipes.md, each run as it stands there, against what it is said to print.

use crate::api::serve;
use jackfield_e2e::{
    App, Home,
    app::{in_tree, package},
    cli::installed,
    home::{binary, finish},
    proxy::{Fate, Proxy},
    wait_for,
};
use std::{
    fs,
    net::{TcpListener, TcpStream},
    process::Command,
    time::Duration,
};

const BOUND: Duration = Duration::from_secs(30);

/// A program in the document, and what it prints.
struct Recipe {
    language: String,
    code: String,
    output: String,
}

/// Every block of code that a block of text follows.
fn recipes() -> Vec<Recipe> {
    let text = fs::read_to_string(in_tree("docs/recipes.md")).unwrap();
    let blocks: Vec<(String, String)> = text
        .split("\n```")
        .skip(1)
        .step_by(2)
        .map(|it| it.split_once('\n').expect("a fence ends its line"))
        .map(|(language, code)| (language.to_owned(), format!("{code}\n")))
        .collect();
    let pairs = blocks.windows(2).filter(|it| it[1].0 == "text");
    pairs
        .map(|it| Recipe {
            language: it[0].0.clone(),
            code: it[0].1.clone(),
            output: it[1].1.clone(),
        })
        .collect()
}

/// What changes from run to run is made equal: names of sessions and runs, numbers, paths.
fn plain(output: &str) -> String {
    let mut plain = String::new();
    for word in output.trim_end().split_inclusive(['"', ' ', '\n']) {
        let is_name = (word.starts_with("s-") || word.starts_with("r-")) && 14 < word.len();
        match word {
            _ if is_name => plain += &word[..2],
            _ if word.starts_with('/') => plain.push('/'),
            _ => plain.extend(word.chars().map(|it| if it.is_ascii_digit() { '0' } else { it })),
        }
        plain.push('\n');
    }
    while plain.contains("00") {
        plain = plain.replace("00", "0");
    }
    plain
}

fn run(app: &App, recipe: &Recipe) -> String {
    let (program, flags, file): (_, &[&str], _) = match recipe.language.as_str() {
        "sh" => ("sh", &["-eu"], "recipe.sh"),
        "python" => ("python3", &[], "recipe.py"),
        // Newer ones need no flag.
        "js" | "js browser" => ("node", &["--experimental-websocket"], "recipe.mjs"),
        other => panic!("nobody knows how to run `{other}`"),
    };
    let page = "const { JACKFIELD_URL: url, JACKFIELD_TOKEN: token } = process.env;\n";
    let before = if recipe.language == "js browser" { page } else { "" };
    app.write(file, &format!("{before}{}", recipe.code));
    let args: Vec<&str> = flags.iter().copied().chain([file]).collect();
    app.say(program, &args, BOUND)
}

#[test]
fn every_recipe_prints_what_it_is_said_to_print() {
    let home = Home::new();
    let (daemon, web) = serve(&home, &[]);
    let app = App::new(&home, &web);
    app.install("jackfield-client", &package());
    let sdk = "sdk/node_modules/@agentclientprotocol/sdk";
    app.install("@agentclientprotocol/sdk", &installed(sdk));
    let recipes = recipes();
    for language in ["sh", "python", "js", "js browser"] {
        assert!(recipes.iter().any(|it| it.language == language), "none is in {language}");
    }
    for recipe in recipes {
        let printed = run(&app, &recipe);
        assert_eq!(plain(&printed), plain(&recipe.output), "{}\n{printed}", recipe.code);
    }
    daemon.stop();
}

/// The lines of the first console block, with another port.
fn setup_script(port: u16) -> String {
    let text = fs::read_to_string(in_tree("docs/recipes.md")).unwrap();
    let (_, rest) = text.split_once("\n```console\n").expect("the setup comes first");
    let (block, _) = rest.split_once("\n```").expect("a block ends");
    let lines = block.lines().map(|it| it.strip_prefix("$ ").expect("a command"));
    lines.map(|it| format!("{it}\n").replace("7456", &port.to_string())).collect()
}

#[test]
fn setup_works_without_a_daemon_and_beside_one() {
    for is_started in [false, true] {
        let home = Home::new();
        if is_started {
            assert!(home.run(&["daemon", "start"], BOUND).status.success());
        }
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let script = format!(
            "set -eu\n{}curl -sf --oauth2-bearer \"$JACKFIELD_TOKEN\" \"$JACKFIELD_URL/api/sessions\"\n",
            setup_script(port)
        );
        let ours = home.command(&[]);
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).current_dir(home.path()).env_clear();
        shell.envs(ours.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let bin = binary("jackfield").parent().unwrap().display().to_string();
        shell.env("PATH", format!("{bin}:/usr/local/bin:/usr/bin:/bin"));
        let output = finish(shell, BOUND);
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && stdout.contains("sessions"), "{stdout}\n{stderr}");
        let listed = home.run(&["listen", "-q"], BOUND).stdout;
        let address = format!("http://127.0.0.1:{port}");
        assert!(String::from_utf8(listed).unwrap().contains(&address));
        let removed = home.run(&["listen", "--remove", &address], BOUND);
        assert!(removed.status.success(), "{removed:?}");
        wait_for("the address to be closed", BOUND, || {
            TcpStream::connect(("127.0.0.1", port)).is_err().then_some(())
        });
        assert!(home.run(&["daemon", "stop"], BOUND).status.success());
    }
}

#[test]
fn the_recipe_for_python_goes_on_after_a_cut() {
    let home = Home::new();
    let (daemon, web) = serve(&home, &[]);
    // More than the answer to the POST, and less than the whole run.
    let proxy = Proxy::that_breaks(web.address, |_| Fate::IsCutAfter(900));
    let app = App::new(&home, &web.by_way_of(proxy.at));
    let python = recipes().into_iter().find(|it| it.language == "python").unwrap();
    assert_eq!(run(&app, &python), python.output);
    assert!(0 < proxy.broken(), "nothing was cut");
    daemon.stop();
}
