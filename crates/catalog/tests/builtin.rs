//! Every built-in agent: its file is valid, and its command lines match a snapshot.

use jackfield_catalog::{
    AgentSpec, Catalog, DIALECTS, InstallAdvice, LaunchOptions, LaunchVariant, parse_agent_spec,
};
use std::{collections::BTreeSet, fmt::Write as _, fs, path::Path};

const PROMPT: &str = "say {model} twice";
const CWD: &str = "/srv/project";

/// The stems and texts of the files in the folder `agents`.
fn read_agent_files() -> Vec<(String, String)> {
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

/// The options of a first turn that leaves every choice to the program.
fn first_turn() -> LaunchOptions<'static> {
    LaunchOptions {
        model: Some("default"),
        prompt: PROMPT,
        file: Some("/run/prompt.md"),
        cwd: CWD,
        ..LaunchOptions::default()
    }
}

#[test]
fn embedded_list_matches_the_folder() {
    let stems: Vec<String> = read_agent_files().into_iter().map(|it| it.0).collect();
    let ids: Vec<String> = Catalog::builtin().iter().map(|it| it.id.clone()).collect();
    assert_eq!(ids, stems, "`FILES` in src/builtin.rs must name each file of agents/ once");
}

#[test]
fn every_file_is_valid_and_named_after_its_id() {
    for (stem, text) in read_agent_files() {
        let spec = parse_agent_spec(&text).unwrap_or_else(|error| panic!("{stem}.toml: {error}"));
        assert_eq!(spec.id, stem);
    }
}

#[test]
fn spec_survives_a_round_trip_through_toml() {
    for spec in Catalog::builtin().iter() {
        assert_eq!(parse_agent_spec(&spec.to_toml()).as_ref(), Ok(spec), "{}", spec.id);
    }
}

#[test]
fn no_name_denotes_two_agents() {
    let catalog = Catalog::builtin();
    let names: Vec<&str> = catalog.names().collect();
    assert_eq!(names.len(), names.iter().collect::<BTreeSet<_>>().len(), "{names:?}");
}

#[test]
fn every_agent_is_installed_by_us_or_has_a_page_of_its_vendor() {
    for spec in Catalog::builtin().iter() {
        let install = spec.install.as_deref().unwrap_or_default();
        match spec.install_advice() {
            InstallAdvice::Command(command) => {
                assert_eq!(command, format!("jackfield agents install {}", spec.id));
                assert!(install.contains(spec.packages[0].name()), "{install}");
            }
            InstallAdvice::Vendor { page, .. } => {
                let is_package = ["npm ", "uv ", "pip"].iter().any(|it| install.starts_with(it));
                // The script of that package writes into the home folder.
                let is_exception = spec.id == "junie";
                assert!(!is_package || is_exception, "{}: `{install}`", spec.id);
                let has_page = page.is_some_and(|it| it.starts_with("https://"));
                assert!(has_page || spec.id == "mimo", "{}", spec.id);
            }
            InstallAdvice::Included => assert_eq!(spec.id, "chat"),
        }
    }
    let catalog = Catalog::builtin();
    let advice = catalog.get("cursor").unwrap().install_advice();
    let InstallAdvice::Vendor { reason, .. } = advice else { panic!("{advice:?}") };
    assert!(reason.contains("neither pinned nor verified"), "{reason}");
}

#[test]
fn native_acp_variants_come_first() {
    for spec in Catalog::builtin().iter() {
        let native: Vec<bool> = spec.launch.iter().map(LaunchVariant::is_native_acp).collect();
        assert!(native.is_sorted_by(|a, b| a >= b), "{}: {native:?}", spec.id);
    }
}

#[test]
fn every_dialect_is_used_by_an_agent() {
    let catalog = Catalog::builtin();
    let used: BTreeSet<&str> = catalog
        .iter()
        .flat_map(|spec| &spec.launch)
        .filter_map(|variant| variant.dialect.as_deref())
        .collect();
    assert_eq!(used, DIALECTS.iter().copied().collect::<BTreeSet<_>>());
}

/// An agent for one provider sees only the keys of that provider. An agent for any provider sees
/// several, because its settings choose among them.
#[test]
fn agents_see_only_the_variables_that_they_need() {
    for spec in Catalog::builtin().iter() {
        for pattern in &spec.env.pass {
            assert!(pattern.trim_end_matches('*').len() >= 3, "{}: `{pattern}`", spec.id);
        }
    }
    let catalog = Catalog::builtin();
    let sees = |id: &str, name: &str| {
        let current = [(name.to_owned(), "k".to_owned())].into_iter();
        let env = catalog.get(id).unwrap().env.compose_environment(current);
        env.iter().any(|it| it.0 == name)
    };
    assert!(sees("claude", "ANTHROPIC_API_KEY") && !sees("claude", "OPENAI_API_KEY"));
    assert!(sees("codex", "OPENAI_API_KEY") && !sees("codex", "ANTHROPIC_API_KEY"));
    assert!(sees("gemini", "GEMINI_API_KEY") && !sees("gemini", "GITHUB_TOKEN"));
    assert!(!sees("claude", "CLAUDE_CODE_SSE_PORT") && !sees("opencode", "OPENCODE_PID"));
    assert!(catalog.iter().all(|spec| !sees(&spec.id, "AWS_SECRET_ACCESS_KEY")));
}

#[test]
fn lone_dash_is_passed_only_to_the_program_that_requires_it() {
    for spec in Catalog::builtin().iter().filter(|it| it.id != "antigravity") {
        for variant in &spec.launch {
            let lists = [&variant.args].into_iter().chain(&variant.resume);
            assert!(lists.flatten().all(|it| it != "-"), "{}", spec.id);
        }
    }
}

#[test]
fn command_lines_match_the_snapshot() {
    let mut report = String::new();
    for spec in Catalog::builtin().iter() {
        writeln!(report, "{}", spec.id).unwrap();
        for variant in &spec.launch {
            write_variant(&mut report, spec, variant);
        }
    }
    insta::assert_snapshot!(report);
}

fn write_variant(report: &mut String, spec: &AgentSpec, variant: &LaunchVariant) {
    let kind = variant.dialect.as_deref().unwrap_or("acp");
    writeln!(report, "  {} ({kind}, prompt by {:?})", variant.bins.join("|"), variant.prompt)
        .unwrap();
    let add_dirs = ["/srv/a b", "/srv/c"].map(str::to_owned);
    let all_flags = vec![true; variant.flags.len()];
    let first = first_turn();
    let first_chosen = LaunchOptions {
        model: Some("some/model-1"),
        reasoning: Some("high"),
        flags: &all_flags,
        add_dirs: &add_dirs,
        ..first
    };
    let session = Some("0199-session");
    for (title, options) in [
        ("first", first),
        ("first, chosen", first_chosen),
        ("later", LaunchOptions { session, ..first }),
        ("later, chosen", LaunchOptions { session, ..first_chosen }),
    ] {
        match variant.compose_argv(&options) {
            Ok(argv) => writeln!(report, "    {title}: {argv:?}").unwrap(),
            Err(error) => writeln!(report, "    {title}: refused, {error}").unwrap(),
        }
    }
    for mode in &variant.modes {
        let asks = if mode.asks { "asks" } else { "does not ask" };
        let options = LaunchOptions { mode: Some(&mode.id), ..first_turn() };
        let argv = variant.compose_argv(&options).unwrap_or_else(|it| panic!("{}: {it}", spec.id));
        writeln!(report, "    mode {} ({asks}): {argv:?}", mode.id).unwrap();
    }
}
