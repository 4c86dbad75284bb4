//! The fake model server as a program: `fake-model [--port N] [--files DIR] [--until-eof]`.
//! Prints its address on stdout and serves until it is killed, or until stdin ends.

use std::{
    env, io,
    io::{Read as _, Write as _},
    path::PathBuf,
    process::ExitCode,
};

use jackfield_test_support::fake_model::FakeModel;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            // If stderr is closed, the error cannot be reported.
            let _ = writeln!(io::stderr(), "fake-model: {why}");
            ExitCode::from(2)
        }
    }
}

fn run() -> io::Result<()> {
    let (mut port, mut files, mut until_eof) = (0, PathBuf::new(), false);
    let mut args = env::args().skip(1);
    while let Some(flag) = args.next() {
        let mut value = || args.next().ok_or_else(|| io::Error::other(format!("{flag} what?")));
        match flag.as_str() {
            "--port" => port = value()?.parse().map_err(io::Error::other)?,
            "--files" => files = value()?.into(),
            "--until-eof" => until_eof = true,
            _ => return Err(io::Error::other(format!("no such flag: `{flag}`"))),
        }
    }
    let model = FakeModel::start_on(port, files)?;
    writeln!(io::stdout(), "{}", model.url())?;
    if until_eof {
        io::stdin().read_to_end(&mut Vec::new())?;
    } else {
        model.wait();
    }
    Ok(())
}
