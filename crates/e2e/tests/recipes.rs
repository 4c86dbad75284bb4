//! The programs in docs/recipes.md, each run as it stands there, against what it is said to print.

use crate::api::serve;
use jackfield_e2e::{
    App, Home,
    app::{in_tree, package},
    cli::installed,
    proxy::{Fate, Proxy},
};
use std::{fs, time::Duration};

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
