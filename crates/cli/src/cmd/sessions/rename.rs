//! `jackfield sessions rename`: gives a session a name, or removes it.

use crate::{
    complete,
    context::CommandContext,
    hub::{CommandConnection, find_session, list_sessions, rename_session},
    report::CommandError,
};
use clap::Args;

/// Name a session; names are accepted wherever an id is
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield sessions rename s-7f3 parser
  $ jackfield attach parser
  $ jackfield sessions rename parser \"\"      # removes the name")]
pub(super) struct RenameSessionCommand {
    /// A name, an id, a unique prefix of an id, or a title
    #[arg(add = complete::sessions())]
    session: String,

    /// The new name; an empty one removes the name
    name: String,
}

impl RenameSessionCommand {
    pub(super) fn run(
        &self,
        context: &CommandContext,
        conn: &mut CommandConnection,
    ) -> Result<(), CommandError> {
        let id = find_session(&list_sessions(conn)?, &self.session)?.session_id;
        let name = Some(self.name.as_str()).filter(|it| !it.is_empty());
        rename_session(conn, &id, name)?;
        context.output.print_note(&match name {
            Some(name) => format!("{id} has the name `{name}`"),
            None => format!("{id} has no name"),
        });
        Ok(())
    }
}
