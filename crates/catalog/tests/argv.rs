//! Every composed command line has the shape that the agent's file gives it.

use jackfield_catalog::{
    Catalog, LaunchError, LaunchOptions, LaunchVariant, ModelEntry, PromptDelivery, check_model,
    check_reasoning, parse_agent_spec,
};
use proptest::prelude::*;

fn variant(launch: &str) -> LaunchVariant {
    let text = format!("id = \"a\"\nname = \"A\"\nbins = [\"a\"]\n[[launch]]\n{launch}");
    parse_agent_spec(&text).unwrap().launch.remove(0)
}

fn prompted(prompt: &str) -> LaunchOptions<'_> {
    LaunchOptions { prompt, cwd: "/w", ..LaunchOptions::default() }
}

const ARGV: &str = "dialect = \"plain\"\nprompt = \"argv\"\nprompt_bytes_max = 10\n";

#[test]
fn options_are_inserted_before_the_session_id_if_the_file_requires_it() {
    let catalog = Catalog::builtin();
    let exec = &catalog.get("codex").unwrap().launch[2];
    let options = LaunchOptions {
        session: Some("t-1"),
        model: Some("gpt-5.5"),
        reasoning: Some("low"),
        mode: Some("read-only"),
        ..prompted("hi")
    };
    assert_eq!(
        exec.compose_argv(&options).unwrap(),
        [
            "exec",
            "resume",
            "--json",
            "--skip-git-repo-check",
            "-c",
            "sandbox_mode=\"read-only\"",
            "--model",
            "gpt-5.5",
            "-c",
            "model_reasoning_effort=\"low\"",
            "t-1",
        ]
    );
}

#[test]
fn optional_flags_are_passed_only_to_programs_that_support_them() {
    let catalog = Catalog::builtin();
    let claude = &catalog.get("claude").unwrap().launch[1];
    let argv_with =
        |flags| claude.compose_argv(&LaunchOptions { flags, ..prompted("hi") }).unwrap();
    let partial = "--include-partial-messages".to_owned();
    assert!(argv_with(&[true]).contains(&partial));
    assert!(!argv_with(&[false]).contains(&partial));
    assert!(!argv_with(&[]).contains(&partial));
}

#[test]
fn nothing_is_inserted_after_two_dashes() {
    let it = variant(&format!(
        "{ARGV}args = [\"run\", \"--\", \"{{prompt}}\"]\nmodel = [\"-m\", \"{{model}}\"]"
    ));
    let options = LaunchOptions { model: Some("x"), ..prompted("-hi") };
    assert_eq!(it.compose_argv(&options).unwrap(), ["run", "-m", "x", "--", "-hi"]);
}

#[test]
fn prompts_that_cannot_be_arguments_are_refused_with_the_reason() {
    let it = variant(&format!("{ARGV}args = [\"-p\", \"{{prompt}}\"]"));
    assert_eq!(it.compose_argv(&prompted("- item")), Err(LaunchError::PromptLikeOption));
    assert_eq!(
        it.compose_argv(&prompted("a\0b")),
        Err(LaunchError::NulByte { subject: "the prompt" })
    );
    let error = it.compose_argv(&prompted("01234567890")).unwrap_err();
    assert_eq!(error, LaunchError::PromptTooLong { bytes: 11, max: 10 });
    assert!(error.to_string().contains("has 11 bytes"), "{error}");
    let joined = variant(&format!("{ARGV}args = [\"--message={{prompt}}\"]"));
    assert_eq!(joined.compose_argv(&prompted("- item")).unwrap(), ["--message=- item"]);
}

#[test]
fn prompt_on_stdin_is_not_checked() {
    let it = variant("dialect = \"plain\"\nargs = [\"run\"]");
    assert_eq!(it.compose_argv(&prompted("- \0 anything")).unwrap(), ["run"]);
}

#[test]
fn prompt_file_is_required_by_programs_that_read_one() {
    let it = variant("dialect = \"plain\"\nprompt = \"file\"\nargs = [\"--file\", \"{file}\"]");
    assert_eq!(it.compose_argv(&prompted("hi")), Err(LaunchError::FileMissing));
    let options = LaunchOptions { file: Some("/p.md"), ..prompted("hi") };
    assert_eq!(it.compose_argv(&options).unwrap(), ["--file", "/p.md"]);
}

#[test]
fn later_turn_without_resume_support_is_refused() {
    let it = variant("dialect = \"plain\"\nargs = [\"run\"]");
    let later = LaunchOptions { session: Some("s"), ..prompted("hi") };
    assert_eq!(it.compose_argv(&later), Err(LaunchError::ResumeUnsupported));
    // Over ACP a message contains the session id.
    assert_eq!(variant("args = [\"acp\"]").compose_argv(&later).unwrap(), ["acp"]);
}

#[test]
fn ids_that_look_like_options_are_refused() {
    let it = variant(
        "dialect = \"plain\"\nargs = []\nresume = [\"--resume\", \"{session}\"]\nmodel = [\"-m\", \"{model}\"]\nreasoning = [\"-r\", \"{reasoning}\"]",
    );
    for id in ["-x", "--help", "", "a\0b", "a\nb"] {
        let session = LaunchOptions { session: Some(id), ..prompted("hi") };
        assert!(
            matches!(it.compose_argv(&session), Err(LaunchError::SessionMalformed { .. })),
            "{id:?}"
        );
        let model = LaunchOptions { model: Some(id), ..prompted("hi") };
        assert!(
            matches!(it.compose_argv(&model), Err(LaunchError::ModelMalformed { .. })),
            "{id:?}"
        );
        let reasoning = LaunchOptions { reasoning: Some(id), ..prompted("hi") };
        assert!(
            matches!(it.compose_argv(&reasoning), Err(LaunchError::ReasoningUnknown { .. })),
            "{id:?}"
        );
    }
    let mode = LaunchOptions { mode: Some("yolo"), ..prompted("hi") };
    assert!(matches!(it.compose_argv(&mode), Err(LaunchError::ModeUnknown { .. })));
}

