//! The npm packages, from a registry on loopback, and their launcher.

use super::{BOUND, SHARED_FILES, find_package, list_tree, make_packages, print, succeed};
use jackfield_e2e::{app::in_tree, home::finish, wait_for};
use jackfield_test_support::file_server::FileServer;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

const VERSION: &str = env!("CARGO_PKG_VERSION");
const PLATFORMS: [(&str, &str); 4] =
    [("darwin", "arm64"), ("darwin", "x64"), ("linux", "arm64"), ("linux", "x64")];

/// The package of this platform without the scope.
fn platform_package() -> String {
    let system = if cfg!(target_os = "macos") { "darwin" } else { "linux" };
    let processor = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    format!("{system}-{processor}")
}

/// Writes what a registry answers about the packages. It has the packages of this platform only: npm must not need
/// others, although the registry knows them.
fn write_registry(folder: &Path, url: &str) {
    write_document(folder, url, "jackfield-npm.tgz", read_manifest(folder, "jackfield-npm.tgz"));
    for (system, processor) in PLATFORMS {
        let file = format!("jackfield-npm-{system}-{processor}.tgz");
        let manifest = if folder.join(&file).exists() {
            read_manifest(folder, &file)
        } else {
            let name = format!("@jackfield/{system}-{processor}");
            json!({"name": name, "version": VERSION, "os": [system], "cpu": [processor]})
        };
        write_document(folder, url, &file, manifest);
    }
}

fn read_manifest(folder: &Path, package: &str) -> Value {
    let mut tar = Command::new("tar");
    tar.arg("-xzOf").arg(folder.join(package)).arg("package/package.json");
    serde_json::from_str(&succeed(tar)).unwrap()
}

/// The document of a package has the manifests of its versions.
fn write_document(folder: &Path, url: &str, package: &str, mut manifest: Value) {
    let name = manifest["name"].as_str().unwrap().to_owned();
    manifest["dist"] = json!({"tarball": format!("{url}/{package}")});
    let versions = json!({VERSION: manifest});
    let document = json!({"name": name, "dist-tags": {"latest": VERSION}, "versions": versions});
    fs::write(folder.join(name.replace('/', "%2f")), document.to_string()).unwrap();
}

/// npm with a home of its own.
fn npm(home: &Path, registry: &str, args: &[&str]) -> Command {
    let mut npm = Command::new(args[0]);
    npm.args(&args[1..]).env_clear().current_dir(home).env("HOME", home);
    npm.env("PATH", format!("{}/prefix/bin:/usr/local/bin:/usr/bin:/bin", home.display()));
    npm.env("npm_config_registry", registry).env("npm_config_prefix", home.join("prefix"));
    npm.env("npm_config_update_notifier", "false").env("npm_config_audit", "false");
    npm
}

#[test]
#[ignore = "nightly: compresses the program"]
fn npm_installs_and_npx_runs_the_program_of_this_platform_and_removes_it() {
    let packages = make_packages(&["npm"]);
    assert!(find_package(packages.path(), "jackfield-npm.tgz").is_file());
    let server = FileServer::start(packages.path());
    write_registry(packages.path(), &server.url());
    let home = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| succeed(npm(home.path(), &server.url(), args));

    let expected = format!("jackfield {VERSION}");
    assert_eq!(run(&["npx", "--yes", "jackfield", "--version"]).trim(), expected);
    let prefix = home.path().join("prefix");
    fs::create_dir_all(prefix.join("lib")).unwrap();
    let files = |folder: &Path| -> Vec<PathBuf> {
        list_tree(folder).into_iter().filter(|it| folder.join(it).is_file()).collect()
    };

    run(&["npm", "install", "--global", "jackfield"]);
    assert_eq!(run(&["jackfield", "--version"]).trim(), expected);
    assert!(prefix.join("share/man/man1/jackfield-run.1").exists(), "{:?}", list_tree(&prefix));
    assert!(prefix.join("lib/node_modules/jackfield").join(SHARED_FILES[0]).is_file());
    run(&["npm", "uninstall", "--global", "jackfield"]);
    assert_eq!(files(&prefix), [] as [PathBuf; 0]);
}

/// The launcher beside a package whose program is this script.
fn launcher_of(script: &str) -> (tempfile::TempDir, Command) {
    let folder = tempfile::tempdir().unwrap();
    let modules = folder.path().join("node_modules");
    let program = modules.join("@jackfield").join(platform_package()).join("bin/jackfield");
    fs::create_dir_all(program.parent().unwrap()).unwrap();
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let launcher = modules.join("jackfield/bin/jackfield.js");
    fs::create_dir_all(launcher.parent().unwrap()).unwrap();
    fs::copy(in_tree("packages/npm/bin/jackfield.js"), &launcher).unwrap();
    let mut node = Command::new("node");
    node.arg(launcher);
    (folder, node)
}

#[test]
fn npm_launcher_passes_arguments_and_the_exit_code() {
    let (_folder, mut node) = launcher_of("#!/bin/sh\necho \"$1|$2\"; exit 7\n");
    node.args(["a b", "--version"]);
    let output = finish(node, BOUND);
    assert_eq!(output.status.code(), Some(7), "{}", print(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "a b|--version\n");
}

#[test]
fn npm_launcher_names_the_missing_package() {
    let (folder, node) = launcher_of("");
    fs::remove_dir_all(folder.path().join("node_modules/@jackfield")).unwrap();
    let output = finish(node, BOUND);
    assert_eq!(output.status.code(), Some(1));
    let text = print(&output);
    assert!(text.contains(&format!("@jackfield/{} is missing", platform_package())), "{text}");
}

#[test]
fn npm_launcher_forwards_sigterm_and_ends_with_the_program() {
    let script = "#!/bin/sh\ntrap 'echo ended; exit 3' TERM\necho ready\nread line\n";
    let (folder, mut node) = launcher_of(script);
    let out = folder.path().join("out");
    node.stdin(Stdio::piped()).stdout(fs::File::create(&out).unwrap());
    let mut child = node.spawn().unwrap();
    let text = || fs::read_to_string(&out).unwrap();
    wait_for("the program to start", BOUND, || text().contains("ready").then_some(()));
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let status = wait_for("the launcher to end", BOUND, || child.try_wait().unwrap());
    assert_eq!((status.code(), text().as_str()), (Some(3), "ready\nended\n"));
}
