//! The system calls that a sandboxed process cannot make, whatever the layer, and why.
//!
//! It is a list of refused calls: an agent runs compilers, browsers and test suites, and a list of
//! permitted ones would break with every new version of them. What the list does not contain is limited
//! by namespaces or Landlock.

use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};
use std::collections::BTreeMap;

/// Which sockets a process may create.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SocketScope {
    /// The process has a network namespace of its own, or the whole network: Unix, IPv4 and IPv6 sockets,
    /// and reading of routes and interfaces.
    Namespace,
    /// The process shares the network of the machine, and a supervisor makes its connections: Unix sockets, TCP, and
    /// reading of routes and interfaces.
    Supervised,
}

/// A filter could not be built.
#[derive(Debug, thiserror::Error)]
pub enum FilterError {
    #[error("system calls cannot be filtered on the architecture `{}`", std::env::consts::ARCH)]
    Architecture,
    #[error("failed to compile the system call filter")]
    Compile(#[source] seccompiler::BackendError),
}

/// A refused call.
struct RefusedCall {
    number: c_long,
    /// Alternatives; each is a list of conditions that hold together. No alternative: always refused.
    cases: Vec<Vec<ArgCheck>>,
    errno: i32,
}

/// A condition for an argument.
struct ArgCheck {
    index: u8,
    operator: SeccompCmpOp,
    value: u64,
}

/// Programs that are installed together; the kernel applies the strictest answer. There is one for each
/// error number.
pub fn build_filters(sockets: SocketScope) -> Result<Vec<BpfProgram>, FilterError> {
    let mut by_errno: BTreeMap<i32, BTreeMap<c_long, Vec<SeccompRule>>> = BTreeMap::new();
    for call in refused_calls(sockets) {
        let rules = call.cases.into_iter().map(build_rule).collect::<Result<Vec<_>, _>>();
        let of_errno = by_errno.entry(call.errno).or_default();
        of_errno.entry(call.number).or_default().extend(rules.map_err(FilterError::Compile)?);
    }
    by_errno.into_iter().map(|(errno, rules)| compile(errno, rules)).collect()
}

/// The bytes that `bwrap` reads from a file descriptor.
pub fn to_bytes(program: &[sock_filter]) -> Vec<u8> {
    let instructions = program.iter().flat_map(|it| {
        let [code_0, code_1] = it.code.to_ne_bytes();
        let [k_0, k_1, k_2, k_3] = it.k.to_ne_bytes();
        [code_0, code_1, it.jt, it.jf, k_0, k_1, k_2, k_3]
    });
    instructions.collect()
}

fn build_rule(checks: Vec<ArgCheck>) -> Result<SeccompRule, seccompiler::BackendError> {
    // The kernel reads these arguments as 32-bit numbers and ignores the upper half.
    let conditions = checks
        .into_iter()
        .map(|it| SeccompCondition::new(it.index, SeccompCmpArgLen::Dword, it.operator, it.value));
    SeccompRule::new(conditions.collect::<Result<_, _>>()?)
}

fn compile(
    errno: i32,
    rules: BTreeMap<c_long, Vec<SeccompRule>>,
) -> Result<BpfProgram, FilterError> {
    let architecture = TargetArch::try_from(std::env::consts::ARCH);
    let refuse = SeccompAction::Errno(errno.unsigned_abs());
    let architecture = architecture.map_err(|_| FilterError::Architecture)?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, architecture);
    let program = filter.and_then(BpfProgram::try_from).map_err(FilterError::Compile)?;
    Ok(refuse_other_numbering(program))
}

/// The instructions at the start of a program that check the architecture.
const ARCHITECTURE_CHECK: usize = 3;
/// The bit that marks calls of the x32 interface, which have the architecture of `x86_64` but other numbers.
const X32_BIT: u32 = 0x4000_0000;

/// Refuses calls whose numbers have another meaning, so that no refused call has a second number.
fn refuse_other_numbering(mut program: BpfProgram) -> BpfProgram {
    if cfg!(target_arch = "x86_64") {
        let load_number = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
        let jump_if_at_least = libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K;
        let instruction = |code: u32, jt, jf, k| {
            let code = u16::try_from(code).expect("codes of instructions have 16 bits");
            sock_filter { code, jt, jf, k }
        };
        let refuse = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs();
        let checks = [
            instruction(load_number, 0, 0, 0),
            instruction(jump_if_at_least, 0, 1, X32_BIT),
            instruction(libc::BPF_RET | libc::BPF_K, 0, 0, refuse),
        ];
        program.splice(ARCHITECTURE_CHECK..ARCHITECTURE_CHECK, checks);
    }
    program
}

