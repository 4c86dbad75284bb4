//! A whole profile, enforced with Landlock.

use crate::fixture::{SandboxFixture, stdout};
use jackfield_sandbox::plan::EnforcementLayer;

#[test]
fn workspace_profile_without_protected_files_works() {
    let mut fixture = SandboxFixture::new();
    fixture.facts.layer = EnforcementLayer::Landlock;
    let plan = fixture.plan("network = \"none\"\nprotect_files = false");
    let script = "
        echo new > src/main.rs && echo wrote project
        echo new > ~/.agent/state && echo wrote own folder
        cat ~/.cargo/config.toml && echo
        cat ~/.rustup/settings && echo
        echo text > $TMPDIR/file && mktemp > /dev/null && echo wrote temporary
        cat ~/.ssh/id ~/.cargo/credentials.toml ../own/token
        echo new > ../outside/file
        git init -q new && git -C new status --short && echo ran git
    ";
    let output = fixture.command(&plan, script).output().unwrap();
    let expected = "wrote project\nwrote own folder\nvisible\nvisible\nwrote temporary\nran git";
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(stdout(&output), expected, "{errors}");
    assert_eq!(errors.matches("Permission denied").count(), 4, "{errors}");
    assert_eq!(fixture.read("project/src/main.rs"), "new\n");
    assert_eq!(fixture.read("outside/file"), "old");
}

#[test]
fn workspace_profile_with_protected_files_is_refused() {
    let mut fixture = SandboxFixture::new();
    fixture.facts.layer = EnforcementLayer::Landlock;
    let output = fixture.command(&fixture.plan("network = \"none\""), "true").output().unwrap();
    assert_eq!(output.status.code(), Some(125));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("protect_files = false"), "{errors}");
}
