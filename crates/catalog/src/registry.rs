//! Imports agents from an ACP registry file: packages and archives become specs of native ACP
//! agents.

use crate::{
    AgentPackage, AgentSpec, CatalogError, EnvRules, LaunchVariant, ModelSettings, PackageArchive,
    SandboxNeeds, VersionProbe, check::check_spec, check_archives::check_archive, current_platform,
    parse::apply_defaults, violation::SpecViolation,
};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The result of importing a registry file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RegistryImport {
    pub specs: Vec<AgentSpec>,
    pub skipped: Vec<SkippedEntry>,
}

/// An entry that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{entry}` was skipped: {reason}")]
pub struct SkippedEntry {
    /// Its id, or its position in the list as `#1`.
    pub entry: String,
    pub reason: String,
}

/// Imports a registry, a list of agents, or the file of a single agent.
pub fn import_registry(json: &str) -> Result<RegistryImport, CatalogError> {
    let value: Value = serde_json::from_str(json)
        .map_err(|error| CatalogError { line: Some(error.line()), reason: error.to_string() })?;
    let entries = match value {
        Value::Array(entries) => entries,
        Value::Object(mut table) if table.contains_key("agents") => match table.remove("agents") {
            Some(Value::Array(entries)) => entries,
            _ => return Err(CatalogError::for_file("`agents` of a registry must be a list")),
        },
        single @ Value::Object(_) if single.get("distribution").is_some() => vec![single],
        _ => {
            return Err(CatalogError::for_file(
                "not an ACP registry: the list `agents` is missing",
            ));
        }
    };
    let mut imported = RegistryImport::default();
    for (index, entry) in entries.into_iter().enumerate() {
        let id = entry["id"].as_str().map_or_else(|| format!("#{}", index + 1), str::to_owned);
        match import_entry(entry) {
            Ok(spec) => imported.specs.push(spec),
            Err(reason) => imported.skipped.push(SkippedEntry { entry: id, reason }),
        }
    }
    Ok(imported)
}

/// The keys of an entry that are used. Unknown keys are ignored, because registries add keys.
#[derive(Deserialize)]
struct RegistryEntry {
    id: String,
    name: String,
    version: Option<String>,
    description: Option<String>,
    website: Option<String>,
    repository: Option<String>,
    distribution: EntryDistribution,
}

#[derive(Deserialize)]
struct EntryDistribution {
    npx: Option<PackageDistribution>,
    uvx: Option<PackageDistribution>,
    binary: Option<BTreeMap<String, BinaryTarget>>,
}

#[derive(Deserialize)]
struct PackageDistribution {
    #[serde(rename = "package")]
    name: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct BinaryTarget {
    archive: String,
    sha256: Option<String>,
    cmd: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
}

/// How to start an entry, independent of its kind of distribution.
struct LaunchRecipe {
    bin: String,
    args: Vec<String>,
    env: BTreeMap<String, String>,
    install: String,
}

fn import_entry(entry: Value) -> Result<AgentSpec, String> {
    let entry: RegistryEntry = serde_json::from_value(entry).map_err(|error| error.to_string())?;
    let RegistryEntry { id, name, version, description, website, repository, distribution } = entry;
    let targets = distribution.binary.unwrap_or_default();
    let package = archive_package(&targets, version.as_deref());
    let binary = select_target(targets).map(archive_recipe);
    let npx = distribution.npx.map(|it| package_recipe("npx", it, version.as_deref()));
    let uvx = distribution.uvx.map(|it| package_recipe("uvx", it, version.as_deref()));
    let recipes: Vec<LaunchRecipe> = binary.into_iter().chain(npx).chain(uvx).collect();
    let first = recipes.first().ok_or("its distribution is neither npx, uvx nor binary")?;
    let mut spec = AgentSpec {
        id,
        name,
        aliases: Vec::new(),
        bins: vec![first.bin.clone()],
        bin_env: None,
        install: Some(first.install.clone()),
        packages: package.into_iter().filter(|it| it.bins[0] == first.bin).collect(),
        docs: website.or(repository),
        note: description,
        version: VersionProbe::default(),
        auth: None,
        env: EnvRules::default(),
        sandbox: SandboxNeeds::default(),
        launch: Vec::new(),
        models: ModelSettings::default(),
        reasoning: Vec::new(),
        sessions_per_process: None,
        quirks: Vec::new(),
    };
    for recipe in recipes {
        spec.env.set.extend(recipe.env);
        let bins = vec![recipe.bin];
        spec.launch.push(LaunchVariant { bins, args: recipe.args, ..LaunchVariant::default() });
    }
    check_spec(&spec).map_err(|SpecViolation { reason, .. }| reason)?;
    apply_defaults(&mut spec);
    Ok(spec)
}

/// The archive for this machine, or else any: all contain a program of the same name, and only the
/// name is used.
fn select_target(mut targets: BTreeMap<String, BinaryTarget>) -> Option<BinaryTarget> {
    targets.remove(&current_platform()).or_else(|| targets.into_values().next())
}

/// What `jackfield agents install` can install: the archives that have a checksum. `None` if there are none.
fn archive_package(
    targets: &BTreeMap<String, BinaryTarget>,
    version: Option<&str>,
) -> Option<AgentPackage> {
    let usable = |(platform, it): (&String, &BinaryTarget)| {
        let path = it.cmd.split_whitespace().next().unwrap_or_default();
        let program = path.strip_prefix("./").unwrap_or(path).to_owned();
        let (url, sha256) = (it.archive.clone(), it.sha256.clone()?);
        let archive = PackageArchive { url, sha256, program };
        check_archive(platform, &archive).ok().map(|()| (platform.clone(), archive))
    };
    let archives: BTreeMap<String, PackageArchive> = targets.iter().filter_map(usable).collect();
    let program = &archives.values().next()?.program;
    let bins = vec![program.rsplit('/').next().unwrap_or_default().to_owned()];
    let version = Some(version?.to_owned());
    Some(AgentPackage { version, bins, archives, ..AgentPackage::default() })
}

/// A package that its runner downloads: `npx -y name@1.2.3 …`, `uvx name==1.2.3 …`.
fn package_recipe(runner: &str, it: PackageDistribution, version: Option<&str>) -> LaunchRecipe {
    let pin = if runner == "npx" { "@" } else { "==" };
    // An npm scope begins with `@`; only a later `@` pins a version.
    let is_pinned = it.name.get(1..).is_some_and(|rest| rest.contains('@') || rest.contains("=="));
    let package = match version {
        Some(version) if !is_pinned => format!("{}{pin}{version}", it.name),
        _ => it.name,
    };
    let install = match runner {
        "npx" => format!("npm install -g {package}"),
        _ => format!("uv tool install {package}"),
    };
    let confirmation = (runner == "npx").then(|| "-y".to_owned());
    let args = confirmation.into_iter().chain([package]).chain(it.args).collect();
    LaunchRecipe { bin: runner.to_owned(), args, env: it.env, install }
}

/// An archive: the program in it is searched by its file name.
fn archive_recipe(it: BinaryTarget) -> LaunchRecipe {
    let name = it.cmd.rsplit(['/', '\\']).next().unwrap_or_default();
    // Some entries write the first arguments into the command.
    let mut command = name.split_whitespace().map(str::to_owned);
    let bin = command.next().unwrap_or_default();
    let bin = bin.strip_suffix(".exe").map_or_else(|| bin.clone(), str::to_owned);
    LaunchRecipe { bin, args: command.chain(it.args).collect(), env: it.env, install: it.archive }
}
