//! `jackfield queue`: lists, moves, withdraws and runs queued prompts.

use super::{run::prepare_agent_restart, sessions::format_time};
use crate::{
    complete,
    context::CommandContext,
    env,
    hub::{CommandConnection, SessionRow, find_session, list_sessions},
    out::{BRIGHT, DIM, OutputFormat, TableCell, TextTable, print_json_document},
    plain_text::{format_count, to_one_line},
    report::CommandError,
};
use clap::Args;
use jackfield_protocol::acp::Method;
use serde_json::{Value, json};

/// List the queued prompts of a session, move or withdraw one, or run held ones
///
/// A prompt is queued while a turn runs or the agent starts. Prompts that were queued when the daemon
/// stopped are held: they stay in the queue until you run or withdraw them.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield queue s-7f3
  $ jackfield queue s-7f3 --withdraw 2
  $ jackfield queue s-7f3 --move 3 --before 2
  $ jackfield queue s-7f3 --move 3
  $ jackfield queue s-7f3 --run
  $ jackfield queue s-7f3 --format json | jq '.prompts[] | select(.held)'")]
pub(crate) struct QueueCommand {
    /// A name, an id, a unique prefix of an id, or a title
    #[arg(add = complete::sessions())]
    session: String,

    /// Withdraw this prompt; its sender is notified
    #[arg(long, env = env::WITHDRAW, hide_env_values = true, value_name = "N", conflicts_with = "run")]
    withdraw: Option<u64>,

    /// Move this prompt: before another one with `--before`, or to the end of the queue
    #[arg(id = "move", long = "move", env = env::MOVE, hide_env_values = true, value_name = "N", conflicts_with_all = ["run", "withdraw"])]
    moved: Option<u64>,

    /// The prompt that the moved one is placed before
    #[arg(long, env = env::BEFORE, hide_env_values = true, value_name = "N", requires = "move")]
    before: Option<u64>,

    /// Run the held prompts, in order
    #[arg(long, env = env::RUN, hide_env_values = true, value_parser = env::flag_parser())]
    run: bool,

    /// How to print the list; `quiet` prints the numbers
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: OutputFormat,
}

impl QueueCommand {
    pub(crate) fn run(self, context: &CommandContext) -> Result<(), CommandError> {
        let mut conn = context.daemon.connect("queue")?;
        let row = find_session(&list_sessions(&mut conn)?, &self.session)?;
        match (self.withdraw, self.moved) {
            (Some(number), _) => self.withdraw_prompt(context, &mut conn, &row, number),
            (None, Some(number)) => self.move_prompt(context, &mut conn, &row, number),
            (None, None) if self.run => self.run_held_prompts(context, &mut conn, &row),
            (None, None) => self.list_prompts(context, &mut conn, &row),
        }
    }

    fn list_prompts(
        &self,
        context: &CommandContext,
        conn: &mut CommandConnection,
        row: &SessionRow,
    ) -> Result<(), CommandError> {
        let params = json!({ "sessionId": row.session_id });
        let mut answer = conn.call_hub(Method::ControlQueue, &params, "the list of prompts")?;
        let prompts = answer["prompts"].take();
        let rows = prompts.as_array().cloned().unwrap_or_default();
        match self.format {
            OutputFormat::Json => {
                print_json_document(&context.output, &json!({ "prompts": prompts }))
            }
            OutputFormat::Quiet => {
                rows.iter().try_for_each(|it| context.output.print_line(&it["prompt"].to_string()))
            }
            OutputFormat::Text if rows.is_empty() => {
                context.output.print_note(&format!("no queued prompts in {}", row.session_id));
                Ok(())
            }
            OutputFormat::Text => print_table(context, row, &rows),
        }
    }
}

fn print_table(
    context: &CommandContext,
    row: &SessionRow,
    prompts: &[Value],
) -> Result<(), CommandError> {
    let text = |it: &Value, name: &str| it[name].as_str().unwrap_or_default().to_owned();
    let mut table = TextTable::new(&["PROMPT", "STATE", "SINCE", "BY", "TEXT"]);
    for it in prompts {
        let state = if it["held"] == true { "held" } else { "queued" };
        table.add_row(vec![
            TableCell::styled(it["prompt"].to_string(), BRIGHT),
            TableCell::new(state),
            TableCell::new(format_time(context, &text(it, "since"))),
            TableCell::styled(to_one_line(&text(it, "by"), usize::MAX), DIM),
            TableCell::new(to_one_line(&text(it, "text"), usize::MAX)),
        ]);
    }
    table.print(&context.output)?;
    if prompts.iter().any(|it| it["held"] == true) {
        let id = &row.session_id;
        context.output.print_note(&format!(
            "the daemon stopped before the held prompts ran; run them with `jackfield queue {id} --run`"
        ));
    }
    Ok(())
}

impl QueueCommand {
    fn withdraw_prompt(
        &self,
        context: &CommandContext,
        conn: &mut CommandConnection,
        row: &SessionRow,
        number: u64,
    ) -> Result<(), CommandError> {
        let params = json!({ "sessionId": row.session_id, "prompt": number });
        conn.call_hub(Method::ControlWithdraw, &params, "the daemon to withdraw the prompt")?;
        let note = format!("withdrew prompt {number} of {}", row.session_id);
        let members = json!({ "sessionId": row.session_id, "withdrawn": number });
        self.print_result(context, &note, &members)
    }

    fn move_prompt(
        &self,
        context: &CommandContext,
        conn: &mut CommandConnection,
        row: &SessionRow,
        number: u64,
    ) -> Result<(), CommandError> {
        let id = &row.session_id;
        let params = json!({ "sessionId": id, "prompt": number, "before": self.before });
        conn.call_hub(Method::ControlMove, &params, "the daemon to move the prompt")?;
        let place = match self.before {
            Some(before) => format!("before prompt {before}"),
            None => "to the end of the queue".to_owned(),
        };
        let members = json!({ "sessionId": id, "moved": number, "before": self.before });
        self.print_result(context, &format!("moved prompt {number} of {id} {place}"), &members)
    }

    /// Runs the held prompts. If the agent has to be restarted, it gets the caller's environment.
    fn run_held_prompts(
        &self,
        context: &CommandContext,
        conn: &mut CommandConnection,
        row: &SessionRow,
    ) -> Result<(), CommandError> {
        prepare_agent_restart(conn, row)?;
        let id = &row.session_id;
        let params = json!({ "sessionId": id });
        let waited_for = "the daemon to release the held prompts";
        let answer = conn.call_hub(Method::ControlRelease, &params, waited_for)?;
        let note = match answer["released"].as_array().map_or(0, Vec::len) {
            0 => format!("no held prompts in {id}"),
            count => {
                let prompts = format_count(count, "prompt");
                format!("running {prompts}; follow with `jackfield attach {id}`")
            }
        };
        let members = json!({ "sessionId": id, "released": answer["released"] });
        self.print_result(context, &note, &members)
    }

    /// Prints what was done.
    fn print_result(
        &self,
        context: &CommandContext,
        note: &str,
        members: &Value,
    ) -> Result<(), CommandError> {
        if self.format == OutputFormat::Json {
            return print_json_document(&context.output, members);
        }
        context.output.print_note(note);
        Ok(())
    }
}
