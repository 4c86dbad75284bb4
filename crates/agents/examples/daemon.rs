//! Plays a daemon that will be killed: `daemon GUARD LEDGER MARK command…` starts one agent, says
//! `started` on stdout and waits for ever.

use jackfield_agents::{
    AgentProcessEvent, GuardCommand, LaunchCommand, ProcessLedger, StdoutFormat, spawn_agent,
};
use std::error::Error;
use std::io::Write as _;
use std::path::Path;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let mut next = || args.next().ok_or("usage: daemon GUARD LEDGER MARK command…");
    let guard = GuardCommand { program: next()?.into(), args: Vec::new() };
    let ledger = ProcessLedger::open(Path::new(&next()?))?;
    let mark = next()?;
    let env = std::env::vars().filter(|(name, _)| name == "PATH").collect();
    let launch = LaunchCommand {
        argv: args.collect(),
        cwd: "/".into(),
        env,
        stdout_format: StdoutFormat::Frames,
    };
    let (events, mut heard) = tokio::sync::mpsc::channel(16);
    let _handle = spawn_agent(&guard, &launch, &mark, &ledger, events, ())?;
    while let Some(((), event)) = heard.recv().await {
        if let AgentProcessEvent::Started { .. } = event {
            writeln!(std::io::stdout(), "started")?;
        }
    }
    Ok(())
}
