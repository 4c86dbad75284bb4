//! Rule files that are right, and everything that can be wrong with one.

use jackfield_policy::{Effect, Grant, parse, parse_project};

const WHOLE: &str = r#"reseed = false

[[rule]]
do = "deny"
name = "no pushes"
agent = ["claude"]
kind = ["execute"]
tool = ["Bash", "mcp__*"]
run = ["git push", "rm", "npm run *", "cargo **"]
path = ["src/**", "~/.ssh/**"]
mcp = ["github"]

[[rule]]
do = "allow"
kind = "read"
grant = "always"

[[rule]]
do = "ask"
"#;

#[test]
fn a_whole_file_is_understood() {
    let policy = parse(WHOLE, "policy.toml").unwrap();
    assert_eq!((policy.origin.as_str(), policy.reseed), ("policy.toml", Some(false)));
    let shown: Vec<String> = policy.rules.iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        [
            "deny agent claude, kind execute, tool Bash | mcp__*, \
             run git push | rm | npm run * | cargo **, path src/** | ~/.ssh/**, mcp github",
            "allow kind read, for good",
            "ask everything",
        ]
    );
    let lines: Vec<Option<usize>> = policy.rules.iter().map(|it| it.line).collect();
    assert_eq!(lines, [Some(3), Some(13), Some(18)]);
    assert_eq!(policy.rules[1].grant, Grant::Always);
    assert_eq!(parse("", "policy.toml").unwrap().reseed, None);
}

#[test]
fn a_projects_file_may_hold_other_things() {
    let text = "agent = \"claude\"\nreseed = false\n[other]\nx = 1\n[[rule]]\ndo = \"ask\"\n";
    let policy = parse_project(text, ".jackfield.toml").unwrap();
    assert_eq!((policy.rules[0].effect, policy.reseed), (Effect::Ask, Some(false)));
    assert_eq!(parse_project("[[rule]]\ndo = 1\n", "x").unwrap_err().len(), 1);
}

#[test]
fn every_flaw_is_told_with_its_line() {
    let cases = [
        ("reseed = 1", "line 1: `reseed` is `true` or `false`"),
        ("\nrules = 1", "line 2: `rules` means nothing here: there are `reseed` and `[[rule]]`"),
        ("[rule]\ndo = \"ask\"", "line 1: rules are written as `[[rule]]`, with two brackets"),
        ("rule = [1]", "line 1: a rule is a table: `[[rule]]`"),
        ("[[rule]]\nrun = \"ls\"", "line 1: `do` is missing: it is `allow`, `ask` or `deny`"),
        ("[[rule]]\ndo = \"forbid\"", "line 2: `do` is `allow`, `ask` or `deny`"),
        (
            "[[rule]]\ndo = \"ask\"\ncommand = \"ls\"",
            "line 3: a rule has no `command`: there are `do`, `name`, `agent`, `kind`, `tool`, \
             `run`, `exact`, `path`, `mcp` and `grant`",
        ),
        (
            "[[rule]]\ndo = \"ask\"\nkind = [\"read\",\n \"write\"]",
            "line 4: no kind of tool is called `write`: there are `read`, `edit`, `delete`, \
             `move`, `search`, `execute`, `think`, `fetch`, `switch_mode`, `other`",
        ),
        (
            "[[rule]]\ndo = \"ask\"\nrun = []",
            "line 3: an empty list matches nothing: leave the key out",
        ),
        ("[[rule]]\ndo = \"ask\"\nrun = \"\"", "line 3: an empty text matches nothing"),
        ("[[rule]]\ndo = \"ask\"\ntool = 7", "line 3: this is a text or a list of texts"),
        (
            "[[rule]]\ndo = \"ask\"\npath = \"a[\"",
            "line 3: `a[` is no glob: unclosed character class; missing ']'",
        ),
        (
            "[[rule]]\ndo = \"ask\"\nrun = \"a && b\"",
            "line 3: `a && b` is no plain command: a `run` pattern is one program and its first \
             words, without quotes, variables and operators",
        ),
        (
            "[[rule]]\ndo = \"ask\"\nrun = \"a ** b\"",
            "line 3: `a ** b`: `**` stands for the rest and is the last word",
        ),
        (
            "[[rule]]\ndo = \"ask\"\nrun = \"**\"",
            "line 3: a `run` pattern begins with a program: `git push`, or `*` for any",
        ),
        ("[[rule]]\ndo = \"ask\"\nname = \"\"", "line 3: `name` is a text that people are shown"),
        ("[[rule]]\ndo = \"allow\"\ngrant = \"ever\"", "line 3: `grant` is `once` or `always`"),
        (
            "[[rule]]\ndo = \"deny\"\ngrant = \"always\"",
            "line 3: only a rule that allows has a `grant`",
        ),
    ];
    for (text, flaw) in cases {
        let flaws = parse(text, "policy.toml").unwrap_err();
        let told: Vec<String> = flaws.iter().map(ToString::to_string).collect();
        assert_eq!(told, [flaw], "{text}");
    }
}

#[test]
fn quotes_variables_and_substitutions_are_no_pattern() {
    for run in ["git commit -m 'x'", "$X", "ls $(x)", "a | b", "a > b", "a\nb", "a \\b"] {
        let text = format!("[[rule]]\ndo = \"ask\"\nrun = {run:?}");
        assert_eq!(parse(&text, "x").unwrap_err().len(), 1, "{run}");
    }
}

#[test]
fn all_flaws_are_told_at_once_in_the_order_of_their_lines() {
    let text = "x = 1\n[[rule]]\nrun = \"a;b\"\n[[rule]]\ndo = \"no\"\nkind = \"k\"\n";
    let lines: Vec<usize> = parse(text, "x").unwrap_err().iter().map(|it| it.line).collect();
    assert_eq!(lines, [1, 2, 3, 5, 6]);
    let broken = parse("[[rule]\n", "x").unwrap_err();
    assert_eq!(broken[0].line, 1);
}
