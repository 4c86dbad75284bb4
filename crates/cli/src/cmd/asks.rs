//! `jackfield asks`: lists the open requests of all sessions.

use super::sessions::{format_time, shorten_id};
use crate::{
    context::CommandContext,
    env,
    hub::{list_sessions, unique_prefix_length},
    out::{BRIGHT, DIM, OutputFormat, paint, print_json_document},
    report::CommandError,
    requests::{OpenRequest, list_open_requests},
};
use clap::Args;
use serde_json::{Value, json};

/// List open requests of agents
///
/// An agent asks before it uses a tool that needs permission. Every attached client receives the
/// request, and the first answer wins. Without a client the request stays open.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield asks
  $ jackfield asks --format json | jq -r '.asks[] | \"\\(.sessionId):\\(.ask) \\(.what)\"'
  $ jackfield answer s-7f3 y")]
pub(crate) struct AsksCommand {
    /// How to print the list; `quiet` prints SESSION:N, which `answer` accepts
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: OutputFormat,
}

const NO_REQUESTS: &str = "no open asks; when an agent needs permission, its ask is listed here until \
                           an attached client or `jackfield answer` answers it";

impl AsksCommand {
    pub(crate) fn run(self, context: &CommandContext) -> Result<(), CommandError> {
        // No agent runs without a daemon, so there is no need to start one.
        let Some(mut conn) = context.daemon.connect_if_running("asks")? else {
            return self.print_requests(context, &[], usize::MAX);
        };
        let mut requests = list_open_requests(&mut conn)?;
        for request in requests.iter_mut().filter(|it| it.needs_title()) {
            request.find_title(context.daemon.connect("asks")?)?;
        }
        let id_length = unique_prefix_length(&list_sessions(&mut conn)?);
        self.print_requests(context, &requests, id_length)
    }

    fn print_requests(
        &self,
        context: &CommandContext,
        requests: &[OpenRequest],
        id_length: usize,
    ) -> Result<(), CommandError> {
        match self.format {
            OutputFormat::Json => {
                let rows: Vec<Value> = requests.iter().map(OpenRequest::to_json).collect();
                print_json_document(&context.output, &json!({ "asks": rows }))
            }
            OutputFormat::Quiet => requests.iter().try_for_each(|it| {
                context.output.print_line(&format!("{}:{}", it.session_id, it.number))
            }),
            OutputFormat::Text if requests.is_empty() => {
                context.output.print_note(NO_REQUESTS);
                Ok(())
            }
            OutputFormat::Text => {
                requests.iter().try_for_each(|it| print_request(context, it, id_length))
            }
        }
    }
}

/// Prints the address, the age and the question of a request. The line is never truncated, so that all options are visible.
fn print_request(
    context: &CommandContext,
    request: &OpenRequest,
    id_length: usize,
) -> Result<(), CommandError> {
    let address =
        format!("{}:{}", shorten_id(context, &request.session_id, id_length), request.number);
    let since = format_time(context, &request.since);
    let form = if request.is_form { "  (form: answer with --json)" } else { "" };
    context.output.print_line(&format!(
        "{}  {}  {}{form}",
        paint(BRIGHT, address),
        paint(DIM, since),
        request.permission.format_question(&request.agent)
    ))
}
