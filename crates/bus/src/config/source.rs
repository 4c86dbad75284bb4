//! Where a configuration comes from.

use super::launcher::LauncherSettings;
use super::{ConfigProblem, LoadedConfig, read_config};
use jackfield_catalog::{Catalog, CatalogError, RegistryImport, import_registry};
use jackfield_protocol::chain;
use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::path::{Path, PathBuf};

/// Enough for thousands of pools.
const BYTES_MAX: u64 = 4 << 20;

/// A file, or an open file descriptor that the bus was started with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigSource {
    File(PathBuf),
    Descriptor(u16),
}

/// Why a configuration could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum BusConfigError {
    #[error("config: cannot open file {}", path.display())]
    File {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(
        "config: cannot read descriptor {descriptor}: start the bus with an open file or pipe under \
         that number, or use --config"
    )]
    Descriptor {
        descriptor: u16,
        #[source]
        source: io::Error,
    },
    #[error("config: invalid registry {}", path.display())]
    Registry {
        path: PathBuf,
        #[source]
        source: CatalogError,
    },
    #[error("config: {name} is larger than {BYTES_MAX} bytes")]
    TooLarge { name: String },
    #[error("config: {name} is empty")]
    Empty { name: String },
    #[error("Failed to load configuration from {name}")]
    Invalid {
        name: String,
        #[source]
        problem: ConfigProblem,
    },
}

impl ConfigSource {
    /// Reads the configuration, also repeatedly; a pipe can be read only once. The launcher starts
    /// agents of this catalog.
    pub fn load(&self, catalog: &Catalog) -> Result<LoadedConfig, BusConfigError> {
        let text = self.read_text()?;
        let name = self.name();
        if text.trim().is_empty() {
            return Err(BusConfigError::Empty { name });
        }
        let folder = match self {
            ConfigSource::File(path) => path.parent().unwrap_or(Path::new("")).to_owned(),
            ConfigSource::Descriptor(_) => PathBuf::new(),
        };
        // Relative to the current directory, so that pools that are started later start there, too.
        let folder = std::path::absolute(&folder).unwrap_or(folder);
        let (mut loaded, launcher) = read_config(&text, &folder)
            .map_err(|problem| BusConfigError::Invalid { name, problem })?;
        if let Some(launcher) = launcher {
            let registry = read_registry(&launcher)?;
            for skipped in &registry.skipped {
                tracing::warn!(reason = chain(skipped), "skipped an agent of the registry");
            }
            loaded.config.launcher = Some(launcher.into_config(catalog, &registry.specs));
        }
        Ok(loaded)
    }

    /// The name for messages.
    pub fn name(&self) -> String {
        match self {
            ConfigSource::File(path) => path.display().to_string(),
            ConfigSource::Descriptor(descriptor) => format!("descriptor {descriptor}"),
        }
    }

    fn read_text(&self) -> Result<String, BusConfigError> {
        let failed = |source| match self {
            ConfigSource::File(path) => BusConfigError::File { path: path.clone(), source },
            ConfigSource::Descriptor(it) => BusConfigError::Descriptor { descriptor: *it, source },
        };
        let file = match self {
            ConfigSource::File(path) => File::open(path),
            // Opened again, since the descriptor must stay open.
            ConfigSource::Descriptor(it) => File::open(format!("/dev/fd/{it}")),
        };
        let mut text = String::new();
        let mut file = file.map_err(failed)?;
        // Some systems keep the position of the descriptor. A pipe has none.
        let _is_pipe = file.rewind();
        let len = file.take(BYTES_MAX + 1).read_to_string(&mut text).map_err(failed)?;
        if BYTES_MAX < len as u64 {
            return Err(BusConfigError::TooLarge { name: self.name() });
        }
        Ok(text)
    }
}

