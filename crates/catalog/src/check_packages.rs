//! Checks of `[[package]]`: names, programs, and that `install` says the same.

use crate::{
    AgentPackage, AgentSpec,
    check_archives::check_archives,
    error::PathStep::{self, Item, Key},
    package::global_install_command,
    violation::{CheckResult, reject},
};

/// Checks the packages of a spec, and that `install` says the same.
pub(crate) fn check_packages(spec: &AgentSpec) -> CheckResult {
    for (index, package) in spec.packages.iter().enumerate() {
        check_package(&[Key("package"), Item(index)], package)?;
    }
    let Some(first) = spec.packages.first() else { return Ok(()) };
    if spec.packages.iter().any(|it| it.npm.is_some() != first.npm.is_some()) {
        return reject(&[Key("package")], "the packages of one agent have one source");
    }
    if first.npm.is_none() && 1 < spec.packages.len() {
        return reject(&[Key("package")], "only of npm can an agent have more than one package");
    }
    let bins: Vec<&String> = spec.packages.iter().flat_map(|it| &it.bins).collect();
    if let Some(index) = (1..bins.len()).find(|it| bins[..*it].contains(&bins[*it])) {
        return reject(&[Key("package")], format!("program `{}` is named twice", bins[index]));
    }
    if !spec.bins.iter().any(|it| bins.contains(&it)) {
        let reason = format!("no package has the program `{}`", spec.bins.join("` or `"));
        return reject(&[Key("package")], reason);
    }
    match (&spec.install, global_install_command(&spec.packages)) {
        (Some(install), Some(command)) if *install != command => {
            let reason = format!("`install` must be omitted or `{command}`, as `[[package]]` says");
            reject(&[Key("install")], reason)
        }
        _ => Ok(()),
    }
}

fn check_package(path: &[PathStep], package: &AgentPackage) -> CheckResult {
    let at = |key: &'static str| [path, &[Key(key)]].concat();
    match (&package.npm, &package.pypi, package.archives.is_empty()) {
        (Some(name), None, true) if !is_npm_name(name) => {
            return reject(&at("npm"), format!("`{name}` is not the name of an npm package"));
        }
        (None, Some(name), true) if !is_pypi_name(name) => {
            return reject(&at("pypi"), format!("`{name}` is not the name of a package on PyPI"));
        }
        (Some(_), None, true) | (None, Some(_), true) => {}
        (None, None, false) => check_archives(path, package)?,
        _ => return reject(path, "a package has either `npm`, `pypi` or `archive`"),
    }
    if package.version.is_some() && package.archives.is_empty() {
        return reject(&at("version"), "only archives have a version: registries know their own");
    }
    if package.bins.is_empty() {
        return reject(path, "`bins` of the package is missing: name its programs");
    }
    if let Some(index) = package.bins.iter().position(|it| !is_file_name(it)) {
        let reason = format!("`{}` is not the name of a program", package.bins[index]);
        return reject(&[&at("bins")[..], &[Item(index)]].concat(), reason);
    }
    if package.scripts && package.npm.is_none() {
        return reject(&at("scripts"), "only packages of npm have install scripts");
    }
    if let Some(version) = &package.python
        && (package.pypi.is_none() || !is_python_version(version))
    {
        let reason =
            format!("`{version}` is not a version of Python for a package of PyPI: `3.12`");
        return reject(&at("python"), reason);
    }
    Ok(())
}

fn is_word(text: &str) -> bool {
    let is_plain = |it: u8| it.is_ascii_alphanumeric() || b"._-".contains(&it);
    text.bytes().next().is_some_and(|it| it.is_ascii_alphanumeric()) && text.bytes().all(is_plain)
}

fn is_file_name(name: &str) -> bool {
    is_word(name)
}

/// `name` or `@scope/name`.
fn is_npm_name(name: &str) -> bool {
    match name.strip_prefix('@') {
        None => is_word(name),
        Some(scoped) => {
            scoped.split_once('/').is_some_and(|(scope, name)| is_word(scope) && is_word(name))
        }
    }
}

/// `name` or `name[extra,extra]`.
fn is_pypi_name(name: &str) -> bool {
    match name.split_once('[') {
        None => is_word(name),
        Some((name, extras)) => {
            let extras = extras.strip_suffix(']').unwrap_or_default();
            is_word(name) && extras.split(',').all(is_word)
        }
    }
}

fn is_python_version(version: &str) -> bool {
    let is_number = |it: &str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit());
    version.split_once('.').is_some_and(|(major, minor)| is_number(major) && is_number(minor))
}
