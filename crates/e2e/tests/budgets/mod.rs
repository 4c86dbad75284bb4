//! Bounds in bytes: peers that send messages of megabytes and wait for nothing do not fill the memory of the daemon or
//! of the bus, and others are served meanwhile.

mod bus;
mod daemon;

use jackfield_e2e::procs;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What a process may take, whatever its peers send.
const RESIDENT_BYTES_MAX: u64 = 256 << 20;
/// What this test and each process that it starts may allocate at all: a test that fails leaves the machine alone.
const ADDRESS_SPACE_MAX: u64 = 3 << 30;

const MEGABYTES_8: usize = 8 << 20;

/// Each test has a process of its own, so that the limit holds for one test only.
fn limit_memory() {
    let limit = getrlimit(Resource::As);
    setrlimit(Resource::As, Rlimit { current: Some(ADDRESS_SPACE_MAX), ..limit }).unwrap();
}

fn assert_memory_is_bounded(pid: u32) {
    let peak = procs::resident_peak(pid);
    assert!(0 < peak, "process {pid} has ended");
    assert!(peak < RESIDENT_BYTES_MAX, "process {pid} took {} MiB", peak >> 20);
}
