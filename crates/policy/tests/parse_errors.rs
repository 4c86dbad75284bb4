//! Valid rule files, and every error that a rule file can have.

use jackfield_policy::{GrantDuration, RuleEffect, parse_policy, parse_project_policy};

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
fn complete_file_is_parsed() {
    let policy = parse_policy(WHOLE, "policy.toml").unwrap();
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
    assert_eq!(policy.rules[1].grant, GrantDuration::Always);
    assert_eq!(parse_policy("", "policy.toml").unwrap().reseed, None);
}

#[test]
fn project_file_may_have_other_keys() {
    let text = "agent = \"claude\"\nreseed = false\n[other]\nx = 1\n[[rule]]\ndo = \"ask\"\n";
    let policy = parse_project_policy(text, ".jackfield.toml").unwrap();
    assert_eq!((policy.rules[0].effect, policy.reseed), (RuleEffect::Ask, Some(false)));
    assert_eq!(parse_project_policy("[[rule]]\ndo = 1\n", "x").unwrap_err().len(), 1);
}

#[test]
fn every_error_is_reported_with_its_line() {
    let cases = [
        ("reseed = 1", "line 1: `reseed` must be `true` or `false`"),
        (
            "\nrules = 1",
            "line 2: unknown key `rules`; valid keys are `reseed`, `[[rule]]` and `[sandbox.NAME]`",
        ),
        ("[rule]\ndo = \"ask\"", "line 1: write rules as `[[rule]]`, with two brackets"),
        ("rule = [1]", "line 1: a rule must be a table: `[[rule]]`"),
        ("[[rule]]\nrun = \"ls\"", "line 1: `do` is missing; it must be `allow`, `ask` or `deny`"),
        ("[[rule]]\ndo = \"forbid\"", "line 2: `do` must be `allow`, `ask` or `deny`"),
        (
            "[[rule]]\ndo = \"ask\"\ncommand = \"ls\"",
            "line 3: unknown key `command` in a rule; valid keys are `do`, `name`, `agent`, `kind`, \
             `tool`, `run`, `exact`, `path`, `mcp` and `grant`",
        ),
        (
            "[[rule]]\ndo = \"ask\"\nkind = [\"read\",\n \"write\"]",
            "line 4: unknown tool kind `write`; valid kinds are `read`, `edit`, `delete`, \
             `move`, `search`, `execute`, `think`, `fetch`, `switch_mode`, `other`",
        ),
        (
            "[[rule]]\ndo = \"ask\"\nrun = []",
            "line 3: an empty list matches nothing; remove the key",
        ),
        ("[[rule]]\ndo = \"ask\"\nrun = \"\"", "line 3: an empty string matches nothing"),
        ("[[rule]]\ndo = \"ask\"\ntool = 7", "line 3: expected a string or a list of strings"),
        (
            "[[rule]]\ndo = \"ask\"\npath = \"a[\"",
            "line 3: `a[` is not a valid glob: unclosed character class; missing ']'",
        ),
        (
            "[[rule]]\ndo = \"ask\"\nrun = \"a && b\"",
            "line 3: `a && b` is not a plain command; a `run` pattern is one program and its first \
             arguments, without quotes, variables and operators",
        ),
        (
            "[[rule]]\ndo = \"ask\"\nrun = \"a ** b\"",
            "line 3: `a ** b`: `**` must be the last word",
        ),
        (
            "[[rule]]\ndo = \"ask\"\nrun = \"**\"",
            "line 3: a `run` pattern must begin with a program, or with `*` for any",
        ),
        ("[[rule]]\ndo = \"ask\"\nname = \"\"", "line 3: `name` must be a non-empty string"),
        (
            "[[rule]]\ndo = \"allow\"\ngrant = \"ever\"",
            "line 3: `grant` must be `once` or `always`",
        ),
        (
            "[[rule]]\ndo = \"deny\"\ngrant = \"always\"",
            "line 3: `grant` is valid only in a rule with `do = \"allow\"`",
        ),
    ];
    for (text, expected) in cases {
        let errors = parse_policy(text, "policy.toml").unwrap_err();
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(errors, [expected], "{text}");
    }
}

#[test]
fn quotes_variables_and_substitutions_are_refused_in_patterns() {
    for run in ["git commit -m 'x'", "$X", "ls $(x)", "a | b", "a > b", "a\nb", "a \\b"] {
        let text = format!("[[rule]]\ndo = \"ask\"\nrun = {run:?}");
        assert_eq!(parse_policy(&text, "x").unwrap_err().len(), 1, "{run}");
    }
}

#[test]
fn all_errors_are_returned_in_line_order() {
    let text = "x = 1\n[[rule]]\nrun = \"a;b\"\n[[rule]]\ndo = \"no\"\nkind = \"k\"\n";
    let lines: Vec<usize> = parse_policy(text, "x").unwrap_err().iter().map(|it| it.line).collect();
    assert_eq!(lines, [1, 2, 3, 5, 6]);
    let broken = parse_policy("[[rule]\n", "x").unwrap_err();
    assert_eq!(broken[0].line, 1);
}
