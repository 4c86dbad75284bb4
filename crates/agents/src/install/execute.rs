//! Carries out a plan: runs the package manager, checks what it did, starts the program, then switches to it.

use super::{
    InstallError, InstallPlan, archive,
    command::{INSTALL_MAX, PackageTools},
    npm, pypi,
};
use crate::{
    find::{FoundProgram, ProgramLocations, ProgramOrigin},
    installed::{
        AgentLock, InstallRecord, InstalledAgents, InstalledVersion, PackageSource, RECORD_FORMAT,
        StoreError,
    },
    probe::query_version,
};
use std::{fs, io, os::unix::fs::symlink, path::Path};

/// What the user of a long installation should see.
pub trait InstallEvents {
    /// Another process changes the same agent.
    fn on_wait(&self);
    /// A command is started.
    fn on_command(&self, command_line: &str);
}

impl InstallPlan {
    /// Installs the planned version and uses it. After a failure the version in use is the same as before.
    pub async fn execute(
        &self,
        installed: &InstalledAgents,
        locations: &ProgramLocations,
        events: &dyn InstallEvents,
    ) -> Result<InstallRecord, InstallError> {
        let lock = installed.lock(self.agent(), || events.on_wait()).await?;
        // Another process may have installed it in the meantime.
        if let Some(version) = installed.find_version(self.agent(), &self.target)
            && let Some(record) = version.read_record()
        {
            self.check_start(&version, locations).await?;
            installed.select(self.agent(), &self.target)?;
            return Ok(record);
        }
        let version = installed.create_version(self.agent(), &self.target)?;
        let filled = self.fill_folder(&version, &lock, locations, events).await;
        if filled.is_err() {
            // The first error is reported; the next installation removes what is left.
            let _left = installed.remove_version(self.agent(), &self.target);
        }
        let record = filled?;
        installed.select(self.agent(), &self.target)?;
        Ok(record)
    }

    async fn fill_folder(
        &self,
        version: &InstalledVersion,
        lock: &AgentLock,
        locations: &ProgramLocations,
        events: &dyn InstallEvents,
    ) -> Result<InstallRecord, InstallError> {
        let tools = PackageTools::new(locations);
        let folder = &version.folder;
        let folder_error = |source| StoreError::Folder { path: folder.clone(), source };
        let mut printed = String::new();
        for command in &self.commands {
            events.on_command(&command.command_line());
            lock.share_with_children(true).map_err(folder_error)?;
            let run = tools.run(command, folder, INSTALL_MAX).await;
            lock.share_with_children(false).map_err(folder_error)?;
            printed = run?;
        }
        match self.packages[0].source {
            PackageSource::Npm => npm::check_installed(folder, &self.packages)?,
            PackageSource::Pypi => pypi::check_installed(folder, &self.packages[0], &printed)?,
            PackageSource::Archive => archive::unpack_download(folder, &self.packages[0])?,
        }
        self.link_programs(version).map_err(folder_error)?;
        self.check_programs(version)?;
        let reported_version = self.check_start(version, locations).await?;
        let record = InstallRecord {
            format: RECORD_FORMAT,
            agent: self.agent().to_owned(),
            packages: self.packages.clone(),
            reported_version,
        };
        version.write_record(&record)?;
        Ok(record)
    }

    /// Creates a link for each program in the folder `bin`.
    fn link_programs(&self, version: &InstalledVersion) -> io::Result<()> {
        let archive = self.spec.packages[0].find_archive();
        let target = |bin: &str| match self.packages[0].source {
            PackageSource::Npm => Path::new("../node_modules/.bin").join(bin),
            PackageSource::Pypi => Path::new("../venv/bin").join(bin),
            PackageSource::Archive => {
                let program = archive.map_or(bin, |it| &it.program);
                Path::new("..").join(archive::FILES_FOLDER).join(program)
            }
        };
        jackfield_private_files::ensure_private_dir(&version.bin_dir())?;
        let mut bins = self.bins.iter();
        bins.try_for_each(|it| symlink(target(it), version.bin_dir().join(it)))
    }

    /// Checks that every program is a file in the version's own folder.
    fn check_programs(&self, version: &InstalledVersion) -> Result<(), InstallError> {
        for bin in &self.bins {
            let unusable = |reason: String| InstallError::UnusableProgram {
                agent: self.agent().to_owned(),
                bin: bin.clone(),
                reason,
            };
            let resolve =
                |path: &Path| fs::canonicalize(path).map_err(|error| unusable(format!("{error}")));
            let (folder, program) =
                (resolve(&version.folder)?, resolve(&version.bin_dir().join(bin))?);
            if !program.starts_with(&folder) {
                return Err(unusable(format!("`{}` is outside of its folder", program.display())));
            }
            if !program.is_file() {
                return Err(unusable(format!("`{}` is not a file", program.display())));
            }
        }
        Ok(())
    }

    /// Starts the agent's own program and returns the version that it prints.
    async fn check_start(
        &self,
        version: &InstalledVersion,
        locations: &ProgramLocations,
    ) -> Result<String, InstallError> {
        let own = self.spec.bins.iter().find(|it| self.bins.contains(it));
        let path = version.bin_dir().join(own.map_or("", String::as_str));
        let found = FoundProgram { path, origin: ProgramOrigin::Installed };
        let queried = query_version(&self.spec, &found, locations).await;
        queried.map_err(|diagnostic| InstallError::DoesNotStart {
            agent: self.spec.name.clone(),
            version: self.version().to_owned(),
            reason: diagnostic.message,
        })
    }
}
