//! Checks of an agent spec that the TOML schema cannot express: the form of ids, the position of
//! placeholders, and names that must exist.

use crate::{
    AgentSpec, LaunchVariant, ModelSource, PromptDelivery,
    argv::is_plain_word,
    check_packages::check_packages,
    environment,
    error::PathStep::{self, Item, Key},
    models::is_model_id,
    placeholder,
    violation::{CheckResult, reject},
};

/// The dialects that `jackfield adapt` supports.
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

/// Returns the first violation.
pub(crate) fn check_spec(spec: &AgentSpec) -> CheckResult {
    if !is_spec_id(&spec.id) {
        return reject(
            &[Key("id")],
            format!(
                "`{}` is not an agent id: use lowercase letters, digits and `._-`, at most 40 \
                 characters, and start with a letter or digit",
                spec.id
            ),
        );
    }
    for (index, alias) in spec.aliases.iter().enumerate() {
        if !is_spec_id(alias) {
            let reason = format!("`{alias}` is not an alias: it has the same form as an id");
            return reject(&[Key("aliases"), Item(index)], reason);
        }
    }
    if spec.name.trim().is_empty() {
        return reject(&[Key("name")], "`name` is empty");
    }
    if spec.bins.is_empty() {
        return reject(&[Key("bins")], "`bins` is empty: name the program to look for");
    }
    check_bins(&[Key("bins")], &spec.bins)?;
    if spec.launch.is_empty() {
        return reject(&[], "no `[[launch]]`: describe how the program is started");
    }
    for (index, variant) in spec.launch.iter().enumerate() {
        check_variant(&[Key("launch"), Item(index)], variant)?;
        let is_same = |it: &LaunchVariant| !it.name.is_empty() && it.name == variant.name;
        if spec.launch[..index].iter().any(is_same) {
            let reason = format!("launch variant `{}` is defined twice", variant.name);
            return reject(&[Key("launch"), Item(index), Key("name")], reason);
        }
    }
    check_environment(spec)?;
    check_models(spec)?;
    check_packages(spec)?;
    check_sandbox(spec)?;
    for (index, option) in spec.reasoning.iter().enumerate() {
        if !is_plain_word(option) {
            let path = [Key("reasoning"), Key("options"), Item(index)];
            let reason = format!("`{option}` is not a reasoning option: use one plain word");
            return reject(&path, reason);
        }
    }
    Ok(())
}

fn is_spec_id(id: &str) -> bool {
    let is_alphanumeric = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit();
    id.len() <= 40
        && id.bytes().next().is_some_and(is_alphanumeric)
        && id.bytes().all(|it| is_alphanumeric(it) || b"._-".contains(&it))
}

fn check_bins(path: &[PathStep], bins: &[String]) -> CheckResult {
    for (index, bin) in bins.iter().enumerate() {
        let is_name = !bin.is_empty() && !bin.starts_with('-') && !bin.contains('/');
        if bin.contains('\0') || !(is_name || bin.starts_with('/')) {
            let path = [path, &[Item(index)]].concat();
            let reason = format!("`{bin}` is neither a program name nor an absolute path");
            return reject(&path, reason);
        }
    }
    Ok(())
}

fn check_sandbox(spec: &AgentSpec) -> CheckResult {
    for (index, folder) in spec.sandbox.folders.iter().enumerate() {
        let is_below = |root: &str| folder.strip_prefix(root).is_some_and(|it| !it.is_empty());
        if !(is_below("~/") || is_below("/")) || folder.split('/').any(|it| it == "..") {
            let reason = format!("`{folder}` is not a folder below `~/` or `/`");
            return reject(&[Key("sandbox"), Key("folders"), Item(index)], reason);
        }
    }
    for (index, name) in spec.sandbox.last_variants.iter().enumerate() {
        if spec.find_variant(name).is_none() {
            let reason = format!("there is no launch variant `{name}`");
            return reject(&[Key("sandbox"), Key("last_variants"), Item(index)], reason);
        }
    }
    for (index, host) in spec.sandbox.hosts.iter().enumerate() {
        let name = host.strip_prefix("*.").unwrap_or(host);
        let is_valid =
            |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || ".-:".contains(it);
        if name.is_empty() || !name.chars().all(is_valid) {
            let reason = format!(
                "`{host}` is not a host: write `api.example.com`, `*.example.com` or `localhost:8080`"
            );
            return reject(&[Key("sandbox"), Key("hosts"), Item(index)], reason);
        }
    }
    Ok(())
}

