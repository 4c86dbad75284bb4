//! The system calls that the supervisor performs instead of the sandboxed process, and those that are
//! refused because Landlock does not limit them.
//!
//! It is a filter of its own because `seccompiler` has no action for a supervisor. The calls that every
//! layer refuses are in [`seccomp`](super::super::seccomp).

use libc::c_long;
use seccompiler::{BpfProgram, sock_filter};

/// What the kernel does with a call.
#[derive(Clone, Copy)]
enum CallAction {
    Allow,
    /// The supervisor performs it.
    Supervise,
    Refuse(i32),
}

/// The decision for one call: the action of the first case whose tests all hold.
struct CallRule {
    number: c_long,
    cases: Vec<(Vec<ArgTest>, CallAction)>,
    otherwise: CallAction,
}

/// A test of 32 bits of an argument.
struct ArgTest {
    offset: u32,
    mask: u32,
    value: u32,
}

/// The filter of a process that has the network of the machine, or only supervised connections.
pub(super) fn build(has_network: bool) -> BpfProgram {
    let mut program = architecture_check();
    for rule in call_rules(has_network) {
        program.extend(rule.compile());
    }
    program.push(CallAction::Allow.compile());
    program
}

fn call_rules(has_network: bool) -> Vec<CallRule> {
    let mut rules = always(SUPERVISED, CallAction::Supervise);
    rules.extend(always(SHARED_MEMORY, CallAction::Refuse(libc::EACCES)));
    rules.extend(always(ATTRIBUTES, CallAction::Refuse(libc::EOPNOTSUPP)));
    rules.extend(always(OLD_FORMS, CallAction::Refuse(libc::ENOSYS)));
    rules.push(ioctl_rule());
    rules.push(limit_rule());
    rules.push(dumpable_rule());
    rules.push(unix_rule(libc::SYS_socketpair, CallAction::Allow));
    if has_network {
        rules.push(unix_rule(libc::SYS_socket, CallAction::Allow));
    } else {
        rules.push(socket_rule());
        rules.extend(always(&[libc::SYS_bind, libc::SYS_listen], CallAction::Supervise));
        rules.extend([(libc::SYS_sendto, 3), (libc::SYS_sendmsg, 2), (libc::SYS_sendmmsg, 3)].map(
            |(number, flags)| {
                let fast_open = has_bits(flags, libc::MSG_FASTOPEN.cast_unsigned());
                CallRule {
                    number,
                    cases: vec![(vec![fast_open], CallAction::Refuse(libc::EOPNOTSUPP))],
                    otherwise: CallAction::Allow,
                }
            },
        ));
        rules.push(option_rule());
    }
    rules
}

/// Their arguments are in memory, or Landlock does not limit them.
const SUPERVISED: &[c_long] = &[
    libc::SYS_connect,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchmodat2,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
];

