//! Whatever is chosen, a command line has the shape its file gives it.

use jackfield_catalogue::{
    Catalogue, Choice, Model, PromptBy, Refusal, Variant, check_model, check_reasoning, parse,
};
use proptest::prelude::*;

fn variant(launch: &str) -> Variant {
    let text = format!("id = \"a\"\nname = \"A\"\nbins = [\"a\"]\n[[launch]]\n{launch}");
    parse(&text).unwrap().launch.remove(0)
}

fn prompted(prompt: &str) -> Choice<'_> {
    Choice { prompt, cwd: "/w", ..Choice::default() }
}

const ARGV: &str = "dialect = \"plain\"\nprompt = \"argv\"\nprompt_bytes_max = 10\n";

#[test]
fn what_is_chosen_goes_before_the_id_where_the_file_says_so() {
    let catalogue = Catalogue::builtin();
    let exec = &catalogue.get("codex").unwrap().launch[2];
    let choice = Choice {
        session: Some("t-1"),
        model: Some("gpt-5.5"),
        reasoning: Some("low"),
        mode: Some("read-only"),
        ..prompted("hi")
    };
    assert_eq!(
        exec.argv(&choice).unwrap(),
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
fn flags_are_passed_only_to_programs_that_have_them() {
    let catalogue = Catalogue::builtin();
    let claude = &catalogue.get("claude").unwrap().launch[1];
    let with = |flags| claude.argv(&Choice { flags, ..prompted("hi") }).unwrap();
    let partial = "--include-partial-messages".to_owned();
    assert!(with(&[true]).contains(&partial));
    assert!(!with(&[false]).contains(&partial));
    assert!(!with(&[]).contains(&partial));
}

#[test]
fn nothing_is_added_after_two_dashes() {
    let it = variant(&format!(
        "{ARGV}args = [\"run\", \"--\", \"{{prompt}}\"]\nmodel = [\"-m\", \"{{model}}\"]"
    ));
    let choice = Choice { model: Some("x"), ..prompted("-hi") };
    assert_eq!(it.argv(&choice).unwrap(), ["run", "-m", "x", "--", "-hi"]);
}

#[test]
fn prompts_that_cannot_be_arguments_are_refused_with_a_sentence() {
    let it = variant(&format!("{ARGV}args = [\"-p\", \"{{prompt}}\"]"));
    assert_eq!(it.argv(&prompted("- item")), Err(Refusal::PromptLikeOption));
    assert_eq!(it.argv(&prompted("a\0b")), Err(Refusal::Nul { what: "the prompt" }));
    let refusal = it.argv(&prompted("01234567890")).unwrap_err();
    assert_eq!(refusal, Refusal::PromptTooLong { bytes: 11, max: 10 });
    assert!(refusal.to_string().contains("has 11 bytes"), "{refusal}");
    let glued = variant(&format!("{ARGV}args = [\"--message={{prompt}}\"]"));
    assert_eq!(glued.argv(&prompted("- item")).unwrap(), ["--message=- item"]);
}

#[test]
fn a_prompt_on_stdin_is_not_looked_at() {
    let it = variant("dialect = \"plain\"\nargs = [\"run\"]");
    assert_eq!(it.argv(&prompted("- \0 anything")).unwrap(), ["run"]);
}

#[test]
fn a_program_that_reads_a_file_needs_one() {
    let it = variant("dialect = \"plain\"\nprompt = \"file\"\nargs = [\"--file\", \"{file}\"]");
    assert_eq!(it.argv(&prompted("hi")), Err(Refusal::FileMissing));
    let choice = Choice { file: Some("/p.md"), ..prompted("hi") };
    assert_eq!(it.argv(&choice).unwrap(), ["--file", "/p.md"]);
}

#[test]
fn a_conversation_is_never_begun_anew_in_silence() {
    let it = variant("dialect = \"plain\"\nargs = [\"run\"]");
    let later = Choice { session: Some("s"), ..prompted("hi") };
    assert_eq!(it.argv(&later), Err(Refusal::NoResume));
    // Over ACP the session is named in a message.
    assert_eq!(variant("args = [\"acp\"]").argv(&later).unwrap(), ["acp"]);
}

#[test]
fn ids_that_look_like_options_are_refused() {
    let it = variant(
        "dialect = \"plain\"\nargs = []\nresume = [\"--resume\", \"{session}\"]\nmodel = [\"-m\", \"{model}\"]\nreasoning = [\"-r\", \"{reasoning}\"]",
    );
    for id in ["-x", "--help", "", "a\0b", "a\nb"] {
        let session = Choice { session: Some(id), ..prompted("hi") };
        assert!(matches!(it.argv(&session), Err(Refusal::SessionMalformed { .. })), "{id:?}");
        let model = Choice { model: Some(id), ..prompted("hi") };
        assert!(matches!(it.argv(&model), Err(Refusal::ModelMalformed { .. })), "{id:?}");
        let reasoning = Choice { reasoning: Some(id), ..prompted("hi") };
        assert!(matches!(it.argv(&reasoning), Err(Refusal::ReasoningUnknown { .. })), "{id:?}");
    }
    let mode = Choice { mode: Some("yolo"), ..prompted("hi") };
    assert!(matches!(it.argv(&mode), Err(Refusal::ModeUnknown { .. })));
}

#[test]
fn a_model_is_allowed_if_it_is_listed_or_well_formed_where_others_may_be() {
    let catalogue = Catalogue::builtin();
    let (codex, amp) = (catalogue.get("codex").unwrap(), catalogue.get("amp").unwrap());
    let known = [Model { id: "turbo".into(), name: "Turbo".into() }];
    for id in ["default", "gpt-5.5", "org/My Model:v1@2+x[1m]"] {
        assert_eq!(check_model(codex, &[], id), Ok(()), "{id}");
    }
    for id in ["-m", "", "a\"b", "a;b", "a\u{7f}", "ä", &"x".repeat(201)] {
        assert!(matches!(check_model(codex, &[], id), Err(Refusal::ModelMalformed { .. })), "{id}");
    }
    assert_eq!(check_model(amp, &known, "turbo"), Ok(()));
    assert_eq!(check_model(amp, &known, "rush"), Ok(()));
    let refusal = check_model(amp, &known, "gpt-5.5").unwrap_err().to_string();
    assert_eq!(
        refusal,
        "`amp` has no model `gpt-5.5`: choose one of `default`, `turbo`, `smart`, `deep`, `rush`"
    );
}

#[test]
fn an_effort_is_one_of_the_agents_own() {
    let catalogue = Catalogue::builtin();
    let codex = catalogue.get("codex").unwrap();
    assert_eq!(check_reasoning(codex, "default"), Ok(()));
    assert_eq!(check_reasoning(codex, "xhigh"), Ok(()));
    assert!(check_reasoning(codex, "hard").unwrap_err().to_string().contains("`xhigh`"));
    assert!(check_reasoning(catalogue.get("goose").unwrap(), "high").is_err());
}

/// A variant of any built-in agent.
fn any_variant() -> impl Strategy<Value = Variant> {
    let all: Vec<Variant> = Catalogue::builtin().iter().flat_map(|it| it.launch.clone()).collect();
    prop::sample::select(all)
}

proptest! {
    #[test]
    fn no_placeholder_is_left_and_the_prompt_is_one_argument(
        variant in any_variant(),
        prompt in "\\PC{0,40}|[a-z{} ]{0,20}|\\{(prompt|model|session|file|cwd|reasoning)\\}",
        session in prop::option::of("[a-z0-9-]{1,20}"),
        model in prop::option::of("[A-Za-z0-9][A-Za-z0-9._/:@+ -]{0,20}[a-z0-9]"),
        reasoning in prop::option::of("[a-z]{1,8}"),
        mode in any::<prop::sample::Index>(),
        flags in prop::collection::vec(any::<bool>(), 0..3),
    ) {
        let mode = variant.modes.get(mode.index(variant.modes.len().max(1)));
        let choice = Choice {
            session: session.as_deref(),
            model: model.as_deref(),
            reasoning: reasoning.as_deref(),
            mode: mode.map(|it| it.id.as_str()),
            prompt: &prompt,
            file: Some("/tmp/p.md"),
            cwd: "/w",
            flags: &flags,
        };
        let Ok(argv) = variant.argv(&choice) else { return Ok(()) };
        // The prompt may say what it likes: a marked one shows where it stands.
        let marked = variant.argv(&Choice { prompt: "MARK", ..choice }).unwrap();
        prop_assert_eq!(argv.len(), marked.len(), "a prompt never becomes two arguments");
        let places: Vec<usize> =
            (0..marked.len()).filter(|it| marked[*it].contains("MARK")).collect();
        prop_assert_eq!(places.len(), usize::from(variant.prompt == PromptBy::Argv));
        for place in places {
            prop_assert!(argv[place].ends_with(&prompt));
        }
        for argument in &marked {
            for name in ["session", "model", "reasoning", "prompt", "file", "cwd"] {
                prop_assert!(!argument.contains(&format!("{{{name}}}")), "{}", argument);
            }
        }
    }

    #[test]
    fn nothing_but_the_file_makes_an_option(
        variant in any_variant(),
        session in "\\PC{0,20}",
        model in "\\PC{0,20}",
        reasoning in "\\PC{0,20}",
        prompt in "\\PC{0,20}",
    ) {
        let choice = Choice {
            session: Some(&session), model: Some(&model), reasoning: Some(&reasoning),
            prompt: &prompt, file: Some("/tmp/p.md"), cwd: "/w", ..Choice::default()
        };
        let plain = Choice {
            session: Some("s"), model: Some("m"), reasoning: Some("r"), prompt: "p", ..choice
        };
        if let (Ok(argv), Ok(plain)) = (variant.argv(&choice), variant.argv(&plain)) {
            let options = |list: &[String]| list.iter().filter(|it| it.starts_with('-')).count();
            let ours = if model == "default" || reasoning == "default" { argv.len() } else { options(&plain) };
            prop_assert!(options(&argv) <= ours, "{:?}", argv);
        }
    }
}
