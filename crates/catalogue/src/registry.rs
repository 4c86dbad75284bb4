//! Agents from an ACP registry file: packages and archives become specs that start over ACP.

use crate::{
    EnvRules, Flaw, Models, Spec, Variant, VersionProbe,
    check::{Complaint, check},
    parse::settle,
};
use serde::Deserialize;
use serde_json::Value;
use std::{
    collections::BTreeMap,
    env::consts::{ARCH, OS},
};

/// What a registry file gave.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Imported {
    pub specs: Vec<Spec>,
    pub skipped: Vec<Skipped>,
}

/// An entry that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{entry}` was skipped: {reason}")]
pub struct Skipped {
    /// Its id, or its place in the list.
    pub entry: String,
    pub reason: String,
}

/// Reads a registry, a list of agents, or the file of a single one.
pub fn import_registry(json: &str) -> Result<Imported, Flaw> {
    let value: Value = serde_json::from_str(json)
        .map_err(|error| Flaw { line: Some(error.line()), reason: error.to_string() })?;
    let entries = match value {
        Value::Array(entries) => entries,
        Value::Object(mut table) if table.contains_key("agents") => match table.remove("agents") {
            Some(Value::Array(entries)) => entries,
            _ => return Err(Flaw::of_file("`agents` of a registry is a list")),
        },
        single @ Value::Object(_) if single.get("distribution").is_some() => vec![single],
        _ => return Err(Flaw::of_file("no ACP registry: there is no list `agents` in it")),
    };
    let mut imported = Imported::default();
    for (index, entry) in entries.into_iter().enumerate() {
        let id = entry["id"].as_str().map_or_else(|| format!("#{}", index + 1), str::to_owned);
        match take(entry) {
            Ok(spec) => imported.specs.push(spec),
            Err(reason) => imported.skipped.push(Skipped { entry: id, reason }),
        }
    }
    Ok(imported)
}

/// What we read of an entry. Unknown keys are left alone: registries grow.
#[derive(Deserialize)]
struct Entry {
    id: String,
    name: String,
    version: Option<String>,
    description: Option<String>,
    website: Option<String>,
    repository: Option<String>,
    distribution: Distribution,
}

#[derive(Deserialize)]
struct Distribution {
    npx: Option<Package>,
    uvx: Option<Package>,
    binary: Option<BTreeMap<String, Target>>,
}

#[derive(Deserialize)]
struct Package {
    #[serde(rename = "package")]
    name: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Target {
    archive: String,
    cmd: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
}

/// How to start an entry, whichever way it is distributed.
struct Start {
    bin: String,
    args: Vec<String>,
    env: BTreeMap<String, String>,
    install: String,
}

fn take(entry: Value) -> Result<Spec, String> {
    let entry: Entry = serde_json::from_value(entry).map_err(|error| error.to_string())?;
    let Entry { id, name, version, description, website, repository, distribution } = entry;
    let binary = distribution.binary.and_then(|it| ours(it, OS, ARCH)).map(unpacked);
    let npx = distribution.npx.map(|it| packaged("npx", it, version.as_deref()));
    let uvx = distribution.uvx.map(|it| packaged("uvx", it, version.as_deref()));
    let starts: Vec<Start> = binary.into_iter().chain(npx).chain(uvx).collect();
    let first = starts.first().ok_or("its distribution is neither npx, uvx nor binary")?;
    let mut spec = Spec {
        id,
        name,
        bins: vec![first.bin.clone()],
        bin_env: None,
        install: Some(first.install.clone()),
        docs: website.or(repository),
        note: description,
        version: VersionProbe::default(),
        auth: None,
        env: EnvRules::default(),
        launch: Vec::new(),
        models: Models::default(),
        reasoning: Vec::new(),
        sessions_per_process: None,
        quirks: Vec::new(),
    };
    for start in starts {
        spec.env.set.extend(start.env);
        let bins = vec![start.bin];
        spec.launch.push(Variant { bins, args: start.args, ..Variant::default() });
    }
    check(&spec).map_err(|Complaint { reason, .. }| reason)?;
    settle(&mut spec);
    Ok(spec)
}

/// The archive for this machine, or else any: all hold the same program, looked up by its name.
fn ours(mut targets: BTreeMap<String, Target>, os: &str, arch: &str) -> Option<Target> {
    let os = if os == "macos" { "darwin" } else { os };
    targets.remove(&format!("{os}-{arch}")).or_else(|| targets.into_values().next())
}

/// A package that its runner fetches: `npx -y name@1.2.3 …`, `uvx name==1.2.3 …`.
fn packaged(runner: &str, it: Package, version: Option<&str>) -> Start {
    let pin = if runner == "npx" { "@" } else { "==" };
    // A scope begins with `@`; only what follows can be a pin.
    let pinned = it.name.get(1..).is_some_and(|rest| rest.contains('@') || rest.contains("=="));
    let package = match version {
        Some(version) if !pinned => format!("{}{pin}{version}", it.name),
        _ => it.name,
    };
    let install = match runner {
        "npx" => format!("npm install -g {package}"),
        _ => format!("uv tool install {package}"),
    };
    let yes = (runner == "npx").then(|| "-y".to_owned());
    let args = yes.into_iter().chain([package]).chain(it.args).collect();
    Start { bin: runner.to_owned(), args, env: it.env, install }
}

/// An archive: the program in it is looked for under its own name.
fn unpacked(it: Target) -> Start {
    let name = it.cmd.rsplit(['/', '\\']).next().unwrap_or_default();
    // Some entries write the first arguments into the command.
    let mut words = name.split_whitespace().map(str::to_owned);
    let bin = words.next().unwrap_or_default();
    let bin = bin.strip_suffix(".exe").map_or_else(|| bin.clone(), str::to_owned);
    Start { bin, args: words.chain(it.args).collect(), env: it.env, install: it.archive }
}
