//! Where a configuration comes from.

use super::{Flaw, Loaded, read};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// Thousands of pools; whatever is larger is something else.
const BYTES_MAX: u64 = 4 << 20;

/// A file, or an open descriptor that we were started with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    File(PathBuf),
    Descriptor(u16),
}

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
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
    #[error("config: {name} is larger than {BYTES_MAX} bytes")]
    TooLarge { name: String },
    #[error("config: {name} holds nothing (more)")]
    Empty { name: String },
    #[error("Failed to load configuration from {name}")]
    Flawed {
        name: String,
        #[source]
        flaw: Flaw,
    },
}

impl Source {
    /// Reads it, again if need be; a pipe can be read once.
    pub fn load(&self) -> Result<Loaded, ConfigError> {
        let text = self.text()?;
        let name = self.name();
        if text.trim().is_empty() {
            return Err(ConfigError::Empty { name });
        }
        let folder = match self {
            Source::File(path) => path.parent().unwrap_or(Path::new("")).to_owned(),
            Source::Descriptor(_) => PathBuf::new(),
        };
        // Relative to where we are now: a pool that is started later starts there, too.
        let folder = std::path::absolute(&folder).unwrap_or(folder);
        read(&text, &folder).map_err(|flaw| ConfigError::Flawed { name, flaw })
    }

    /// As people know it.
    pub fn name(&self) -> String {
        match self {
            Source::File(path) => path.display().to_string(),
            Source::Descriptor(descriptor) => format!("descriptor {descriptor}"),
        }
    }

    fn text(&self) -> Result<String, ConfigError> {
        let failed = |source| match self {
            Source::File(path) => ConfigError::File { path: path.clone(), source },
            Source::Descriptor(it) => ConfigError::Descriptor { descriptor: *it, source },
        };
        let file = match self {
            Source::File(path) => File::open(path),
            // Opened a second time: it is not ours to close, and a file is read from its start.
            Source::Descriptor(it) => File::open(format!("/proc/self/fd/{it}")),
        };
        let mut text = String::new();
        let file = file.map_err(failed)?;
        let read = file.take(BYTES_MAX + 1).read_to_string(&mut text).map_err(failed)?;
        if BYTES_MAX < read as u64 {
            return Err(ConfigError::TooLarge { name: self.name() });
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jackfield_protocol::chain;
    use std::fs;
    use std::io::Write as _;
    use std::os::fd::AsRawFd as _;

    const GOOD: &str = r#"{"pools":[{"id":"a","command":"cat","instances":1,"cwd":"x"}]}"#;

    #[test]
    fn a_file_is_read_and_its_folder_counts() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("bus.json");
        fs::write(&path, GOOD).unwrap();
        let loaded = Source::File(path).load().unwrap();
        let cwd = loaded.config.pools[0].command.cwd.clone().unwrap();
        assert_eq!(Path::new(&cwd), dir.path().join("x"));
    }

    #[test]
    fn a_descriptor_is_read_a_file_again_and_a_pipe_once() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(GOOD.as_bytes()).unwrap();
        let source = Source::Descriptor(file.as_raw_fd().try_into().unwrap());
        assert_eq!(source.load().unwrap(), source.load().unwrap());
        let (read, mut write) = io::pipe().unwrap();
        write.write_all(GOOD.as_bytes()).unwrap();
        drop(write);
        let source = Source::Descriptor(read.as_raw_fd().try_into().unwrap());
        assert!(source.load().is_ok());
        let error = source.load().unwrap_err();
        assert!(error.to_string().contains("holds nothing (more)"), "{error}");
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let error = Source::File("/nowhere/bus.json".into()).load().unwrap_err();
        assert!(error.to_string().starts_with("config: cannot open file /nowhere/bus.json"));
        let error = Source::Descriptor(1023).load().unwrap_err();
        assert!(error.to_string().contains("cannot read descriptor 1023"), "{error}");
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("bus.json");
        fs::write(&path, "{\n\"pools\": [\n{}]}").unwrap();
        let told = chain(&Source::File(path.clone()).load().unwrap_err());
        assert!(told.contains(&format!("Failed to load configuration from {}", path.display())));
        assert!(told.contains("line 3: config: pool 0 missing required 'id' field"), "{told}");
    }
}
