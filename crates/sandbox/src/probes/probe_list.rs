//! The list of attempts. `os` has the code of each one.

use super::{ProbeGroup, ProbeNeed, RefusingPart, SECRET_VARIABLE, SandboxProbe};
use ProbeGroup::{Changes, Kernel, Network, Processes, ProtectedFiles, Secrets, Work};
use ProbeNeed::{NoSandbox, Read, ReadOwn, Variable, Write};
use RefusingPart::{
    CallFilter, CallSupervisor, ClosedDescriptors, EnvironmentFilter, IpcNamespace, Landlock,
    MountNamespace, NetworkNamespace, NetworkProxy, NoCapabilities, NoNewPrivileges, PidNamespace,
};

/// All attempts, in the order in which they are made.
pub const PROBES: &[SandboxProbe] = &[
    work("read-project", "read a file of the project", Read("./src/main.rs")),
    work("write-project", "change a file of the project", Write("./src/main.rs")).in_short_form(),
    secret("read-ssh-key", "read a private key in ~/.ssh", Read("~/.ssh/id_ed25519"))
        .in_short_form(),
    secret(
        "read-cloud-credentials",
        "read cloud credentials in ~/.aws",
        Read("~/.aws/credentials"),
    ),
    secret(
        "read-registry-token",
        "read a registry token in ~/.cargo",
        Read("~/.cargo/credentials.toml"),
    ),
    secret("read-shell-history", "read the history of a shell", Read("~/.bash_history")),
    secret("read-other-project", "read another project", Read("~/other-project/notes.txt")),
    secret("read-through-link", "read a private key through a link", Read("~/.ssh/id_ed25519")),
    secret("see-hidden-file", "see that a hidden file exists", Read("~/.ssh/id_ed25519"))
        .refused_by(Some(MountNamespace), None),
    secret("read-own-journal", "read Jackfield's journal", ReadOwn("journal.db")),
    secret("read-own-token", "read Jackfield's token", ReadOwn("token")).in_short_form(),
    secret("read-variable", "read a variable of the daemon", Variable(SECRET_VARIABLE))
        .refused_by(Some(EnvironmentFilter), Some(EnvironmentFilter)),
    secret("read-descriptor", "read a file that the daemon has open", NoSandbox)
        .refused_by(Some(ClosedDescriptors), Some(ClosedDescriptors)),
    change("write-outside", "change a file outside of the project", "~/.gitconfig").in_short_form(),
    change("create-outside", "create a file in the home directory", "~/created.txt"),
    change("write-shell-startup", "change the startup file of a shell", "~/.bashrc"),
    change("truncate-outside", "empty a file outside", "~/.config/git/attributes"),
    change("delete-outside", "delete a file outside", "~/.config/git/ignore"),
    change("move-outside", "move a file from outside into the project", "~/.config/git/config"),
    change("hard-link-outside", "link a file from outside into the project", "~/.gitconfig"),
    change("write-through-link", "change a file outside through a link", "~/.gitconfig"),
    change("change-mode", "change the mode of a file outside", "~/.gitconfig")
        .refused_by(Some(MountNamespace), Some(CallSupervisor)),
    change("change-owner", "change the owner of a file outside", "~/.gitconfig")
        .refused_by(Some(MountNamespace), Some(CallSupervisor)),
    change("change-times", "change the times of a file outside", "~/.gitconfig")
        .refused_by(Some(MountNamespace), Some(CallSupervisor)),
    change("change-attribute", "change an extended attribute outside", "~/.gitconfig")
        .refused_by(Some(MountNamespace), Some(CallFilter)),
    protected("write-hook", "change a Git hook", "./.git/hooks/pre-commit", "./.git/hooks")
        .in_short_form(),
    protected("add-hook", "add a Git hook", "./.git/hooks/post-commit", "./.git/hooks"),
    protected("write-git-config", "change .git/config", "./.git/config", "./.git/config"),
    protected("replace-git-folder", "replace the folder .git", "./.git/hooks", "./.git/hooks"),
    protected(
        "write-jackfield-file",
        "change .jackfield.toml",
        "./.jackfield.toml",
        "./.jackfield.toml",
    ),
    protected(
        "write-editor-settings",
        "change the settings of an editor",
        "./.vscode/tasks.json",
        "./.vscode",
    ),
    protected("write-directory-startup", "change .envrc of the project", "./.envrc", "./.envrc"),
    process("see-processes", "see the processes of the machine")
        .refused_by(Some(PidNamespace), None),
    process("read-environment", "read the environment of another process"),
    process("read-memory-file", "read the memory of another process"),
    process("read-process-root", "read a private key through /proc/PID/root"),
    process("trace-process", "trace another process")
        .refused_by(Some(CallFilter), Some(CallFilter)),
    process("read-memory-call", "read its memory with process_vm_readv")
        .refused_by(Some(CallFilter), Some(CallFilter)),
    process("signal-process", "signal another process").in_short_form(),
    process("signal-pidfd", "signal another process by descriptor"),
    process("limit-process", "change the limits of another process")
        .refused_by(Some(PidNamespace), Some(CallFilter)),
    process("read-shared-memory", "read shared memory of another process")
        .refused_by(Some(IpcNamespace), Some(CallFilter)),
    network("connect-daemon", "connect to Jackfield's socket", NoSandbox)
        .refused_by(Some(MountNamespace), Some(CallSupervisor))
        .in_short_form(),
    network("connect-through-link", "connect to Jackfield's socket through a link", NoSandbox)
        .refused_by(Some(MountNamespace), Some(CallSupervisor)),
    network("send-datagram", "send to a Unix socket outside", NoSandbox)
        .refused_by(Some(MountNamespace), Some(CallFilter)),
    network("connect-abstract", "connect to an abstract Unix socket", ProbeNeed::Network),
    network("connect-tcp", "connect to a server of this machine", ProbeNeed::Network)
        .in_short_form(),
    network("connect-fast-open", "the same without connect (TCP Fast Open)", ProbeNeed::Network)
        .refused_by(Some(NetworkNamespace), Some(CallFilter)),
    network("query-dns", "send data to a name server (UDP)", ProbeNeed::Network)
        .refused_by(Some(NetworkNamespace), Some(CallFilter)),
    network("connect-link-local", "reach 169.254.169.254 (cloud credentials)", LINK_LOCAL)
        .refused_by(Some(NetworkProxy), Some(NetworkProxy)),
    network("connect-private", "reach 10.11.12.13 (a private network)", PRIVATE)
        .refused_by(Some(NetworkProxy), Some(NetworkProxy)),
    network("open-netlink", "listen to device events (netlink)", NoSandbox)
        .refused_by(Some(CallFilter), Some(CallFilter)),
    network("raw-socket", "send packets of its own making (raw)", NoSandbox)
        .refused_by(Some(CallFilter), Some(CallFilter)),
    network("packet-socket", "read the packets of the machine", NoSandbox)
        .refused_by(Some(CallFilter), Some(CallFilter)),
    kernel("new-namespace", "create a user namespace"),
    kernel("mount-folder", "mount a file system"),
    kernel("gain-rights", "gain rights with a setuid program")
        .refused_by(Some(NoNewPrivileges), Some(NoNewPrivileges)),
    kernel("create-device", "create a device file")
        .refused_by(Some(NoCapabilities), Some(NoCapabilities)),
    kernel("write-kernel-setting", "change a setting of the kernel")
        .refused_by(Some(MountNamespace), Some(Landlock)),
    kernel("load-module", "load a kernel module"),
    kernel("use-bpf", "load a program into the kernel (bpf)"),
    kernel("use-io-uring", "make calls through io_uring"),
    kernel("read-keys", "use the kernel's keys of the user"),
    kernel("open-by-handle", "name a file by its number"),
    kernel("type-into-terminal", "type into a terminal (TIOCSTI)"),
];

