//! What the form of a file cannot say: ids, placeholders in their places, names that exist.

use crate::{
    ModelsFrom, PromptBy, Spec, Variant,
    argv::is_word,
    environment,
    flaw::Step::{self, Item, Key},
    models::is_id,
    placeholder,
};

/// The dialects our adapter knows.
pub const DIALECTS: &[&str] = &[
    "amp",
    "claude",
    "codex",
    "codex-app-server",
    "copilot",
    "cursor",
    "gemini",
    "grok",
    "kimi",
    "opencode",
    "pi",
    "plain",
    "qwen",
];

/// A reason, and the way to the value it is about.
pub(crate) struct Complaint {
    pub(crate) path: Vec<Step>,
    pub(crate) reason: String,
}

type Checked = Result<(), Complaint>;

fn complain(path: &[Step], reason: impl Into<String>) -> Checked {
    Err(Complaint { path: path.to_vec(), reason: reason.into() })
}

/// The first thing that is wrong with a spec, if any.
pub(crate) fn check(spec: &Spec) -> Checked {
    if !is_spec_id(&spec.id) {
        return complain(
            &[Key("id")],
            format!(
                "`{}` is no id: lowercase letters, digits and `._-`, at most 40, and a letter or \
                 digit first",
                spec.id
            ),
        );
    }
    if spec.name.trim().is_empty() {
        return complain(&[Key("name")], "`name` is empty");
    }
    if spec.bins.is_empty() {
        return complain(&[Key("bins")], "`bins` is empty: name the program to look for");
    }
    check_bins(&[Key("bins")], &spec.bins)?;
    if spec.launch.is_empty() {
        return complain(&[], "no `[[launch]]`: say how the program is started");
    }
    for (index, variant) in spec.launch.iter().enumerate() {
        check_variant(&[Key("launch"), Item(index)], variant)?;
    }
    check_environment(spec)?;
    check_models(spec)?;
    for (index, option) in spec.reasoning.iter().enumerate() {
        if !is_word(option) {
            let path = [Key("reasoning"), Key("options"), Item(index)];
            return complain(&path, format!("`{option}` is no reasoning option: one plain word"));
        }
    }
    Ok(())
}

fn is_spec_id(id: &str) -> bool {
    let plain = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit();
    id.len() <= 40
        && id.bytes().next().is_some_and(plain)
        && id.bytes().all(|it| plain(it) || b"._-".contains(&it))
}

fn check_bins(path: &[Step], bins: &[String]) -> Checked {
    for (index, bin) in bins.iter().enumerate() {
        let named = !bin.is_empty() && !bin.starts_with('-') && !bin.contains('/');
        if bin.contains('\0') || !(named || bin.starts_with('/')) {
            let path = [path, &[Item(index)]].concat();
            return complain(&path, format!("`{bin}` is neither a program's name nor a full path"));
        }
    }
    Ok(())
}

fn check_variant(path: &[Step], variant: &Variant) -> Checked {
    let at = |key: &'static str| [path, &[Key(key)]].concat();
    check_bins(&at("bins"), &variant.bins)?;
    if let Some(dialect) = &variant.dialect
        && !DIALECTS.contains(&dialect.as_str())
    {
        let known = DIALECTS.join("`, `");
        return complain(
            &at("dialect"),
            format!("no dialect is called `{dialect}`: it is one of `{known}`"),
        );
    }
    let carrier = match variant.prompt {
        PromptBy::Stdin => None,
        PromptBy::Argv => Some("prompt"),
        PromptBy::File => Some("file"),
    };
    if variant.speaks_acp() && (carrier.is_some() || variant.resume.is_some()) {
        return complain(
            path,
            "`prompt` and `resume` need a `dialect`: over ACP they are messages",
        );
    }
    let turn: Vec<&str> = ["cwd"].into_iter().chain(carrier).collect();
    check_args(&at("args"), &variant.args, &turn)?;
    check_carrier(&at("args"), &variant.args, carrier)?;
    if let Some(resume) = &variant.resume {
        let later: Vec<&str> = turn.iter().copied().chain(["session"]).collect();
        check_args(&at("resume"), resume, &later)?;
        check_carrier(&at("resume"), resume, carrier)?;
    }
    check_args(&at("model"), &variant.model, &["model"])?;
    check_args(&at("reasoning"), &variant.reasoning, &["reasoning"])?;
    for (index, flag) in variant.flags.iter().enumerate() {
        check_args(
            &[&at("flags")[..], &[Item(index), Key("args")]].concat(),
            &flag.args,
            &["cwd"],
        )?;
    }
    check_modes(&at("modes"), variant)
}