fn check_variant(path: &[PathStep], variant: &LaunchVariant) -> CheckResult {
    let at = |key: &'static str| [path, &[Key(key)]].concat();
    if !variant.name.is_empty() && !is_plain_word(&variant.name) {
        let reason = format!("`{}` is not a variant name: use one plain word", variant.name);
        return reject(&at("name"), reason);
    }
    check_bins(&at("bins"), &variant.bins)?;
    if let Some(dialect) = &variant.dialect
        && !DIALECTS.contains(&dialect.as_str())
    {
        let known = DIALECTS.join("`, `");
        return reject(
            &at("dialect"),
            format!("unknown dialect `{dialect}`: use one of `{known}`"),
        );
    }
    let prompt_placeholder = match variant.prompt {
        PromptDelivery::Stdin => None,
        PromptDelivery::Argv => Some("prompt"),
        PromptDelivery::File => Some("file"),
    };
    if variant.is_native_acp() && (prompt_placeholder.is_some() || variant.resume.is_some()) {
        return reject(
            path,
            "`prompt` and `resume` require a `dialect`: over ACP they are messages",
        );
    }
    let first_turn: Vec<&str> = ["cwd"].into_iter().chain(prompt_placeholder).collect();
    check_args(&at("args"), &variant.args, &first_turn)?;
    check_prompt_placeholder(&at("args"), &variant.args, prompt_placeholder)?;
    if let Some(resume) = &variant.resume {
        let later_turn: Vec<&str> = first_turn.iter().copied().chain(["session"]).collect();
        check_args(&at("resume"), resume, &later_turn)?;
        check_prompt_placeholder(&at("resume"), resume, prompt_placeholder)?;
    }
    check_args(&at("model"), &variant.model, &["model"])?;
    check_args(&at("reasoning"), &variant.reasoning, &["reasoning"])?;
    check_args(&at("add_dir"), &variant.add_dir, &["dir", "dirs"])?;
    for (index, flag) in variant.flags.iter().enumerate() {
        check_args(
            &[&at("flags")[..], &[Item(index), Key("args")]].concat(),
            &flag.args,
            &["cwd"],
        )?;
    }
    check_modes(&at("modes"), variant)
}

fn check_modes(path: &[PathStep], variant: &LaunchVariant) -> CheckResult {
    for (index, mode) in variant.modes.iter().enumerate() {
        let at = |key: &'static str| [path, &[Item(index), Key(key)]].concat();
        if !is_plain_word(&mode.id) {
            let reason = format!("`{}` is not a mode id: use one plain word", mode.id);
            return reject(&at("id"), reason);
        }
        if variant.modes[..index].iter().any(|it| it.id == mode.id) {
            return reject(&at("id"), format!("mode `{}` is defined twice", mode.id));
        }
        check_args(&at("args"), &mode.args, &["cwd"])?;
    }
    if let Some(id) = &variant.approve_all
        && variant.modes.iter().all(|it| it.id != *id || it.asks)
    {
        let path = [&path[..path.len() - 1], &[Key("approve_all")]].concat();
        return reject(&path, format!("`{id}` is not a mode that never asks"));
    }
    Ok(())
}

