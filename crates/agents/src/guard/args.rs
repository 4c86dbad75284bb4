//! The guard's command line: `[--cwd DIR] [--files N] [--control-group DIR] [--<grace>-ms N]… -- command…`.

use crate::stop::Graces;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Args {
    pub(super) cwd: PathBuf,
    /// So many files the agent may have open, if not as many as the daemon.
    pub(super) files: Option<u64>,
    /// The control group to start the agent in.
    pub(super) control_group: Option<PathBuf>,
    pub(super) graces: Graces,
    pub(super) argv: Vec<OsString>,
}

impl Args {
    pub(super) fn parse(line: impl IntoIterator<Item = OsString>) -> Result<Args, String> {
        let mut words = line.into_iter();
        let mut cwd = PathBuf::from("/");
        let (mut files, mut control_group) = (None, None);
        let mut graces = Graces::default();
        loop {
            let Some(option) = words.next() else {
                return Err("no `--` and no command behind it".to_owned());
            };
            if option == "--" {
                break;
            }
            let shown = option.to_string_lossy().into_owned();
            let value = words.next().ok_or_else(|| format!("`{shown}` needs a value"))?;
            if option == "--cwd" {
                cwd = PathBuf::from(value);
                continue;
            }
            if option == "--control-group" {
                control_group = Some(PathBuf::from(value));
                continue;
            }
            let number = value.to_str().and_then(|text| text.parse().ok());
            if option == "--files" {
                files = Some(number.ok_or("`--files` needs a number")?);
                continue;
            }
            let grace = graces
                .named()
                .into_iter()
                .find_map(|(name, grace)| (name == shown).then_some(grace))
                .ok_or_else(|| format!("unknown option `{shown}`"))?;
            *grace = number
                .map(Duration::from_millis)
                .ok_or_else(|| format!("`{shown}` needs a number of milliseconds"))?;
        }
        let argv: Vec<OsString> = words.collect();
        if argv.is_empty() {
            return Err("no command behind `--`".to_owned());
        }
        Ok(Args { cwd, files, control_group, graces, argv })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Args, String> {
        Args::parse(line.split(' ').map(OsString::from))
    }

    #[test]
    fn everything_behind_the_dashes_is_the_command() {
        let args = parse("--cwd /tmp --files 1024 --term-ms 7 -- cmd --cwd -- x").unwrap();
        assert_eq!(args.files, Some(1024));
        assert_eq!(args.cwd, PathBuf::from("/tmp"));
        assert_eq!(args.graces.term, Duration::from_millis(7));
        assert_eq!(args.graces.eof, Graces::default().eof);
        assert_eq!(args.argv, ["cmd", "--cwd", "--", "x"]);
    }

    #[test]
    fn what_we_write_is_what_we_read() {
        let graces = Graces { eof: Duration::from_millis(1), ..Graces::default() };
        let mut line: Vec<OsString> = graces.to_args().into_iter().map(OsString::from).collect();
        line.extend(["--".into(), "cmd".into()]);
        assert_eq!(Args::parse(line).unwrap().graces, graces);
    }

    #[test]
    fn a_bad_command_line_says_what_is_wrong_with_it() {
        assert!(parse("--cwd /").unwrap_err().contains("no `--`"));
        assert!(parse("--term-ms soon -- x").unwrap_err().contains("milliseconds"));
        assert!(parse("--files many -- x").unwrap_err().contains("a number"));
        assert!(parse("--frobnicate 1 -- x").unwrap_err().contains("--frobnicate"));
        assert!(parse("--").unwrap_err().contains("no command"));
    }
}