/// Memory, semaphores and queues of System V and POSIX, which all processes of a user share.
const SHARED_MEMORY: &[c_long] = &[
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

/// Changes of extended attributes, which Landlock does not limit. Programs continue without them.
const ATTRIBUTES: &[c_long] = &[
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    SYS_SETXATTRAT,
    SYS_REMOVEXATTRAT,
    SYS_FILE_SETATTR,
];
const SYS_SETXATTRAT: c_long = 463;
const SYS_REMOVEXATTRAT: c_long = 466;
const SYS_FILE_SETATTR: c_long = 469;

/// Older forms of `utimensat`, which C libraries do not use any more.
const OLD_FORMS: &[c_long] = &[
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utime,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utimes,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_futimesat,
];

/// The terminal of a pseudo-terminal pair, and the flags and attributes of a file.
fn ioctl_rule() -> CallRule {
    let is_command = |value: u32| vec![is_equal(1, value)];
    CallRule {
        number: libc::SYS_ioctl,
        cases: vec![
            (is_command(TIOCGPTPEER), CallAction::Supervise),
            (is_command(FS_IOC_SETFLAGS), CallAction::Refuse(libc::EOPNOTSUPP)),
            (is_command(FS_IOC_FSSETXATTR), CallAction::Refuse(libc::EOPNOTSUPP)),
        ],
        otherwise: CallAction::Allow,
    }
}
const TIOCGPTPEER: u32 = 0x5441;
const FS_IOC_SETFLAGS: u32 = 0x4008_6602;
const FS_IOC_FSSETXATTR: u32 = 0x401c_5820;

/// A process changes its own limits only: those of another process of the user can end it.
fn limit_rule() -> CallRule {
    let is_own = vec![is_equal(0, 0)];
    let is_query = vec![is_equal(2, 0), ArgTest { offset: argument(2) + 4, mask: !0, value: 0 }];
    CallRule {
        number: libc::SYS_prlimit64,
        cases: vec![(is_own, CallAction::Allow), (is_query, CallAction::Allow)],
        otherwise: CallAction::Refuse(libc::EPERM),
    }
}

/// A process that protects its memory could not be supervised. It gets the result 0 without an effect: programs
/// with this protection, such as Codex, end if it fails.
fn dumpable_rule() -> CallRule {
    let is_protection = vec![is_equal(0, libc::PR_SET_DUMPABLE.cast_unsigned()), is_equal(1, 0)];
    CallRule {
        number: libc::SYS_prctl,
        cases: vec![(is_protection, CallAction::Refuse(0))],
        otherwise: CallAction::Allow,
    }
}

/// A Unix socket has to be connected before it sends: a datagram names its receiver in memory.
fn unix_rule(number: c_long, others: CallAction) -> CallRule {
    let mut cases = unix_cases();
    cases.push((vec![family(libc::AF_UNIX)], CallAction::Refuse(libc::EACCES)));
    CallRule { number, cases, otherwise: others }
}

fn unix_cases() -> Vec<(Vec<ArgTest>, CallAction)> {
    let types = [libc::SOCK_STREAM, libc::SOCK_SEQPACKET];
    types.map(|it| (vec![family(libc::AF_UNIX), socket_type(it)], CallAction::Allow)).into()
}

/// Connected Unix sockets, TCP, and reading of routes and interfaces.
fn socket_rule() -> CallRule {
    let mut cases = unix_cases();
    let routes = is_equal(2, libc::NETLINK_ROUTE.cast_unsigned());
    cases.push((vec![family(libc::AF_NETLINK), routes], CallAction::Allow));
    for it in [libc::AF_INET, libc::AF_INET6] {
        for protocol in [0, libc::IPPROTO_TCP] {
            let protocol = is_equal(2, protocol.cast_unsigned());
            let tests = vec![family(it), socket_type(libc::SOCK_STREAM), protocol];
            cases.push((tests, CallAction::Allow));
        }
        cases.push((vec![family(it)], CallAction::Refuse(libc::EACCES)));
    }
    cases.push((vec![family(libc::AF_UNIX)], CallAction::Refuse(libc::EACCES)));
    CallRule { number: libc::SYS_socket, cases, otherwise: CallAction::Refuse(libc::EAFNOSUPPORT) }
}

/// Options that send a packet elsewhere than to the address of the connection, or later than it.
fn option_rule() -> CallRule {
    let options = [
        (libc::SOL_SOCKET, libc::SO_BINDTODEVICE),
        (libc::SOL_SOCKET, SO_BINDTOIFINDEX),
        (libc::IPPROTO_IP, libc::IP_OPTIONS),
        (libc::IPPROTO_IPV6, libc::IPV6_RTHDR),
        (libc::IPPROTO_IPV6, IPV6_2292RTHDR),
        (libc::IPPROTO_IPV6, IPV6_2292PKTOPTIONS),
        (libc::IPPROTO_TCP, libc::TCP_FASTOPEN_CONNECT),
        (libc::IPPROTO_TCP, libc::TCP_ULP),
    ];
    let cases = options.map(|(level, option)| {
        let tests = vec![is_equal(1, level.cast_unsigned()), is_equal(2, option.cast_unsigned())];
        (tests, CallAction::Refuse(libc::EACCES))
    });
    CallRule { number: libc::SYS_setsockopt, cases: cases.into(), otherwise: CallAction::Allow }
}
const SO_BINDTOIFINDEX: i32 = 62;
const IPV6_2292RTHDR: i32 = 5;
const IPV6_2292PKTOPTIONS: i32 = 6;

fn always(numbers: &[c_long], action: CallAction) -> Vec<CallRule> {
    numbers.iter().map(|it| CallRule::always(*it, action)).collect()
}

fn family(value: i32) -> ArgTest {
    is_equal(0, value.cast_unsigned())
}

fn socket_type(value: i32) -> ArgTest {
    ArgTest { offset: argument(1), mask: 0xf, value: value.cast_unsigned() }
}

/// The kernel ignores the upper half of these arguments.
fn is_equal(index: u32, value: u32) -> ArgTest {
    ArgTest { offset: argument(index), mask: !0, value }
}

fn has_bits(index: u32, bits: u32) -> ArgTest {
    ArgTest { offset: argument(index), mask: bits, value: bits }
}

/// The position of the lower half of an argument in `struct seccomp_data`.
fn argument(index: u32) -> u32 {
    16 + 8 * index
}

const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
const MASK: u32 = libc::BPF_ALU | libc::BPF_AND | libc::BPF_K;
const JUMP_IF_EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
const JUMP_IF_GREATER_OR_EQUAL: u32 = libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K;
const RETURN: u32 = libc::BPF_RET | libc::BPF_K;

/// `jump_if_false` is the number of instructions that a jump skips if its test fails.
fn instruction(code: u32, jump_if_false: usize, k: u32) -> sock_filter {
    let code = u16::try_from(code).expect("codes of instructions have 16 bits");
    let jf = u8::try_from(jump_if_false).expect("a rule has fewer than 256 instructions");
    sock_filter { code, jt: 0, jf, k }
}

impl CallRule {
    fn always(number: c_long, action: CallAction) -> CallRule {
        CallRule { number, cases: Vec::new(), otherwise: action }
    }

    /// Instructions that expect the number of the call to be loaded, and keep it if it is another one.
    fn compile(&self) -> BpfProgram {
        let mut block = BpfProgram::new();
        for (tests, action) in &self.cases {
            let mut remaining = tests.len() * 3 + 1;
            for test in tests {
                remaining -= 3;
                block.push(instruction(LOAD, 0, test.offset));
                block.push(instruction(MASK, 0, test.mask));
                block.push(instruction(JUMP_IF_EQUAL, remaining, test.value));
            }
            block.push(action.compile());
        }
        block.push(self.otherwise.compile());
        let number = u32::try_from(self.number).expect("numbers of calls are positive");
        block.insert(0, instruction(JUMP_IF_EQUAL, block.len(), number));
        block
    }
}

impl CallAction {
    fn compile(self) -> sock_filter {
        let value = match self {
            CallAction::Allow => libc::SECCOMP_RET_ALLOW,
            CallAction::Supervise => libc::SECCOMP_RET_USER_NOTIF,
            CallAction::Refuse(errno) => libc::SECCOMP_RET_ERRNO | errno.unsigned_abs(),
        };
        instruction(RETURN, 0, value)
    }
}

/// The numbers of calls have a meaning for one architecture only. Loads the number at the end.
fn architecture_check() -> BpfProgram {
    const ARCHITECTURE_OFFSET: u32 = 4;
    const X32_BIT: u32 = 0x4000_0000;
    #[cfg(target_arch = "x86_64")]
    const ARCHITECTURE: u32 = 0xc000_003e;
    #[cfg(target_arch = "aarch64")]
    const ARCHITECTURE: u32 = 0xc000_00b7;
    vec![
        instruction(LOAD, 0, ARCHITECTURE_OFFSET),
        // Skips the next instruction if the architecture is this one.
        sock_filter { jt: 1, ..instruction(JUMP_IF_EQUAL, 0, ARCHITECTURE) },
        instruction(RETURN, 0, libc::SECCOMP_RET_KILL_PROCESS),
        instruction(LOAD, 0, 0),
        instruction(JUMP_IF_GREATER_OR_EQUAL, 1, X32_BIT),
        CallAction::Refuse(libc::ENOSYS).compile(),
    ]
}