/// The agents of the launcher's registry; none if it has no file.
fn read_registry(launcher: &LauncherSettings) -> Result<RegistryImport, BusConfigError> {
    let Some(path) = &launcher.registry else { return Ok(RegistryImport::default()) };
    let text = std::fs::read_to_string(path)
        .map_err(|source| BusConfigError::File { path: path.clone(), source })?;
    import_registry(&text).map_err(|source| BusConfigError::Registry { path: path.clone(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write as _;
    use std::os::fd::AsRawFd as _;

    const GOOD: &str = r#"{"pools":[{"id":"a","command":"cat","instances":1,"cwd":"x"}]}"#;

    #[test]
    fn directories_are_relative_to_the_configuration_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("bus.json");
        fs::write(&path, GOOD).unwrap();
        let loaded = ConfigSource::File(path).load(&Catalog::default()).unwrap();
        let cwd = loaded.config.pools[0].command.cwd.clone().unwrap();
        assert_eq!(Path::new(&cwd), dir.path().join("x"));
    }

    #[test]
    fn descriptor_of_a_file_is_read_repeatedly_and_of_a_pipe_once() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(GOOD.as_bytes()).unwrap();
        let source = ConfigSource::Descriptor(file.as_raw_fd().try_into().unwrap());
        assert_eq!(
            source.load(&Catalog::default()).unwrap(),
            source.load(&Catalog::default()).unwrap()
        );
        let (reader, mut writer) = io::pipe().unwrap();
        writer.write_all(GOOD.as_bytes()).unwrap();
        drop(writer);
        let source = ConfigSource::Descriptor(reader.as_raw_fd().try_into().unwrap());
        assert!(source.load(&Catalog::default()).is_ok());
        let error = source.load(&Catalog::default()).unwrap_err();
        assert!(error.to_string().contains("is empty"), "{error}");
    }

    #[test]
    fn launcher_knows_the_agents_of_catalog_and_registry() {
        let dir = tempfile::tempdir().unwrap();
        let registry = r#"{"agents": [{"id": "mine", "name": "Mine", "version": "1.0.0",
            "description": "d", "distribution": {"npx": {"package": "mine@1.0.0",
            "args": ["--acp"], "env": {"MINE_MODE": "acp"}}}}]}"#;
        fs::write(dir.path().join("registry.json"), registry).unwrap();
        let path = dir.path().join("bus.json");
        fs::write(&path, r#"{"launcher": {"registry": "registry.json", "idle_sec": 2}}"#).unwrap();
        let loaded = ConfigSource::File(path.clone()).load(&Catalog::builtin()).unwrap();
        assert!(loaded.config.pools.is_empty());
        let launcher = loaded.config.launcher.unwrap();
        assert_eq!((launcher.agents_max, launcher.idle_ms), (8, 2000));
        let mine = &launcher.agents["mine"];
        assert!(mine.argv[0].ends_with("npx"), "{:?}", mine.argv);
        assert_eq!(mine.argv.last().unwrap(), "--acp");
        assert!(mine.env.contains(&("MINE_MODE".into(), "acp".into())));
        assert_eq!(launcher.agents["gemini"].argv[1..], ["--acp"]);
        assert!(!launcher.agents.contains_key("aider"), "it does not speak ACP");
        fs::write(dir.path().join("registry.json"), "{}").unwrap();
        let message = chain(&ConfigSource::File(path).load(&Catalog::default()).unwrap_err());
        assert!(message.contains("invalid registry") && message.contains("`agents`"), "{message}");
    }

    #[test]
    fn errors_name_the_source() {
        let error =
            ConfigSource::File("/nowhere/bus.json".into()).load(&Catalog::default()).unwrap_err();
        assert!(error.to_string().starts_with("config: cannot open file /nowhere/bus.json"));
        let error = ConfigSource::Descriptor(1023).load(&Catalog::default()).unwrap_err();
        assert!(error.to_string().contains("cannot read descriptor 1023"), "{error}");
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("bus.json");
        fs::write(&path, "{\n\"pools\": [\n{}]}").unwrap();
        let message =
            chain(&ConfigSource::File(path.clone()).load(&Catalog::default()).unwrap_err());
        assert!(message.contains(&format!("Failed to load configuration from {}", path.display())));
        assert!(
            message.contains("line 3: config: pool 0 missing required 'id' field"),
            "{message}"
        );
    }
}