fn check_modes(path: &[Step], variant: &Variant) -> Checked {
    for (index, mode) in variant.modes.iter().enumerate() {
        let at = |key: &'static str| [path, &[Item(index), Key(key)]].concat();
        if !is_word(&mode.id) {
            return complain(&at("id"), format!("`{}` is no mode's id: one plain word", mode.id));
        }
        if variant.modes[..index].iter().any(|it| it.id == mode.id) {
            return complain(&at("id"), format!("there are two modes `{}`", mode.id));
        }
        check_args(&at("args"), &mode.args, &["cwd"])?;
    }
    Ok(())
}

/// Every placeholder exists and means something at this place.
fn check_args(path: &[Step], args: &[String], allowed: &[&str]) -> Checked {
    for (index, argument) in args.iter().enumerate() {
        let path = [path, &[Item(index)]].concat();
        if argument.contains('\0') {
            return complain(
                &path,
                "an argument contains a NUL byte, which no command line carries",
            );
        }
        for name in placeholder::names(argument) {
            if !placeholder::NAMES.contains(&name) {
                let known = placeholder::NAMES.join("}`, `{");
                return complain(
                    &path,
                    format!("nothing is put in place of `{{{name}}}`: there are `{{{known}}}`"),
                );
            }
            if !allowed.contains(&name) {
                return complain(
                    &path,
                    format!("`{{{name}}}` means nothing here{}", belongs(name)),
                );
            }
        }
    }
    Ok(())
}

fn belongs(name: &str) -> &'static str {
    match name {
        "session" => ": it belongs in `resume`",
        "model" => ": it belongs in `model`",
        "reasoning" => ": it belongs in `reasoning`",
        "prompt" => ": it needs a `dialect` and `prompt = \"argv\"`",
        "file" => ": it needs a `dialect` and `prompt = \"file\"`",
        _ => "",
    }
}

/// A prompt that travels in an argument is in exactly one.
fn check_carrier(path: &[Step], args: &[String], carrier: Option<&str>) -> Checked {
    let Some(name) = carrier else { return Ok(()) };
    match args.iter().flat_map(|it| placeholder::names(it)).filter(|it| *it == name).count() {
        1 => Ok(()),
        0 => complain(path, format!("`{{{name}}}` is missing: the prompt would not arrive")),
        _ => complain(path, format!("`{{{name}}}` stands here twice")),
    }
}

fn check_environment(spec: &Spec) -> Checked {
    for (key, list) in [("pass", &spec.env.pass), ("remove", &spec.env.remove)] {
        for (index, pattern) in list.iter().enumerate() {
            if let Some(reason) = environment::fault(pattern) {
                return complain(&[Key("env"), Key(key), Item(index)], reason);
            }
        }
    }
    for (name, value) in &spec.env.set {
        let path = [Key("env"), Key("set")];
        if let Some(reason) = environment::fault(name) {
            return complain(&path, reason);
        }
        if name.contains('*') || value.contains('\0') {
            return complain(&path, format!("`{name}` cannot be set: a plain name, no NUL byte"));
        }
    }
    let auth = spec.auth.iter().flat_map(|it| &it.env);
    for name in auth.chain(&spec.bin_env).chain(&spec.models.file_env) {
        if name.contains('*') || environment::fault(name).is_some() {
            return complain(&[], format!("`{name}` is no variable's name"));
        }
    }
    Ok(())
}

fn check_models(spec: &Spec) -> Checked {
    let models = &spec.models;
    let missing = match models.from {
        Some(ModelsFrom::Command) if models.args.is_empty() => Some("args"),
        Some(ModelsFrom::Settings) if models.file.is_none() => Some("file"),
        None | Some(ModelsFrom::Acp) => None,
        Some(_) if models.format.is_none() => Some("format"),
        Some(_) => None,
    };
    if let Some(key) = missing {
        return complain(&[Key("models"), Key("from")], format!("`from` needs `{key}` beside it"));
    }
    match models.fallback.iter().position(|it| !is_id(it)) {
        None => Ok(()),
        Some(index) => {
            let reason = format!("`{}` is not an id of a model", models.fallback[index]);
            complain(&[Key("models"), Key("fallback"), Item(index)], reason)
        }
    }
}