/// Calls without any use for an agent, which give access to other processes or to the kernel.
const ALWAYS_REFUSED: &[c_long] = &[
    // Read and control other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    // Change what is mounted, and so what is hidden or read-only.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_mount_setattr,
    // Enter a namespace.
    libc::SYS_setns,
    // Open files by number instead of by path.
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    // The keys of the user's login session.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // Parts of the kernel with many vulnerabilities and no use for an agent.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    // The machine as a whole.
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
];

/// Calls that programs do without if the kernel does not have them.
const MISSING: &[c_long] = &[
    // Its flags are in memory, where a filter cannot read them. Programs use `clone` instead.
    libc::SYS_clone3,
    // It performs other calls, such as `connect`, that the filter then does not see.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];

/// Flags of `clone` and `unshare` that create a namespace. Inside a user namespace of its own a process has
/// all capabilities, and reaches much more of the kernel.
const NAMESPACE_FLAGS: &[i32] = &[
    libc::CLONE_NEWNS,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWCGROUP,
    CLONE_NEWTIME,
];
const CLONE_NEWTIME: i32 = 0x80;

/// Insert characters into the input of a terminal, which its shell executes after the sandbox has ended.
const TERMINAL_INPUT: &[u32] = &[TIOCSTI, TIOCLINUX];
// In `libc` their types differ between C libraries.
const TIOCSTI: u32 = 0x5412;
const TIOCLINUX: u32 = 0x541c;

/// The argument of `personality` that changes nothing.
const PERSONALITY_QUERY: u64 = 0xffff_ffff;
/// The part of the second argument of `socket` that is the type.
const SOCKET_TYPE_MASK: u64 = 0xf;
/// An obsolete type, which the kernel still turns into a socket for raw packets.
const SOCK_PACKET: i32 = 10;

fn refused_calls(sockets: SocketScope) -> Vec<RefusedCall> {
    let always = ALWAYS_REFUSED.iter().map(|it| (*it, libc::EPERM));
    let missing = MISSING.iter().map(|it| (*it, libc::ENOSYS));
    let mut calls: Vec<RefusedCall> = always
        .chain(missing)
        .map(|(number, errno)| RefusedCall { number, cases: Vec::new(), errno })
        .collect();
    let namespaces = || NAMESPACE_FLAGS.iter().map(|flag| vec![has_bits(0, to_value(*flag))]);
    for number in [libc::SYS_clone, libc::SYS_unshare] {
        let cases = namespaces().collect();
        calls.push(RefusedCall { number, cases, errno: libc::EPERM });
    }
    calls.push(RefusedCall {
        number: libc::SYS_ioctl,
        cases: TERMINAL_INPUT.iter().map(|it| vec![is_equal(1, u64::from(*it))]).collect(),
        errno: libc::EPERM,
    });
    // Among others, it makes every mapping executable and turns off the randomization of addresses.
    let permitted = [0, PERSONALITY_QUERY];
    calls.push(RefusedCall {
        number: libc::SYS_personality,
        cases: vec![permitted.map(|it| differs(0, it)).into()],
        errno: libc::EPERM,
    });
    calls.extend(refused_sockets(sockets));
    calls
}

fn refused_sockets(sockets: SocketScope) -> Vec<RefusedCall> {
    let internet = [libc::AF_INET, libc::AF_INET6].map(to_value);
    // Programs list interfaces with netlink, some of them at every start; changes need a capability.
    let netlink_family = to_value(libc::AF_NETLINK);
    let families = [to_value(libc::AF_UNIX), internet[0], internet[1], netlink_family];
    let mut refused_types = vec![libc::SOCK_RAW, SOCK_PACKET];
    if sockets == SocketScope::Supervised {
        // A datagram can be sent without a connection.
        refused_types.push(libc::SOCK_DGRAM);
    }
    let other_families = families.iter().map(|it| differs(0, *it)).collect();
    let netlink = vec![is_equal(0, netlink_family), differs(2, to_value(libc::NETLINK_ROUTE))];
    let types = internet.iter().flat_map(|family| {
        let case = |it: &i32| vec![is_equal(0, *family), has_type(1, to_value(*it))];
        refused_types.iter().map(case).collect::<Vec<_>>()
    });
    let packets =
        RefusedCall { number: libc::SYS_socket, cases: types.collect(), errno: libc::EACCES };
    let families = RefusedCall {
        number: libc::SYS_socket,
        cases: vec![other_families, netlink],
        errno: libc::EAFNOSUPPORT,
    };
    vec![packets, families]
}

/// A bit pattern as the kernel compares it.
fn to_value(flag: i32) -> u64 {
    u64::from(flag.cast_unsigned())
}

fn is_equal(index: u8, value: u64) -> ArgCheck {
    ArgCheck { index, operator: SeccompCmpOp::Eq, value }
}

fn differs(index: u8, value: u64) -> ArgCheck {
    ArgCheck { index, operator: SeccompCmpOp::Ne, value }
}

fn has_bits(index: u8, bits: u64) -> ArgCheck {
    ArgCheck { index, operator: SeccompCmpOp::MaskedEq(bits), value: bits }
}

fn has_type(index: u8, value: u64) -> ArgCheck {
    ArgCheck { index, operator: SeccompCmpOp::MaskedEq(SOCKET_TYPE_MASK), value }
}

#[cfg(test)]
#[expect(unsafe_code, reason = "the refused calls have no safe interface")]
mod tests {
    use super::*;

    type CallArgs = (c_long, [i64; 3]);

    /// The error numbers of calls in a thread with the filters; 0 if a call succeeds.
    fn call_filtered(sockets: SocketScope, calls: &[CallArgs]) -> Vec<i32> {
        let call = |&(number, [first, second, third]): &CallArgs| {
            // SAFETY: no argument is a valid address, so the kernel changes no memory.
            let result = unsafe { libc::syscall(number, first, second, third, 0, 0, 0) };
            if 0 <= result { 0 } else { std::io::Error::last_os_error().raw_os_error().unwrap() }
        };
        std::thread::scope(|scope| {
            let filtered = scope.spawn(|| {
                for program in build_filters(sockets).unwrap() {
                    seccompiler::apply_filter(&program).unwrap();
                }
                calls.iter().map(call).collect()
            });
            filtered.join().unwrap()
        })
    }

    fn socket(family: i32, kind: i32, protocol: i32) -> CallArgs {
        (libc::SYS_socket, [family.into(), kind.into(), protocol.into()])
    }

    #[test]
    fn refused_calls_fail_with_their_errors() {
        let calls = &[
            (libc::SYS_ptrace, [i64::from(libc::PTRACE_TRACEME), 0, 0]),
            (libc::SYS_mount, [0, 0, 0]),
            (libc::SYS_unshare, [i64::from(libc::CLONE_NEWUSER), 0, 0]),
            (libc::SYS_unshare, [i64::from(libc::CLONE_NEWNS) | i64::from(libc::CLONE_FS), 0, 0]),
            (libc::SYS_clone, [i64::from(libc::CLONE_NEWPID), 0, 0]),
            (libc::SYS_clone3, [0, 0, 0]),
            (libc::SYS_io_uring_setup, [1, 0, 0]),
            (libc::SYS_ioctl, [0, i64::from(TIOCSTI), 0]),
            (libc::SYS_ioctl, [0, i64::from(TIOCSTI) | 1 << 32, 0]),
            (libc::SYS_personality, [0x40_0000, 0, 0]),
            (libc::SYS_keyctl, [0, 0, 0]),
        ];
        let refused = libc::EPERM;
        let missing = libc::ENOSYS;
        let expected = [
            refused, refused, refused, refused, refused, missing, missing, refused, refused,
            refused, refused,
        ];
        assert_eq!(call_filtered(SocketScope::Namespace, calls), expected);
    }

    #[test]
    fn ordinary_calls_are_permitted() {
        let calls = &[
            (libc::SYS_getpid, [0, 0, 0]),
            (libc::SYS_personality, [0xffff_ffff, 0, 0]),
            (libc::SYS_unshare, [i64::from(libc::CLONE_FS), 0, 0]),
            socket(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0),
            socket(libc::AF_INET, libc::SOCK_STREAM, 0),
            socket(libc::AF_INET6, libc::SOCK_STREAM, 0),
        ];
        assert_eq!(call_filtered(SocketScope::Namespace, calls), [0; 6]);
        assert_eq!(call_filtered(SocketScope::Supervised, calls), [0; 6]);
    }

    #[test]
    fn sockets_beyond_the_scope_are_refused() {
        let calls = &[
            socket(libc::AF_INET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::IPPROTO_ICMP),
            socket(libc::AF_INET, SOCK_PACKET, 0),
            socket(libc::AF_PACKET, libc::SOCK_DGRAM, 0),
            socket(libc::AF_VSOCK, libc::SOCK_STREAM, 0),
            socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_KOBJECT_UEVENT),
            socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE),
            socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_NONBLOCK, 0),
        ];
        let (types, family) = (libc::EACCES, libc::EAFNOSUPPORT);
        let expected = [types, types, family, family, family, 0, 0];
        assert_eq!(call_filtered(SocketScope::Namespace, calls), expected);
        let expected = [types, types, family, family, family, 0, types];
        assert_eq!(call_filtered(SocketScope::Supervised, calls), expected);
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn x32_numbers_of_calls_are_refused() {
        let calls = &[(i64::from(X32_BIT) | libc::SYS_getpid, [0, 0, 0])];
        assert_eq!(call_filtered(SocketScope::Namespace, calls), [libc::ENOSYS]);
    }

    #[test]
    fn program_has_eight_bytes_per_instruction() {
        for program in build_filters(SocketScope::Namespace).unwrap() {
            assert_eq!(to_bytes(&program).len(), 8 * program.len());
        }
    }
}
