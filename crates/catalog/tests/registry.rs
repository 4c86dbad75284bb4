//! Imports agents from an ACP registry.

use jackfield_catalog::{AgentSpec, LaunchOptions, import_registry, parse_agent_spec};

fn bins_and_argv(spec: &AgentSpec, index: usize) -> (Vec<String>, Vec<String>) {
    let variant = &spec.launch[index];
    assert!(variant.is_native_acp());
    let options = LaunchOptions { cwd: "/w", ..LaunchOptions::default() };
    (variant.bins.clone(), variant.compose_argv(&options).unwrap())
}

fn import_one(json: &str) -> AgentSpec {
    let imported = import_registry(json).unwrap();
    assert!(imported.skipped.is_empty(), "{:?}", imported.skipped);
    let [spec] = &imported.specs[..] else { panic!("{} specs", imported.specs.len()) };
    spec.clone()
}

fn registry_with(distribution: &str) -> String {
    format!(
        r#"{{"version":"1.0.0","extensions":[],"agents":[{{"id":"demo","name":"Demo","version":"1.2.0",
        "description":"Says hello","website":"https://example.org/demo","license":"MIT","distribution":{distribution}}}]}}"#
    )
}

#[test]
fn npm_package_is_run_by_npx_at_its_version() {
    let spec = import_one(&registry_with(
        r#"{"npx":{"package":"@demo/acp@1.2.0","args":["--acp"],"env":{"DEMO_UPDATE":"0"}}}"#,
    ));
    let (bins, argv) = bins_and_argv(&spec, 0);
    assert_eq!(
        (bins, argv),
        (vec!["npx".into()], vec!["-y".into(), "@demo/acp@1.2.0".into(), "--acp".into()])
    );
    assert_eq!(spec.install.as_deref(), Some("npm install -g @demo/acp@1.2.0"));
    assert_eq!(spec.docs.as_deref(), Some("https://example.org/demo"));
    assert_eq!(spec.note.as_deref(), Some("Says hello"));
    assert_eq!(spec.env.set["DEMO_UPDATE"], "0");
}

