//! What the program costs whoever has no fleet, beside the program as it was before there were fleets.

use super::FleetOptions;
use crate::{
    figures::{memory_mb, middle, ms, percentile, resident_mb},
    way::Bench,
};
use anyhow::{Context as _, Result, ensure};
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

const STARTS: usize = 20;

/// One of the two programs, and what was seen of it.
struct Program {
    name: &'static str,
    path: PathBuf,
    version: Vec<Duration>,
    answer: Vec<Duration>,
    resident: Vec<f64>,
    own: Vec<f64>,
    sockets: usize,
}

impl Program {
    fn new(name: &'static str, path: &Path) -> Program {
        let (version, answer, resident, own) = Default::default();
        Program { name, path: path.to_owned(), version, answer, resident, own, sockets: 0 }
    }

    /// Starts it twice: for its version, and for its first answer.
    fn start(&mut self, options: &FleetOptions) -> Result<()> {
        let mut daemon = Bench::new(self.path.clone(), options.agent.clone())?;
        let begin = Instant::now();
        let said = daemon.command().arg("--version").output()?;
        self.version.push(begin.elapsed());
        ensure!(said.status.success(), "{} does not know its version", self.path.display());
        let begin = Instant::now();
        daemon.serve(&[])?;
        daemon.hub_only()?.initialize()?;
        self.answer.push(begin.elapsed());
        let pid = daemon.daemon_pid();
        self.resident.push(resident_mb(pid)?);
        self.own.push(memory_mb(pid, "RssAnon:")?);
        self.sockets = self.sockets.max(network_sockets(pid)?);
        Ok(())
    }

    fn print(&mut self, dir: &Path) -> Result<()> {
        let [whole, bare] = [fs::metadata(&self.path)?.len(), stripped(&self.path, dir)?];
        let [version, answer] =
            [&mut self.version, &mut self.answer].map(|it| ms(percentile(it, 50)));
        println!(
            "{:<10} {whole:>12} {bare:>12} {version:>10.2} {answer:>10.2} {:>12.1} {:>8.2} {:>8}",
            self.name,
            middle(&mut self.resident),
            middle(&mut self.own),
            self.sockets
        );
        Ok(())
    }
}

pub(crate) fn run(options: &FleetOptions) -> Result<()> {
    let mut programs = vec![Program::new("now", &options.jackfield)];
    if let Some(before) = &options.before {
        programs.insert(0, Program::new("before", before));
    }
    for _ in 0..STARTS {
        for program in &mut programs {
            program.start(options)?;
        }
    }
    println!("NO FLEET: {STARTS} starts each, in turn");
    println!(
        "{:<10} {:>12} {:>12} {:>10} {:>10} {:>12} {:>8} {:>8}",
        "", "BYTES", "STRIPPED", "VERSION ms", "ANSWER ms", "RESIDENT MB", "OWN MB", "SOCKETS"
    );
    let dir = tempfile::tempdir()?;
    for program in &mut programs {
        program.print(dir.path())?;
    }
    println!(
        "(sockets: TCP and UDP of a daemon without --fleet and --listen; there must be none)\n"
    );
    Ok(())
}

/// How long the program is without what only a debugger reads.
fn stripped(path: &Path, dir: &Path) -> Result<u64> {
    let copy = dir.join("stripped");
    let status = Command::new("strip").arg("-o").arg(&copy).arg(path).status()?;
    ensure!(status.success(), "`strip` failed: {status}");
    Ok(fs::metadata(copy)?.len())
}

/// How many sockets of the internet protocols a process has open.
fn network_sockets(pid: u32) -> Result<usize> {
    let proc = Path::new("/proc").join(pid.to_string());
    let mut theirs = BTreeSet::new();
    for file in fs::read_dir(proc.join("fd"))? {
        let link = fs::read_link(file?.path())?;
        let link = link.to_string_lossy();
        let inode = link.strip_prefix("socket:[").and_then(|it| it.strip_suffix(']'));
        theirs.extend(inode.map(str::to_owned));
    }
    let mut count = 0;
    for kind in ["tcp", "tcp6", "udp", "udp6"] {
        let table =
            fs::read_to_string(proc.join("net").join(kind)).context("a table of sockets")?;
        let inodes = table.lines().skip(1).filter_map(|it| it.split_whitespace().nth(9));
        count += inodes.filter(|it| theirs.contains(*it)).count();
    }
    Ok(count)
}
