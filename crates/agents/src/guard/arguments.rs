//! The guard's command line:
//! `[--cwd DIR] [--files N] [--control-group DIR] [--<grace>-ms N]… -- command…`.

use crate::stop::GracePeriods;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct GuardArguments {
    pub(super) cwd: PathBuf,
    /// The agent's limit of open files, if it differs from the daemon's.
    pub(super) files: Option<u64>,
    /// The control group to start the agent in.
    pub(super) control_group: Option<PathBuf>,
    pub(super) graces: GracePeriods,
    pub(super) argv: Vec<OsString>,
}

impl GuardArguments {
    pub(super) fn parse(
        line: impl IntoIterator<Item = OsString>,
    ) -> Result<GuardArguments, String> {
        let mut arguments = line.into_iter();
        let mut cwd = PathBuf::from("/");
        let (mut files, mut control_group) = (None, None);
        let mut graces = GracePeriods::default();
        loop {
            let Some(option) = arguments.next() else {
                return Err("no `--` with a command after it".to_owned());
            };
            if option == "--" {
                break;
            }
            let shown = option.to_string_lossy().into_owned();
            let value = arguments.next().ok_or_else(|| format!("`{shown}` needs a value"))?;
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
                .by_option()
                .into_iter()
                .find_map(|(name, grace)| (name == shown).then_some(grace))
                .ok_or_else(|| format!("unknown option `{shown}`"))?;
            *grace = number
                .map(Duration::from_millis)
                .ok_or_else(|| format!("`{shown}` needs a number of milliseconds"))?;
        }
        let argv: Vec<OsString> = arguments.collect();
        if argv.is_empty() {
            return Err("no command after `--`".to_owned());
        }
        Ok(GuardArguments { cwd, files, control_group, graces, argv })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<GuardArguments, String> {
        GuardArguments::parse(line.split(' ').map(OsString::from))
    }

    #[test]
    fn everything_after_the_dashes_is_the_command() {
        let args = parse("--cwd /tmp --files 1024 --term-ms 7 -- cmd --cwd -- x").unwrap();
        assert_eq!(args.files, Some(1024));
        assert_eq!(args.cwd, PathBuf::from("/tmp"));
        assert_eq!(args.graces.term, Duration::from_millis(7));
        assert_eq!(args.graces.eof, GracePeriods::default().eof);
        assert_eq!(args.argv, ["cmd", "--cwd", "--", "x"]);
    }

    #[test]
    fn grace_periods_survive_the_command_line() {
        let graces = GracePeriods { eof: Duration::from_millis(1), ..GracePeriods::default() };
        let mut line: Vec<OsString> = graces.to_args().into_iter().map(OsString::from).collect();
        line.extend(["--".into(), "cmd".into()]);
        assert_eq!(GuardArguments::parse(line).unwrap().graces, graces);
    }

    #[test]
    fn invalid_command_line_is_refused_with_a_reason() {
        assert!(parse("--cwd /").unwrap_err().contains("no `--`"));
        assert!(parse("--term-ms soon -- x").unwrap_err().contains("milliseconds"));
        assert!(parse("--files many -- x").unwrap_err().contains("a number"));
        assert!(parse("--frobnicate 1 -- x").unwrap_err().contains("--frobnicate"));
        assert!(parse("--").unwrap_err().contains("no command"));
    }
}
