//! Checks the configuration: whether it is valid, and whether only this user can change it. It names programs that are
//! run.

use super::{
    check_context::CheckContext,
    finding::{DoctorFinding, ModeRepair},
    folders::own_user,
};
use crate::plain_text::{format_count, quote_path};
use jackfield_protocol::chain;
use std::{
    error::Error as _,
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

const WRITABLE_BY_OTHERS: u32 = 0o022;
const ROOT: u32 = 0;

pub(super) fn check_config(context: &CheckContext<'_>) -> Vec<DoctorFinding> {
    let (paths, file) = (context.paths, context.paths.config_file());
    let settings = match context.settings() {
        Ok(settings) => settings,
        Err(error) => {
            let reason = error.source().map_or_else(|| error.to_string(), chain);
            let fix = format!("correct `{}`", file.display());
            return vec![DoctorFinding::problem(reason, fix)];
        }
    };
    let files = [&paths.config, &file, &paths.policy_file(), &paths.config.join("agents")];
    let changeable = files.into_iter().filter_map(|it| read_owner(it)).find_map(judge_owner);
    vec![changeable.unwrap_or_else(|| {
        let shown = file.display();
        DoctorFinding::ok(if file.exists() {
            format!("{shown}, {}", format_count(settings.agents.len(), "agent"))
        } else {
            format!("{shown} does not exist and is not required")
        })
    })]
}

/// Who may change a file.
struct FileOwner {
    path: PathBuf,
    owner: u32,
    mode: u32,
}

/// Links are followed: configuration files are often links into a repository.
fn read_owner(path: &Path) -> Option<FileOwner> {
    let meta = fs::metadata(path).ok()?;
    let mode = meta.permissions().mode() & 0o7777;
    Some(FileOwner { path: path.to_owned(), owner: meta.uid(), mode })
}

fn judge_owner(file: FileOwner) -> Option<DoctorFinding> {
    judge_owner_for(file, own_user())
}

fn judge_owner_for(file: FileOwner, user: u32) -> Option<DoctorFinding> {
    let FileOwner { path, owner, mode } = file;
    let shown = path.display();
    if owner != user && owner != ROOT {
        let found = format!("{shown} belongs to user {owner}, who can change what you run");
        let fix = format!("chown {user} {}", quote_path(&path));
        return Some(DoctorFinding::problem(found, fix));
    }
    if mode & WRITABLE_BY_OTHERS == 0 {
        return None;
    }
    let found = format!("other users can change {shown} (mode {mode:o})");
    let repair = ModeRepair { mode: mode & !WRITABLE_BY_OTHERS, path: path.clone() };
    let finding = DoctorFinding::wrong_mode(found, repair);
    // Only root can change a file of root.
    Some(DoctorFinding { repair: finding.repair.filter(|_| owner == user), ..finding })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(owner: u32, mode: u32) -> Option<DoctorFinding> {
        judge_owner_for(FileOwner { path: "/c".into(), owner, mode }, 7)
    }

    #[test]
    fn configuration_that_others_can_change_is_a_problem() {
        assert_eq!(judge(7, 0o755), None);
        assert_eq!(judge(ROOT, 0o644), None, "an administrator may provide it");
        let finding = judge(7, 0o777).unwrap();
        assert_eq!(finding.fix.as_deref(), Some("chmod 755 /c"));
        assert_eq!(finding.repair.map(|it| it.mode), Some(0o755));
        assert_eq!(judge(7, 0o664).unwrap().fix.as_deref(), Some("chmod 644 /c"));
        let foreign = judge(8, 0o755).unwrap();
        assert_eq!((foreign.fix.as_deref(), foreign.repair), (Some("chown 7 /c"), None));
        assert_eq!(judge(ROOT, 0o666).unwrap().repair, None);
    }
}
