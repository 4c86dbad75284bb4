//! `jackfield console`: opens the web console, or lets a phone open it.

mod browser;
mod console_address;

use crate::{
    context::CommandContext,
    env,
    exit::CliExitCode,
    out::{OutputFormat, print_json_document},
    report::CommandError,
};
use clap::Args;
use console_address::{ConsoleAddress, ConsoleReach, find_addresses};
use jackfield_daemon::{Paths, token};
use jackfield_transport::{ClientAuthenticator, TenantIdentity};
use jackfield_web::login::{DeviceLogins, LoginLink, LoginOwner};
use qrcode::{QrCode, render::unicode::Dense1x2};
use serde_json::json;
use std::{io, sync::Arc};

/// Open the web console in a browser
///
/// Starts the daemon and its HTTP address if needed, and prints a link that logs in one browser. The
/// link can be used once, within 60 seconds. `jackfield devices` lists the browsers that have logged in.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield console
  $ jackfield console --no-open
  $ jackfield console --pair
  $ jackfield console --pair --url https://build.example.org
  $ jackfield console --format json | jq -r .url")]
pub(crate) struct ConsoleCommand {
    /// Print a QR code for a phone, with the addresses at which it can reach this machine
    #[arg(long, env = env::PAIR, hide_env_values = true, value_parser = env::flag_parser())]
    pair: bool,

    /// Print the link, but do not open a browser
    #[arg(long, env = env::NO_OPEN, hide_env_values = true, value_parser = env::flag_parser())]
    no_open: bool,

    /// The address of the daemon as the browser reaches it, if a proxy or a tunnel is in front of it
    #[arg(long, env = env::URL, hide_env_values = true, value_name = "URL")]
    url: Option<ConsoleAddress>,

    /// Log in as this tenant, with access to its sessions only
    #[arg(long = "tenant", env = env::CONSOLE_TENANT, hide_env_values = true, value_name = "NAME")]
    console_tenant: Option<String>,

    /// Permit an unencrypted address that other machines can reach; they read the token and all messages
    #[arg(long, env = env::INSECURE, hide_env_values = true, value_parser = env::flag_parser())]
    insecure: bool,

    /// How to print the link; `quiet` prints only the link
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: OutputFormat,
}

impl ConsoleCommand {
    pub(crate) fn run(self, context: &CommandContext) -> Result<(), CommandError> {
        context.daemon.require_operator("console")?;
        let reach = if self.pair { ConsoleReach::Network } else { ConsoleReach::Machine };
        let addresses = match &self.url {
            Some(url) => vec![url.clone().require_encrypted(self.insecure)?],
            None => find_addresses(context, reach, self.insecure)?,
        };
        let owner = match &self.console_tenant {
            Some(tenant) => LoginOwner::Tenant(tenant.clone()),
            None => LoginOwner::Operator,
        };
        let link =
            open_logins(context.daemon.paths())?.create_link(owner).map_err(storage_error)?;
        let links: Vec<String> = addresses.iter().map(|it| it.login_link(&link.code)).collect();
        match self.format {
            OutputFormat::Quiet => context.output.print_line(&links[0]),
            OutputFormat::Json => {
                let LoginLink { code, expires_at } = &link;
                let document = json!({ "url": links[0], "urls": links, "code": code,
                    "expiresAt": expires_at });
                print_json_document(&context.output, &document)
            }
            OutputFormat::Text if self.pair => print_pairing(context, &links),
            OutputFormat::Text => {
                context.output.print_line(&links[0])?;
                self.open_browser(context, &links[0]);
                Ok(())
            }
        }
    }

    /// Opens the browser, or says how to.
    fn open_browser(&self, context: &CommandContext, link: &str) {
        let note = "this link logs in one browser, once, within 60 s";
        if self.no_open || !context.output.is_terminal() {
            context.output.print_note(note);
        } else if browser::is_remote_shell() {
            let tunnel = "from another machine, first open a tunnel to its port: `ssh -L`";
            context.output.print_note(&format!("{note}; {tunnel}"));
        } else {
            match browser::open_link(&context.daemon.paths().runtime, link) {
                Ok(program) => context.output.print_note(&format!("opening it with `{program}`")),
                Err(error) => context
                    .output
                    .print_note(&format!("no browser could be opened ({error}); {note}")),
            }
        }
    }
}

/// Prints the QR code of the first link, and all links for a phone that cannot scan it.
fn print_pairing(context: &CommandContext, links: &[String]) -> Result<(), CommandError> {
    let code = QrCode::new(&links[0]).map_err(|error| CommandError::Local {
        what: "the link is too long for a QR code".to_owned(),
        source: Box::new(error),
        exit: CliExitCode::Failed,
        hint: "use a shorter `--url`".to_owned(),
    })?;
    // Most terminals are dark, so the blocks are the light modules.
    let code =
        code.render::<Dense1x2>().dark_color(Dense1x2::Light).light_color(Dense1x2::Dark).build();
    code.lines().try_for_each(|it| context.output.print_line(it))?;
    links.iter().try_for_each(|it| context.output.print_line(it))?;
    context.output.print_note("scan the code; it logs in one browser, once, within 60 s");
    Ok(())
}

/// The logins of this state directory. Tenants are not checked here: the daemon does.
pub(super) fn open_logins(paths: &Paths) -> Result<DeviceLogins, CommandError> {
    let token = token::read(paths).map_err(|error| {
        let hint = "the daemon creates the token at its first start: `jackfield daemon start`";
        if error.is_absent() { CommandError::NoDaemon { hint } } else { CommandError::Token(error) }
    })?;
    let find_tenant =
        |name: &str| Some(TenantIdentity { name: name.into(), binding: bytes::Bytes::default() });
    let authenticator = ClientAuthenticator::from(&token);
    Ok(DeviceLogins::new(&paths.devices(), authenticator, Arc::new(find_tenant)))
}

pub(super) fn storage_error(error: io::Error) -> CommandError {
    CommandError::Local {
        what: "failed to access the file of devices".to_owned(),
        source: Box::new(error),
        exit: CliExitCode::Failed,
        hint: "`jackfield doctor` checks the state directory".to_owned(),
    }
}