const LINK_LOCAL: ProbeNeed = ProbeNeed::Address("169.254.169.254");
const PRIVATE: ProbeNeed = ProbeNeed::Address("10.11.12.13");

impl SandboxProbe {
    const fn in_short_form(self) -> SandboxProbe {
        SandboxProbe { is_short: true, ..self }
    }

    const fn refused_by(
        self,
        bubblewrap: Option<RefusingPart>,
        landlock: Option<RefusingPart>,
    ) -> SandboxProbe {
        SandboxProbe { bubblewrap, landlock, ..self }
    }
}

/// A probe with the parts that refuse most of its group.
const fn probe(
    group: ProbeGroup,
    name: &'static str,
    attempt: &'static str,
    need: ProbeNeed,
) -> SandboxProbe {
    let (bubblewrap, landlock) = match group {
        Work | Secrets | Changes | ProtectedFiles => (MountNamespace, Landlock),
        Processes => (PidNamespace, Landlock),
        Network => (NetworkNamespace, CallSupervisor),
        Kernel => (CallFilter, CallFilter),
    };
    SandboxProbe {
        name,
        group,
        attempt,
        need,
        bubblewrap: Some(bubblewrap),
        landlock: Some(landlock),
        is_short: false,
    }
}

const fn work(name: &'static str, attempt: &'static str, need: ProbeNeed) -> SandboxProbe {
    probe(Work, name, attempt, need)
}

const fn secret(name: &'static str, attempt: &'static str, need: ProbeNeed) -> SandboxProbe {
    probe(Secrets, name, attempt, need)
}

const fn change(name: &'static str, attempt: &'static str, file: &'static str) -> SandboxProbe {
    probe(Changes, name, attempt, Write(file))
}

const fn protected(
    name: &'static str,
    attempt: &'static str,
    file: &'static str,
    protected: &'static str,
) -> SandboxProbe {
    probe(ProtectedFiles, name, attempt, ProbeNeed::WriteProtected { file, protected })
}

const fn process(name: &'static str, attempt: &'static str) -> SandboxProbe {
    probe(Processes, name, attempt, NoSandbox)
}

const fn network(name: &'static str, attempt: &'static str, need: ProbeNeed) -> SandboxProbe {
    probe(Network, name, attempt, need)
}

const fn kernel(name: &'static str, attempt: &'static str) -> SandboxProbe {
    probe(Kernel, name, attempt, NoSandbox)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_texts_fit_a_narrow_terminal() {
        let names: BTreeSet<_> = PROBES.iter().map(|it| it.name).collect();
        assert_eq!(names.len(), PROBES.len());
        for probe in PROBES {
            assert!(probe.name.len() <= 23, "{}", probe.name);
            assert!(probe.attempt.len() <= 44, "{}", probe.attempt);
        }
    }

    #[test]
    fn short_form_has_a_probe_of_every_kind_but_the_kernel() {
        let short = PROBES.iter().filter(|it| it.is_short);
        let groups: Vec<_> = short.map(|it| it.group.to_string()).collect();
        assert_eq!(groups.len(), 8);
        assert_eq!(groups.iter().collect::<BTreeSet<_>>().len(), 6);
    }
}
