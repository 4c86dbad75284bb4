//! A bad file is reported with its line and the reason.

use jackfield_catalogue::parse;

const HEAD: &str = "id = \"a\"\nname = \"A\"\nbins = [\"a\"]\n";

#[track_caller]
fn refused(text: &str, line: Option<usize>, reason: &str) {
    let flaw = parse(text).unwrap_err();
    assert_eq!(flaw.line, line, "{flaw}");
    assert!(flaw.reason.contains(reason), "{flaw}");
    assert!(!flaw.reason.contains('\n') && !flaw.reason.ends_with('.'), "{flaw}");
}

/// The head, then one `[[launch]]` on line 4.
fn launch(rest: &str) -> String {
    format!("{HEAD}[[launch]]\n{rest}")
}

#[test]
fn what_is_no_toml_is_refused_where_it_stops_being() {
    refused("id = \"a\"\nname = \n", Some(2), "");
    refused("id = \"a\"\nid = \"b\"\n", Some(2), "duplicate key");
}

#[test]
fn unknown_and_missing_keys_are_named() {
    refused(&format!("{HEAD}color = 1\n[[launch]]\n"), Some(4), "unknown field `color`");
    refused(&launch("arg = [\"acp\"]\n"), Some(5), "unknown field `arg`");
    refused("id = \"a\"\nbins = [\"a\"]\n[[launch]]\n", None, "missing field `name`");
    refused(&launch("args = \"acp\"\n"), Some(5), "invalid type");
    refused(&launch("prompt = \"pigeon\"\n"), Some(5), "unknown variant `pigeon`");
    refused(&launch("[models]\nfrom = \"oracle\"\n"), Some(6), "unknown variant `oracle`");
    refused(&launch("[[launch.modes]]\nid = \"x\"\n"), Some(5), "missing field `name`");
}

#[test]
fn ids_and_programs_have_a_form() {
    for id in ["", "A", "-a", ".a", "a b", "ä", "a/b", &"a".repeat(41)] {
        let text = launch("").replace("id = \"a\"", &format!("id = \"{id}\""));
        refused(&text, Some(1), "is no id");
    }
    assert!(parse(&launch("").replace("\"a\"", "\"0.a_b-c\"")).is_ok());
    refused(&launch("").replace("[\"a\"]", "[]"), Some(3), "`bins` is empty");
    for bin in ["", "./a", "bin/a", "-a"] {
        let text = launch("").replace("[\"a\"]", &format!("[\"{bin}\"]"));
        refused(&text, Some(3), "neither a program's name nor a full path");
    }
    assert!(parse(&launch("bins = [\"/opt/a\"]")).is_ok());
    refused(HEAD, None, "no `[[launch]]`");
}

#[test]
fn placeholders_exist_and_stand_where_they_mean_something() {
    refused(&launch("args = [\n  \"acp\",\n  \"{nonsense}\",\n]\n"), Some(7), "`{nonsense}`");
    refused(
        &launch("dialect = \"plain\"\nargs = [\"{session}\"]\n"),
        Some(6),
        "belongs in `resume`",
    );
    refused(&launch("args = [\"{model}\"]\n"), Some(5), "belongs in `model`");
    refused(&launch("model = [\"{reasoning}\"]\n"), Some(5), "belongs in `reasoning`");
    refused(
        &launch("dialect = \"plain\"\nargs = [\"{prompt}\"]\n"),
        Some(6),
        "`prompt = \"argv\"`",
    );
    refused(
        &launch("dialect = \"plain\"\nprompt = \"argv\"\nargs = [\"{file}\"]\n"),
        Some(7),
        "`prompt = \"file\"`",
    );
    refused(
        &launch("[[launch.modes]]\nid = \"m\"\nname = \"M\"\nasks = true\nargs = [\"{prompt}\"]\n"),
        Some(9),
        "means nothing here",
    );
    refused(&launch("[[launch.flags]]\nargs = [\"{x}\"]\nneeds = \"x\"\n"), Some(6), "`{x}`");
    assert!(parse(&launch("args = [\"--config={\\\"a\\\":{}}\", \"{cwd}\"]\n")).is_ok());
}

#[test]
fn a_prompt_arrives_exactly_once() {
    let argv = |rest: &str| launch(&format!("dialect = \"plain\"\nprompt = \"argv\"\n{rest}"));
    refused(&argv("args = [\"run\"]\n"), Some(7), "`{prompt}` is missing");
    refused(&argv("args = [\"{prompt}\", \"{prompt}\"]\n"), Some(7), "twice");
    refused(
        &argv("args = [\"{prompt}\"]\nresume = [\"{session}\"]\n"),
        Some(8),
        "`{prompt}` is missing",
    );
    refused(&launch("prompt = \"argv\"\nargs = [\"{prompt}\"]\n"), Some(4), "need a `dialect`");
}

#[test]
fn dialects_and_modes_are_known_and_unique() {
    refused(&launch("dialect = \"klingon\"\n"), Some(5), "no dialect is called `klingon`");
    let mode = "[[launch.modes]]\nid = \"m\"\nname = \"M\"\nasks = true\n";
    refused(&launch(&format!("{mode}{mode}")), Some(10), "two modes `m`");
    refused(&launch(&mode.replace("\"m\"", "\"a b\"")), Some(6), "no mode's id");
}

#[test]
fn variables_have_names() {
    refused(&launch("[env]\npass = [\"OK_*\", \"A-B\"]\n"), Some(6), "`A-B`");
    refused(&launch("[env]\nremove = [\"A*B\"]\n"), Some(6), "`A*B`");
    refused(&launch("[env]\npass = [\"JACKFIELD_TOKEN\"]\n"), Some(6), "never handed on");
    refused(&launch("[env.set]\n\"A=B\" = \"1\"\n"), Some(5), "`A=B`");
    refused(&launch("[auth]\nenv = [\"A*\"]\n"), None, "`A*`");
}

#[test]
fn models_say_all_that_is_needed_to_list_them() {
    refused(&launch("[models]\nfrom = \"command\"\n"), Some(6), "needs `args`");
    refused(&launch("[models]\nfrom = \"command\"\nargs = [\"m\"]\n"), Some(6), "needs `format`");
    refused(
        &launch("[models]\nfrom = \"settings\"\nformat = \"lines\"\n"),
        Some(6),
        "needs `file`",
    );
    refused(&launch("[models]\nfallback = [\"ok\", \"-x\"]\n"), Some(6), "`-x`");
    refused(&launch("[reasoning]\noptions = [\"very high\"]\n"), Some(6), "`very high`");
    assert!(parse(&launch("[models]\nfrom = \"acp\"\n")).is_ok());
}
