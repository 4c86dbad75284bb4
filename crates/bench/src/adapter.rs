//! What an adapter costs: its memory, and its time for each line of the program it adapts.

use super::{
    figures::{cpu_us, percentile, resident_mb, us},
    way::Bench,
};
use anyhow::{Context as _, Result, bail};
use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

const TURNS: usize = 300;
const PIECES: u32 = 50_000;

pub(crate) fn run(bench: &Bench) -> Result<()> {
    let ours = std::env::current_exe()?;
    let program = ours.to_str().context("a path in UTF-8")?;
    let agents = bench.dir.path().join("config/agents");
    fs::create_dir_all(&agents)?;
    let spec = "id = \"foreign\"\nname = \"Foreign\"\nbins = [\"foreign\"]\n\
                [[launch]]\ndialect = \"claude\"\nargs = [\"foreign\"]\n";
    fs::write(agents.join("foreign.toml"), spec)?;

    let mut direct =
        Command::new(&ours).arg("foreign").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut say = direct.stdin.take().context("piped")?;
    let mut hear = BufReader::new(direct.stdout.take().context("piped")?);
    let mut turn = |pieces: u32| -> Result<Duration> {
        let begin = Instant::now();
        writeln!(say, r#"{{"type":"user","message":{{"content":"{pieces}"}}}}"#)?;
        let mut line = String::new();
        while !line.starts_with(r#"{"type":"result""#) {
            line.clear();
            if hear.read_line(&mut line)? == 0 {
                bail!("the program ended");
            }
        }
        Ok(begin.elapsed())
    };
    turn(1)?;
    let mut plain = (0..TURNS).map(|_| turn(1)).collect::<Result<Vec<_>>>()?;
    let plain_burst = turn(PIECES)?;
    drop((say, hear));
    direct.wait()?;

    let arguments = ["adapt", "foreign", "--program", program];
    let mut line = Bench::child(bench.command().args(arguments))?;
    line.talk.initialize()?;
    let pid = line.pid().context("it has a process")?;
    let idle = resident_mb(pid)?;
    let session = line.talk.open(&bench.dir.path().to_string_lossy())?;
    line.talk.prompt(&session, "1")?;
    let mut adapted = Vec::new();
    for _ in 0..TURNS {
        let begin = Instant::now();
        line.talk.prompt(&session, "1")?;
        adapted.push(begin.elapsed());
    }
    let (begin, used) = (Instant::now(), cpu_us(pid)?);
    line.talk.prompt(&session, &PIECES.to_string())?;
    let (burst, cpu) = (begin.elapsed(), cpu_us(pid)? - used);
    let busy = resident_mb(pid)?;

    let pieces = f64::from(PIECES);
    let added = us(percentile(&mut adapted, 50)) - us(percentile(&mut plain, 50));
    println!("{:<34} {:>9}", "ADAPTER", "");
    println!("{:<34} {idle:>9.1} MB  (target 6)", "resident, before a session");
    println!("{:<34} {busy:>9.1} MB  (target 6)", "resident, after 50,000 lines");
    println!("{:<34} {added:>+9.1} µs  (a turn of four lines)", "added p50 per turn");
    println!("{:<34} {:>9.1} µs  (target 100)", "added p50 per line", added / 4.0);
    println!("{:<34} {:>9.2} µs", "processor time per line", cpu / pieces);
    let rate = |time: Duration| pieces / time.as_secs_f64();
    println!(
        "{:<34} {:>9.0}  (direct {:.0})\n",
        "lines per second",
        rate(burst),
        rate(plain_burst)
    );
    Ok(())
}
