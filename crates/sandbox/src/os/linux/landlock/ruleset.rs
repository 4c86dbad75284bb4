//! The Landlock rules of one launch.

use super::LandlockError;
use super::path_grants::{GrantRights, PathGrant};
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, Scope, make_bitflags,
};
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fstat, openat2};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::path::Path;

/// The version with scopes for signals and abstract sockets; its file rights include truncation and
/// control calls of devices.
const REQUIRED: ABI = ABI::V6;

/// The rules for these grants. If `has_network` is false, no TCP port can be bound or connected.
pub(super) fn create(
    grants: &[PathGrant],
    has_network: bool,
) -> Result<RulesetCreated, LandlockError> {
    let ruleset = handle_everything(has_network);
    let mut created = ruleset.map_err(LandlockError::OldVersion)?.create()?;
    for grant in grants {
        let Some(target) = open_target(grant) else { continue };
        let rights = rights_of(grant.rights, &target);
        created = created.add_rule(PathBeneath::new(target, rights))?;
    }
    Ok(created)
}

/// Fails on a kernel that cannot enforce a part of it.
fn handle_everything(has_network: bool) -> Result<Ruleset, RulesetError> {
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(REQUIRED))?
        .scope(Scope::from_all(REQUIRED))?;
    if has_network { Ok(ruleset) } else { ruleset.handle_access(AccessNet::from_all(REQUIRED)) }
}

/// Opens what a grant is for. Nothing is granted for what does not exist, and a symbolic link is not
/// followed: its target has rules of its own.
fn open_target(grant: &PathGrant) -> Option<OwnedFd> {
    let is_device = matches!(grant.rights, GrantRights::Device | GrantRights::Terminal);
    let resolve = if is_device { ResolveFlags::empty() } else { ResolveFlags::NO_SYMLINKS };
    open_path(&grant.path, resolve).ok()
}

fn open_path(path: &Path, resolve: ResolveFlags) -> Result<OwnedFd, Errno> {
    openat2(rustix::fs::CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve)
}

fn rights_of(rights: GrantRights, target: &OwnedFd) -> BitFlags<AccessFs> {
    let all = match rights {
        GrantRights::Read => AccessFs::from_read(REQUIRED),
        GrantRights::Write => AccessFs::from_all(REQUIRED) & !AccessFs::IoctlDev,
        GrantRights::Device => make_bitflags!(AccessFs::{ReadFile | WriteFile | Truncate}),
        GrantRights::Terminal => make_bitflags!(AccessFs::{ReadFile | WriteFile | IoctlDev}),
    };
    let is_directory =
        fstat(target).is_ok_and(|it| FileType::from_raw_mode(it.st_mode) == FileType::Directory);
    if is_directory { all } else { all & AccessFs::from_file(REQUIRED) }
}
