//! Records as the kernel of macOS writes them, laid out by hand from `sys/proc_info.h`.

use super::*;
use crate::os::process_search::mark_in;

/// A record of this length with numbers at these offsets.
fn record(length: usize, fields: &[(usize, &[u8])]) -> Vec<u8> {
    let mut record = vec![0; length];
    for (offset, bytes) in fields {
        record[*offset..offset + bytes.len()].copy_from_slice(bytes);
    }
    record
}

fn bsd_info(status: u32) -> Vec<u8> {
    record(
        BSD_INFO_BYTES,
        &[
            (0, &0x4004_u32.to_ne_bytes()),
            (4, &status.to_ne_bytes()),
            (12, &4321_u32.to_ne_bytes()),
            (16, &4300_u32.to_ne_bytes()),
            (20, &501_u32.to_ne_bytes()),
            (48, b"node\0"),
            (64, b"node\0"),
            (96, &31_u32.to_ne_bytes()),
            (100, &4299_u32.to_ne_bytes()),
            (120, &1_760_000_000_u64.to_ne_bytes()),
            (128, &123_456_u64.to_ne_bytes()),
        ],
    )
}

#[test]
fn process_record_has_pid_parent_group_and_start_in_microseconds() {
    let process = ProcessIdentity { pid: 4321, start: 1_760_000_000_123_456 };
    let running = ProcessRow { process, parent: 4300, group: 4299, zombie: false };
    assert_eq!(parse_bsd_info(&bsd_info(2)), Some(running));
    assert_eq!(parse_bsd_info(&bsd_info(5)), Some(ProcessRow { zombie: true, ..running }));
    assert_eq!(parse_bsd_info(&bsd_info(2)[..BSD_INFO_BYTES - 1]), None, "cut off");
    assert_eq!(parse_bsd_info(&[]), None);
}

#[test]
fn process_of_another_user_has_no_start_time() {
    let fields: [(usize, &[u8]); 5] = [
        (0, &1_u32.to_ne_bytes()),
        (4, &0_u32.to_ne_bytes()),
        (8, &1_u32.to_ne_bytes()),
        (12, &2_u32.to_ne_bytes()),
        (16, b"launchd\0"),
    ];
    let record = record(SHORT_BSD_INFO_BYTES, &fields);
    let process = ProcessIdentity { pid: 1, start: 0 };
    let row = ProcessRow { process, parent: 0, group: 1, zombie: false };
    assert_eq!(parse_short_bsd_info(&record), Some(row));
    assert_eq!(parse_short_bsd_info(&record[..60]), None);
}

#[test]
fn resident_memory_is_the_second_number_of_a_task_record() {
    let fields: [(usize, &[u8]); 2] =
        [(0, &(400_u64 << 30).to_ne_bytes()), (8, &(70_u64 << 20).to_ne_bytes())];
    let task = record(TASK_INFO_BYTES, &fields);
    assert_eq!(parse_resident_bytes(&task), Some(70 << 20));
    assert_eq!(parse_resident_bytes(&task[..8]), None);
}

#[test]
fn list_of_pids_may_have_unused_places_and_a_partial_number() {
    let list: Vec<u8> = [501_i32, 0, -1, 99_998].iter().flat_map(|it| it.to_ne_bytes()).collect();
    assert_eq!(parse_pids(&list), [501, 99_998]);
    assert_eq!(parse_pids(&list[..5]), [501]);
    assert!(parse_pids(&[]).is_empty());
}

#[test]
fn only_descriptors_of_files_are_listed() {
    let pairs = [(0_i32, 1_u32), (3, 2), (4, 1), (5, 5)];
    let list: Vec<u8> =
        pairs.iter().flat_map(|it| [it.0.to_ne_bytes(), it.1.to_ne_bytes()].concat()).collect();
    assert_eq!(parse_file_descriptors(&list), [0, 4]);
    let fields: [(usize, &[u8]); 3] = [
        (24, &0x0100_0004_u32.to_ne_bytes()),
        (28, &0o100_600_u16.to_ne_bytes()),
        (32, &77_u64.to_ne_bytes()),
    ];
    let file = record(VNODE_FD_INFO_BYTES, &fields);
    assert_eq!(parse_file_identity(&file), Some((0x0100_0004, 77)));
    assert_eq!(parse_file_identity(&file[..100]), None);
}

fn environment(buffer: &[u8]) -> Option<&[u8]> {
    find_environment(buffer).map(|range| &buffer[range])
}

/// A buffer of `KERN_PROCARGS2`.
fn arguments(count: i32, text: &[u8]) -> Vec<u8> {
    [&count.to_ne_bytes()[..], text].concat()
}

#[test]
fn environment_follows_the_arguments_and_ends_with_an_empty_string() {
    let buffer = arguments(
        3,
        b"/opt/homebrew/bin/node\0\0\0\0\0\0node\0\0--acp\0HOME=/Users/a\0\
          JACKFIELD_AGENT_MARK=m-1\0\0executable_path=/opt/homebrew/bin/node\0\0",
    );
    let variables = environment(&buffer).unwrap();
    assert_eq!(variables, b"HOME=/Users/a\0JACKFIELD_AGENT_MARK=m-1\0");
    assert_eq!(mark_in(variables), Some("m-1"));
}

#[test]
fn variable_in_an_argument_is_not_in_the_environment() {
    let buffer = arguments(2, b"/usr/local/bin/x\0\0x\0JACKFIELD_AGENT_MARK=m-1\0TERM=dumb\0\0");
    assert_eq!(mark_in(environment(&buffer).unwrap()), None);
}

#[test]
fn protected_program_has_no_environment() {
    let buffer = arguments(2, b"/bin/sleep\0\0\0\0\0\0sleep\x0060\0");
    assert_eq!(environment(&buffer), Some(&b""[..]));
    assert_eq!(environment(&arguments(2, b"/bin/sleep\0\0sleep\0")), None, "cut off");
    assert_eq!(environment(&arguments(-1, b"x\0")), None);
    assert_eq!(environment(&[1, 0]), None);
    assert_eq!(environment(&[]), None);
}

#[test]
fn last_variable_may_be_cut_off() {
    let buffer = arguments(1, b"/x\0x\0A=1\0JACKFIELD_AGENT_MARK=m-");
    assert_eq!(environment(&buffer), Some(&b"A=1\0JACKFIELD_AGENT_MARK=m-"[..]));
}
