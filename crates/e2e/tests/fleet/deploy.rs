//! The files in `deploy/`, which users copy, must be correct.

use jackfield_e2e::{Home, home::finish};
use jackfield_test_support::nats::program;
use std::{fs, path::PathBuf, process::Command, time::Duration};

const SOON: Duration = Duration::from_secs(30);

fn deploy(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(name)
}

#[test]
fn server_does_not_start_without_its_certificates() {
    let mut check = Command::new(program());
    check.arg("-t").arg("-c").arg(deploy("nats.conf")).env_clear();
    let checked = finish(check, SOON);
    assert!(!checked.status.success(), "{checked:?}");
    let stderr = String::from_utf8_lossy(&checked.stderr);
    assert!(stderr.contains("authorization.conf"), "{stderr}");
}

/// The command accepts every flag that a unit passes.
#[test]
fn units_pass_only_valid_flags() {
    let home = Home::new();
    let mut lines = 0;
    for unit in ["jackfield-host.service", "jackfield-gateway.service", "jackfield.service"] {
        let text = fs::read_to_string(deploy(unit)).unwrap();
        let starts = text.lines().filter_map(|it| {
            let (key, command) = it.split_once('=')?;
            let args = command.strip_prefix("/usr/local/bin/jackfield ")?;
            key.starts_with("Exec").then_some(args)
        });
        for args in starts {
            let args: Vec<&str> = args.split(' ').chain(["--help"]).collect();
            let told = home.run(&args, SOON);
            assert!(told.status.success(), "{unit}: {args:?}: {told:?}");
            lines += 1;
        }
    }
    assert_eq!(lines, 4);
}

/// Read by another parser of property lists than ours: we have none.
#[test]
fn launchd_agent_is_a_property_list_and_starts_the_daemon() {
    let script =
        "import json, plistlib, sys; print(json.dumps(plistlib.load(open(sys.argv[1], 'rb'))))";
    let python = std::env::var_os("JACKFIELD_PYTHON").unwrap_or_else(|| "python3".into());
    let mut parse = Command::new(python);
    parse.args(["-c", script]).arg(deploy("dev.jackfield.daemon.plist"));
    let parsed = finish(parse, SOON);
    assert!(parsed.status.success(), "{parsed:?}");
    let agent: serde_json::Value = serde_json::from_slice(&parsed.stdout).unwrap();
    assert_eq!(agent["Label"], "dev.jackfield.daemon", "launchctl finds the file by its label");
    assert_eq!(agent["KeepAlive"]["SuccessfulExit"], false, "a stopped daemon stays stopped");
    let command = agent["ProgramArguments"].as_array().unwrap();
    assert_eq!(command[0], "/usr/local/bin/jackfield");
    let args = command[1..].iter().map(|it| it.as_str().unwrap()).chain(["--help"]);
    let told = Home::new().run(&args.collect::<Vec<_>>(), SOON);
    assert!(told.status.success(), "{told:?}");
}

/// Every unit has these, including the one of hosts, whose agents need more permissions than a gateway.
#[test]
fn units_are_hardened() {
    for unit in ["jackfield-host.service", "jackfield-gateway.service"] {
        let text = fs::read_to_string(deploy(unit)).unwrap();
        for setting in [
            "NoNewPrivileges=yes",
            "CapabilityBoundingSet=",
            "ProtectSystem=strict",
            "PrivateTmp=yes",
            "StateDirectoryMode=0700",
            "RuntimeDirectoryMode=0700",
            "RestrictAddressFamilies=AF_UNIX AF_INET",
            "SystemCallFilter=",
        ] {
            assert!(text.lines().any(|it| it.starts_with(setting)), "{unit} has no {setting}");
        }
        // The private /tmp hides the default runtime folder from commands outside of the unit.
        assert!(text.contains("JACKFIELD_RUNTIME_DIR=/run/jackfield"), "{unit}");
    }
}