/// Checks that every placeholder exists and is allowed in this list.
fn check_args(path: &[PathStep], args: &[String], allowed: &[&str]) -> CheckResult {
    for (index, argument) in args.iter().enumerate() {
        let path = [path, &[Item(index)]].concat();
        if argument.contains('\0') {
            let reason = "the argument contains a NUL byte, which a command line cannot contain";
            return reject(&path, reason);
        }
        for name in placeholder::placeholder_names(argument) {
            if !placeholder::NAMES.contains(&name) {
                let known = placeholder::NAMES.join("}`, `{");
                return reject(
                    &path,
                    format!("unknown placeholder `{{{name}}}`: use one of `{{{known}}}`"),
                );
            }
            if !allowed.contains(&name) {
                return reject(
                    &path,
                    format!("`{{{name}}}` is not allowed here{}", placement_hint(name)),
                );
            }
        }
    }
    Ok(())
}

fn placement_hint(name: &str) -> &'static str {
    match name {
        "session" => ": it belongs in `resume`",
        "model" => ": it belongs in `model`",
        "reasoning" => ": it belongs in `reasoning`",
        "dir" | "dirs" => ": it belongs in `add_dir`",
        "prompt" => ": it requires a `dialect` and `prompt = \"argv\"`",
        "file" => ": it requires a `dialect` and `prompt = \"file\"`",
        _ => "",
    }
}

/// Checks that a prompt that is passed by argument occurs exactly once.
fn check_prompt_placeholder(
    path: &[PathStep],
    args: &[String],
    prompt_placeholder: Option<&str>,
) -> CheckResult {
    let Some(name) = prompt_placeholder else { return Ok(()) };
    match args
        .iter()
        .flat_map(|it| placeholder::placeholder_names(it))
        .filter(|it| *it == name)
        .count()
    {
        1 => Ok(()),
        0 => reject(path, format!("`{{{name}}}` is missing: the prompt would be lost")),
        _ => reject(path, format!("`{{{name}}}` occurs twice")),
    }
}

fn check_environment(spec: &AgentSpec) -> CheckResult {
    for (key, list) in [("pass", &spec.env.pass), ("remove", &spec.env.remove)] {
        for (index, pattern) in list.iter().enumerate() {
            if let Some(reason) = environment::find_pattern_error(pattern) {
                return reject(&[Key("env"), Key(key), Item(index)], reason);
            }
        }
    }
    let of_sandbox = spec.sandbox.env.iter().map(|it| ([Key("sandbox"), Key("env")], it));
    let of_program = spec.env.set.iter().map(|it| ([Key("env"), Key("set")], it));
    for (path, (name, value)) in of_program.chain(of_sandbox) {
        if let Some(reason) = environment::find_pattern_error(name) {
            return reject(&path, reason);
        }
        if name.contains('*') || value.contains('\0') {
            let reason = format!("`{name}` cannot be set: `*` and NUL bytes are not allowed");
            return reject(&path, reason);
        }
    }
    let auth = spec.auth.iter().flat_map(|it| &it.env).chain(&spec.env.require);
    for name in auth.chain(&spec.bin_env).chain(&spec.models.file_env) {
        if name.contains('*') || environment::find_pattern_error(name).is_some() {
            return reject(&[], format!("`{name}` is not a variable name"));
        }
    }
    Ok(())
}

fn check_models(spec: &AgentSpec) -> CheckResult {
    let models = &spec.models;
    let missing = match models.from {
        Some(ModelSource::Command) if models.args.is_empty() => Some("args"),
        Some(ModelSource::Settings) if models.file.is_none() => Some("file"),
        None | Some(ModelSource::Acp) => None,
        Some(_) if models.format.is_none() => Some("format"),
        Some(_) => None,
    };
    if let Some(key) = missing {
        return reject(&[Key("models"), Key("from")], format!("`from` requires `{key}`"));
    }
    match models.fallback.iter().position(|it| !is_model_id(it)) {
        None => Ok(()),
        Some(index) => {
            let reason = format!("`{}` is not a model id", models.fallback[index]);
            reject(&[Key("models"), Key("fallback"), Item(index)], reason)
        }
    }
}
