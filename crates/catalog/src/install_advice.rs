//! How a user gets an agent: the command of Jackfield that installs it, or the page of its vendor.

use crate::{AgentPackage, AgentSpec, current_platform};

/// How a user gets an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InstallAdvice {
    /// This command installs it.
    Command(String),
    /// Jackfield does not install it.
    Vendor {
        /// Why not.
        reason: String,
        /// The page of its vendor.
        page: Option<String>,
    },
    /// It is a part of Jackfield.
    Included,
}

/// The program that is a part of Jackfield.
const OWN_PROGRAM: &str = "jackfield";

impl AgentSpec {
    /// The command to type, or why there is none.
    pub fn install_advice(&self) -> InstallAdvice {
        if self.bins.iter().any(|it| it == OWN_PROGRAM) {
            return InstallAdvice::Included;
        }
        let is_available =
            |it: &AgentPackage| it.archives.is_empty() || it.find_archive().is_some();
        if !self.packages.is_empty() && self.packages.iter().all(is_available) {
            return InstallAdvice::Command(format!("jackfield agents install {}", self.id));
        }
        let is_address = |it: &&String| it.starts_with("https://");
        let page = self.docs.as_ref().or(self.install.as_ref().filter(is_address)).cloned();
        let reason = match &self.install {
            _ if !self.packages.is_empty() => {
                format!("its vendor has no archive with a checksum for {}", current_platform())
            }
            Some(script) if is_piped_script(script) => format!(
                "its vendor installs it with a script from the network (`{script}`), which can be \
                 neither pinned nor verified"
            ),
            Some(command) if !command.starts_with("https://") => {
                format!("its vendor installs it with a program of its own (`{command}`)")
            }
            _ => "no package of npm or PyPI and no archive with a checksum is known for it"
                .to_owned(),
        };
        InstallAdvice::Vendor { reason, page }
    }
}

/// Whether a command downloads a script and passes it to a shell.
fn is_piped_script(command: &str) -> bool {
    let into_shell = |it: &str| {
        let program = it.split_whitespace().next().unwrap_or_default();
        matches!(program, "sh" | "bash" | "zsh" | "sudo")
    };
    command.split('|').skip(1).any(into_shell)
}