#[test]
fn package_without_a_version_is_pinned_to_that_of_its_entry() {
    let npx = import_one(&registry_with(r#"{"npx":{"package":"@demo/acp"}}"#));
    assert_eq!(bins_and_argv(&npx, 0).1, ["-y", "@demo/acp@1.2.0"]);
    let uvx = import_one(&registry_with(r#"{"uvx":{"package":"demo-agent","args":["acp"]}}"#));
    assert_eq!(
        bins_and_argv(&uvx, 0),
        (vec!["uvx".into()], vec!["demo-agent==1.2.0".into(), "acp".into()])
    );
    let pinned = import_one(&registry_with(r#"{"uvx":{"package":"demo-agent==1.1.0"}}"#));
    assert_eq!(bins_and_argv(&pinned, 0).1, ["demo-agent==1.1.0"]);
}

#[test]
fn archive_program_is_started_by_its_name() {
    let spec = import_one(&registry_with(
        r#"{"binary":{"plan9-mips":{"archive":"https://example.org/demo.tar.gz","sha256":"00",
            "cmd":"./dist-package/demo-agent","args":["acp"]}},"npx":{"package":"demo@1.2.0"}}"#,
    ));
    assert_eq!(bins_and_argv(&spec, 0), (vec!["demo-agent".into()], vec!["acp".into()]));
    assert_eq!(bins_and_argv(&spec, 1).0, ["npx"]);
    assert_eq!(spec.bins, ["demo-agent"]);
    assert_eq!(spec.install.as_deref(), Some("https://example.org/demo.tar.gz"));
}

#[test]
fn commands_with_suffixes_and_arguments_are_normalized() {
    for (cmd, args) in [
        (r"./bin\\demo.exe", vec!["--acp"]),
        ("./demo acp", vec!["acp", "--acp"]),
        ("demo", vec!["--acp"]),
    ] {
        let spec = import_one(&registry_with(&format!(
            r#"{{"binary":{{"windows-x86_64":{{"archive":"https://x.example","cmd":"{cmd}","args":["--acp"]}}}}}}"#
        )));
        assert_eq!(bins_and_argv(&spec, 0).0, ["demo"], "{cmd}");
        assert_eq!(bins_and_argv(&spec, 0).1, args, "{cmd}");
    }
}

#[test]
fn unusable_entry_is_skipped_and_reported() {
    let json = r#"{"version":"1.0.0","agents":[
        {"id":"good","name":"Good","version":"1.0.0","description":"d","distribution":{"npx":{"package":"good@1.0.0"}}},
        {"id":"Bad Id","name":"Bad","version":"1.0.0","description":"d","distribution":{"npx":{"package":"bad@1.0.0"}}},
        {"id":"empty","name":"Empty","version":"1.0.0","description":"d","distribution":{"docker":{}}},
        {"id":"nowhere","name":"Nowhere"},
        {"id":"env","name":"Env","version":"1.0.0","distribution":{"npx":{"package":"e@1.0.0","env":{"JACKFIELD_X":"1"}}}},
        7
    ]}"#;
    let imported = import_registry(json).unwrap();
    assert_eq!(imported.specs.len(), 1);
    let skipped: Vec<String> = imported.skipped.iter().map(ToString::to_string).collect();
    assert_eq!(skipped.len(), 5);
    assert!(
        skipped[0].starts_with("`Bad Id` was skipped: `Bad Id` is not an agent id"),
        "{}",
        skipped[0]
    );
    assert!(skipped[1].contains("neither npx, uvx nor binary"), "{}", skipped[1]);
    assert!(skipped[2].contains("missing field `distribution`"), "{}", skipped[2]);
    assert!(skipped[3].contains("JACKFIELD_X"), "{}", skipped[3]);
    assert!(skipped[4].starts_with("`#6` was skipped"), "{}", skipped[4]);
}

#[test]
fn single_entry_and_bare_list_are_imported() {
    let one = r#"{"id":"demo","name":"Demo","version":"1.2.0","description":"d","distribution":{"npx":{"package":"demo"}}}"#;
    assert_eq!(import_one(one).id, "demo");
    assert_eq!(import_one(&format!("[{one}]")).id, "demo");
}

#[test]
fn file_that_is_not_a_registry_is_refused_with_the_reason() {
    assert_eq!(import_registry("{\n\"agents\": [,]}").unwrap_err().line, Some(2));
    assert!(import_registry("{}").unwrap_err().reason.contains("not an ACP registry"));
    assert!(import_registry(r#"{"agents":{}}"#).unwrap_err().reason.contains("must be a list"));
}

#[test]
fn imported_spec_can_be_saved_as_a_file() {
    let spec = import_one(&registry_with(r#"{"npx":{"package":"demo","env":{"A":"1"}}}"#));
    assert_eq!(parse_agent_spec(&spec.to_toml()), Ok(spec));
}

#[test]
fn archives_with_a_checksum_become_a_package() {
    let sum = "0".repeat(64);
    let target = |url: &str, sum: &str| {
        format!(r#"{{"archive":"{url}","sha256":"{sum}","cmd":"./dist/demo-agent acp"}}"#)
    };
    let tar = "https://example.org/demo.tar.gz";
    let spec = import_one(&registry_with(&format!(
        r#"{{"binary":{{"linux-x86_64":{},"linux-aarch64":{},"darwin-aarch64":{},"windows-x86_64":{}}}}}"#,
        target(tar, &sum),
        target(tar, "00"),
        target("https://example.org/demo.zip", &sum),
        target(tar, &sum),
    )));
    let [package] = &spec.packages[..] else { panic!("{:?}", spec.packages) };
    let archives: Vec<&String> = package.archives.keys().collect();
    assert_eq!(archives, ["linux-x86_64"], "others have no checksum, format or platform of ours");
    assert_eq!(package.archives["linux-x86_64"].program, "dist/demo-agent");
    assert_eq!((package.version.as_deref(), &package.bins[..]), (Some("1.2.0"), &spec.bins[..]));
    assert_eq!(parse_agent_spec(&spec.to_toml()), Ok(spec));
    let without = import_one(&registry_with(&format!(
        r#"{{"binary":{{"linux-x86_64":{}}}}}"#,
        target("http://example.org/demo.tar.gz", &sum)
    )));
    assert_eq!(without.packages, []);
}
