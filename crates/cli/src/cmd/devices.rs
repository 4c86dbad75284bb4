//! `jackfield devices`: lists, renames and revokes the browsers that have logged in to the console.

use super::console::{open_logins, storage_error};
use crate::{
    context::CommandContext,
    env,
    out::{DIM, NAME, OutputFormat, TableCell, TextTable, format_age, print_json_document},
    plain_text::escape_control_chars,
    report::CommandError,
};
use clap::{Args, Subcommand};
use jackfield_web::login::{DEVICE_NAME_CHARS_MAX, DeviceLogins, DeviceRecord, is_device_name};
use serde_json::{Value, json};

/// List, rename and revoke browsers that have logged in to the web console
///
/// They are stored in the state directory. A running daemon notices a change within a second.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield devices list
  $ jackfield devices rename d-7f3 Phone
  $ jackfield devices revoke d-7f3
  $ jackfield console --pair")]
pub(crate) struct DevicesCommand {
    #[command(subcommand)]
    command: DevicesSubcommand,
}

#[derive(Debug, Subcommand)]
enum DevicesSubcommand {
    List(ListDevicesCommand),
    Rename(RenameDeviceCommand),
    Revoke(RevokeDeviceCommand),
}

/// List the devices, the last used first
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield devices list
  $ jackfield devices list --format json | jq -r '.devices[].name'")]
struct ListDevicesCommand {
    /// How to print the list; `quiet` prints ids
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: OutputFormat,
}

/// Rename a device
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield devices rename d-7f3 Phone")]
struct RenameDeviceCommand {
    /// The id of the device, or a prefix that no other device has
    device: String,

    /// The new name, of up to 64 characters
    new_name: String,
}

/// Revoke devices: their logins are no longer accepted, and their open pages are disconnected
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield devices revoke d-7f3
  $ jackfield devices list --format quiet | xargs jackfield devices revoke")]
struct RevokeDeviceCommand {
    /// The ids of the devices, or prefixes that no other device has
    #[arg(required = true)]
    devices: Vec<String>,
}

impl DevicesCommand {
    pub(crate) fn run(self, context: &CommandContext) -> Result<(), CommandError> {
        context.daemon.require_operator("devices")?;
        let logins = open_logins(context.daemon.paths())?;
        match self.command {
            DevicesSubcommand::List(it) => it.run(context, &logins),
            DevicesSubcommand::Rename(it) => it.run(context, &logins),
            DevicesSubcommand::Revoke(it) => it.run(context, &logins),
        }
    }
}

impl ListDevicesCommand {
    fn run(self, context: &CommandContext, logins: &DeviceLogins) -> Result<(), CommandError> {
        let devices = logins.devices();
        match self.format {
            OutputFormat::Quiet => {
                devices.iter().try_for_each(|it| context.output.print_line(&it.id))
            }
            OutputFormat::Json => {
                let rows: Vec<Value> = devices.iter().map(device_json).collect();
                print_json_document(&context.output, &json!({ "devices": rows }))
            }
            OutputFormat::Text if devices.is_empty() => {
                context.output.print_note("no device has logged in: `jackfield console`");
                Ok(())
            }
            OutputFormat::Text => {
                let mut table =
                    TextTable::new(&["DEVICE", "TENANT", "LOGGED IN", "LAST SEEN", "NAME"]);
                for device in &devices {
                    table.add_row(vec![
                        TableCell::styled(device.id.clone(), NAME),
                        TableCell::new(device.tenant().unwrap_or("-")),
                        TableCell::styled(format_age(device.created_at), DIM),
                        TableCell::new(format_age(device.last_seen_at)),
                        TableCell::new(escape_control_chars(&device.name)),
                    ]);
                }
                table.print(&context.output)
            }
        }
    }
}

impl RenameDeviceCommand {
    fn run(self, context: &CommandContext, logins: &DeviceLogins) -> Result<(), CommandError> {
        if !is_device_name(&self.new_name) {
            let message = format!("`{}` is not a name for a device", self.new_name);
            let hint = format!("a name has 1 to {DEVICE_NAME_CHARS_MAX} visible characters");
            return Err(CommandError::usage(message, hint));
        }
        let device = find_device(logins, &self.device)?;
        logins.rename_device(&device.id, &self.new_name).map_err(storage_error)?;
        context.output.print_note(&format!("{} is now `{}`", device.id, self.new_name));
        Ok(())
    }
}

impl RevokeDeviceCommand {
    fn run(self, context: &CommandContext, logins: &DeviceLogins) -> Result<(), CommandError> {
        // All names are checked before anything is revoked.
        let devices: Vec<DeviceRecord> =
            self.devices.iter().map(|it| find_device(logins, it)).collect::<Result<_, _>>()?;
        for device in devices {
            logins.revoke_device(&device.id).map_err(storage_error)?;
            let name = escape_control_chars(&device.name).into_owned();
            context.output.print_note(&format!("revoked {} ({name})", device.id));
        }
        Ok(())
    }
}

fn find_device(logins: &DeviceLogins, named: &str) -> Result<DeviceRecord, CommandError> {
    let mut found: Vec<DeviceRecord> =
        logins.devices().into_iter().filter(|it| it.id.starts_with(named)).collect();
    let hint = || "`jackfield devices list` shows the ids".to_owned();
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(CommandError::usage(format!("no device matches `{named}`"), hint())),
        count => Err(CommandError::usage(format!("`{named}` matches {count} devices"), hint())),
    }
}

fn device_json(device: &DeviceRecord) -> Value {
    json!({ "id": device.id, "name": device.name, "tenant": device.tenant(),
        "createdAt": device.created_at, "lastSeenAt": device.last_seen_at })
}