#[test]
fn model_must_be_listed_or_well_formed_if_custom_models_are_allowed() {
    let catalog = Catalog::builtin();
    let (codex, amp) = (catalog.get("codex").unwrap(), catalog.get("amp").unwrap());
    let known = [ModelEntry { id: "turbo".into(), name: "Turbo".into() }];
    for id in ["default", "gpt-5.5", "org/My Model:v1@2+x[1m]"] {
        assert_eq!(check_model(codex, &[], id), Ok(()), "{id}");
    }
    for id in ["-m", "", "a\"b", "a;b", "a\u{7f}", "ä", &"x".repeat(201)] {
        assert!(
            matches!(check_model(codex, &[], id), Err(LaunchError::ModelMalformed { .. })),
            "{id}"
        );
    }
    assert_eq!(check_model(amp, &known, "turbo"), Ok(()));
    assert_eq!(check_model(amp, &known, "rush"), Ok(()));
    let error = check_model(amp, &known, "gpt-5.5").unwrap_err().to_string();
    assert_eq!(
        error,
        "`amp` has no model `gpt-5.5`: choose one of `default`, `turbo`, `smart`, `deep`, `rush`"
    );
}

#[test]
fn reasoning_effort_must_be_listed_by_the_agent() {
    let catalog = Catalog::builtin();
    let codex = catalog.get("codex").unwrap();
    assert_eq!(check_reasoning(codex, "default"), Ok(()));
    assert_eq!(check_reasoning(codex, "xhigh"), Ok(()));
    assert!(check_reasoning(codex, "hard").unwrap_err().to_string().contains("`xhigh`"));
    assert!(check_reasoning(catalog.get("goose").unwrap(), "high").is_err());
}

/// A variant of any built-in agent.
fn any_variant() -> impl Strategy<Value = LaunchVariant> {
    let all: Vec<LaunchVariant> =
        Catalog::builtin().iter().flat_map(|it| it.launch.clone()).collect();
    prop::sample::select(all)
}

proptest! {
    #[test]
    fn all_placeholders_are_expanded_and_the_prompt_is_one_argument(
        variant in any_variant(),
        prompt in "\\PC{0,40}|[a-z{} ]{0,20}|\\{(prompt|model|session|file|cwd|reasoning)\\}",
        session in prop::option::of("[a-z0-9-]{1,20}"),
        model in prop::option::of("[A-Za-z0-9][A-Za-z0-9._/:@+ -]{0,20}[a-z0-9]"),
        reasoning in prop::option::of("[a-z]{1,8}"),
        mode in any::<prop::sample::Index>(),
        flags in prop::collection::vec(any::<bool>(), 0..3),
    ) {
        let mode = variant.modes.get(mode.index(variant.modes.len().max(1)));
        let options = LaunchOptions {
            session: session.as_deref(),
            model: model.as_deref(),
            reasoning: reasoning.as_deref(),
            mode: mode.map(|it| it.id.as_str()),
            prompt: &prompt,
            file: Some("/tmp/p.md"),
            cwd: "/w",
            add_dirs: &[],
            flags: &flags,
        };
        let Ok(argv) = variant.compose_argv(&options) else { return Ok(()) };
        // A prompt may contain anything, so a marker shows its position.
        let marked = variant.compose_argv(&LaunchOptions { prompt: "MARK", ..options }).unwrap();
        prop_assert_eq!(argv.len(), marked.len(), "a prompt never becomes two arguments");
        let positions: Vec<usize> =
            (0..marked.len()).filter(|it| marked[*it].contains("MARK")).collect();
        prop_assert_eq!(positions.len(), usize::from(variant.prompt == PromptDelivery::Argv));
        for position in positions {
            prop_assert!(argv[position].ends_with(&prompt));
        }
        for argument in &marked {
            for name in ["session", "model", "reasoning", "prompt", "file", "cwd"] {
                prop_assert!(!argument.contains(&format!("{{{name}}}")), "{}", argument);
            }
        }
    }

    #[test]
    fn values_never_add_an_option_to_the_command_line(
        variant in any_variant(),
        session in "\\PC{0,20}",
        model in "\\PC{0,20}",
        reasoning in "\\PC{0,20}",
        prompt in "\\PC{0,20}",
    ) {
        let options = LaunchOptions {
            session: Some(&session), model: Some(&model), reasoning: Some(&reasoning),
            prompt: &prompt, file: Some("/tmp/p.md"), cwd: "/w", ..LaunchOptions::default()
        };
        let plain = LaunchOptions {
            session: Some("s"), model: Some("m"), reasoning: Some("r"), prompt: "p", ..options
        };
        if let (Ok(argv), Ok(plain)) = (variant.compose_argv(&options), variant.compose_argv(&plain)) {
            let count_options = |list: &[String]| list.iter().filter(|it| it.starts_with('-')).count();
            let uses_default = model == "default" || reasoning == "default";
            let max = if uses_default { argv.len() } else { count_options(&plain) };
            prop_assert!(count_options(&argv) <= max, "{:?}", argv);
        }
    }
}
