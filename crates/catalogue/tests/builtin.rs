//! Every agent that comes with us: its file is valid, and its command lines are the ones written down.

use jackfield_catalogue::{Catalogue, Choice, DIALECTS, Spec, Variant, parse};
use std::{collections::BTreeSet, fmt::Write as _, fs, path::Path};

const PROMPT: &str = "say {model} twice";
const CWD: &str = "/srv/project";

/// Ids and texts of the files in the folder.
fn folder() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("agents");
    let mut files: Vec<(String, String)> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (stem, fs::read_to_string(&path).unwrap())
        })
        .collect();
    files.sort();
    files
}

fn choice(later: bool, chosen: bool) -> Choice<'static> {
    Choice {
        session: later.then_some("0199-session"),
        model: Some(if chosen { "some/model-1" } else { "default" }),
        reasoning: chosen.then_some("high"),
        prompt: PROMPT,
        file: Some("/run/prompt.md"),
        cwd: CWD,
        ..Choice::default()
    }
}

#[test]
fn the_embedded_list_is_the_folder() {
    let stems: Vec<String> = folder().into_iter().map(|it| it.0).collect();
    let ids: Vec<String> = Catalogue::builtin().iter().map(|it| it.id.clone()).collect();
    assert_eq!(ids, stems, "`FILES` in src/builtin.rs names each file of agents/ once");
}

#[test]
fn every_file_is_valid_and_named_after_its_id() {
    for (stem, text) in folder() {
        let spec = parse(&text).unwrap_or_else(|flaw| panic!("{stem}.toml: {flaw}"));
        assert_eq!(spec.id, stem);
    }
}

#[test]
fn a_spec_written_as_toml_is_read_back_unchanged() {
    for spec in Catalogue::builtin().iter() {
        assert_eq!(parse(&spec.to_toml()).as_ref(), Ok(spec), "{}", spec.id);
    }
}

#[test]
fn acp_comes_first_where_a_program_speaks_it() {
    for spec in Catalogue::builtin().iter() {
        let native: Vec<bool> = spec.launch.iter().map(Variant::speaks_acp).collect();
        assert!(native.is_sorted_by(|a, b| a >= b), "{}: {native:?}", spec.id);
    }
}

#[test]
fn every_dialect_has_a_program() {
    let catalogue = Catalogue::builtin();
    let used: BTreeSet<&str> = catalogue
        .iter()
        .flat_map(|spec| &spec.launch)
        .filter_map(|variant| variant.dialect.as_deref())
        .collect();
    assert_eq!(used, DIALECTS.iter().copied().collect::<BTreeSet<_>>());
}

/// Whoever serves any provider is told apart by its own settings; the others see only their own keys.
#[test]
fn nobody_is_handed_every_variable() {
    for spec in Catalogue::builtin().iter() {
        for pattern in &spec.env.pass {
            assert!(pattern.trim_end_matches('*').len() >= 3, "{}: `{pattern}`", spec.id);
        }
    }
    let catalogue = Catalogue::builtin();
    let sees = |id: &str, name: &str| {
        let ours = [(name.to_owned(), "k".to_owned())].into_iter();
        let env = catalogue.get(id).unwrap().env.compose(ours);
        env.iter().any(|it| it.0 == name)
    };
    assert!(sees("claude", "ANTHROPIC_API_KEY") && !sees("claude", "OPENAI_API_KEY"));
    assert!(sees("codex", "OPENAI_API_KEY") && !sees("codex", "ANTHROPIC_API_KEY"));
    assert!(sees("gemini", "GEMINI_API_KEY") && !sees("gemini", "GITHUB_TOKEN"));
    assert!(!sees("claude", "CLAUDE_CODE_SSE_PORT") && !sees("opencode", "OPENCODE_PID"));
    assert!(catalogue.iter().all(|spec| !sees(&spec.id, "AWS_SECRET_ACCESS_KEY")));
}

#[test]
fn a_lone_dash_is_passed_only_to_the_one_program_that_wants_it() {
    for spec in Catalogue::builtin().iter().filter(|it| it.id != "antigravity") {
        for variant in &spec.launch {
            let lists = [&variant.args].into_iter().chain(&variant.resume);
            assert!(lists.flatten().all(|it| it != "-"), "{}", spec.id);
        }
    }
}

#[test]
fn every_command_line_is_as_written_down() {
    let mut book = String::new();
    for spec in Catalogue::builtin().iter() {
        writeln!(book, "{}", spec.id).unwrap();
        for variant in &spec.launch {
            write_variant(&mut book, spec, variant);
        }
    }
    insta::assert_snapshot!(book);
}

fn write_variant(book: &mut String, spec: &Spec, variant: &Variant) {
    let kind = variant.dialect.as_deref().unwrap_or("acp");
    writeln!(book, "  {} ({kind}, prompt by {:?})", variant.bins.join("|"), variant.prompt)
        .unwrap();
    let has_all = vec![true; variant.flags.len()];
    for (title, later, chosen) in [
        ("first", false, false),
        ("first, chosen", false, true),
        ("later", true, false),
        ("later, chosen", true, true),
    ] {
        let choice = Choice { flags: if chosen { &has_all } else { &[] }, ..choice(later, chosen) };
        match variant.argv(&choice) {
            Ok(argv) => writeln!(book, "    {title}: {argv:?}").unwrap(),
            Err(refusal) => writeln!(book, "    {title}: refused, {refusal}").unwrap(),
        }
    }
    for mode in &variant.modes {
        let asks = if mode.asks { "asks" } else { "does not ask" };
        let choice = Choice { mode: Some(&mode.id), ..choice(false, false) };
        let argv = variant.argv(&choice).unwrap_or_else(|it| panic!("{}: {it}", spec.id));
        writeln!(book, "    mode {} ({asks}): {argv:?}", mode.id).unwrap();
    }
}
