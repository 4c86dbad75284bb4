//! `jackfield models probe`: checks whether a model server is suitable for the built-in agent.

use crate::{
    context::CommandContext,
    env,
    exit::CliExitCode,
    out::{NAME, OutputFormat, TableCell, TextTable, print_json_document},
    report::CommandError,
};
use clap::Args;
use jackfield_chat_agent::{ChatSettings, ModelFitness, ProbeReport, ToolCallSupport};
use serde_json::{Value, json};

/// Probe the capabilities of a Chat Completions server
///
/// Two short requests show whether text and tool calls are streamed, how fast, and how large the
/// context window really is. The last lines show whether the model is suitable for `jackfield agent`,
/// and how to fix problems. The key is `OPENAI_API_KEY`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield models probe http://localhost:11434
  $ jackfield models probe https://api.openai.com/v1 --model gpt-4o
  $ jackfield models probe http://localhost:8000/v1 --format json | jq .window")]
pub(crate) struct ProbeServerCommand {
    /// The URL of the server; `/v1` is added if it has no path
    url: String,

    /// The model [default: `OPENAI_MODEL` if the server has it, or else the server's first model]
    #[arg(long, env = env::MODEL, hide_env_values = true)]
    model: Option<String>,

    /// How to print the results; `quiet` prints the verdict
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: OutputFormat,
}

impl ProbeServerCommand {
    pub(crate) fn run(self, context: &CommandContext) -> Result<(), CommandError> {
        let (mut settings, _) = ChatSettings::from_variables(|name| std::env::var(name).ok());
        settings.base_url = self.url;
        let what = "cannot use the model server";
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| CommandError::local(what, error))?;
        let report = runtime
            .block_on(jackfield_chat_agent::probe_model_server(&settings, self.model.as_deref()));
        let report = report.map_err(|why| CommandError::local(what, why))?;
        match self.format {
            OutputFormat::Json => print_json_document(&context.output, &to_json(&report))?,
            OutputFormat::Quiet => context.output.print_line(&report.verdict())?,
            OutputFormat::Text => print_report(context, &report)?,
        }
        if report.fitness == ModelFitness::Unfit {
            Err(CommandError::AlreadyReported(CliExitCode::Failed))
        } else {
            Ok(())
        }
    }
}

fn print_report(context: &CommandContext, report: &ProbeReport) -> Result<(), CommandError> {
    let mut table = TextTable::new(&["PROBE", "RESULT"]);
    let yes = |it: bool| if it { "yes" } else { "no" }.to_owned();
    let window = match (report.window, report.window_from) {
        (Some(tokens), Some(from)) => format!("{tokens} tokens (from {from})"),
        _ => "unknown".to_owned(),
    };
    let calls = match report.call_support {
        ToolCallSupport::Native => "yes",
        ToolCallSupport::Text => "as text, which is parsed",
        ToolCallSupport::Garbled => "as text that cannot be parsed",
        ToolCallSupport::Refused => "refused by the server",
        ToolCallSupport::None => "none, although requested",
    };
    let rate = report.tokens_per_second.map(|it| format!("{it:.1} tokens per second"));
    for (name, result) in [
        ("server", report.url.clone()),
        ("model", report.model.clone()),
        ("window", window),
        ("streaming", yes(report.streams_text)),
        ("tool calls", calls.to_owned()),
        ("streamed calls", yes(report.streams_calls)),
        ("parallel calls", yes(report.parallel_calls)),
        ("separate reasoning", yes(report.separates_reasoning)),
        ("first token", format!("{} ms", report.first_token_ms)),
        ("speed", rate.unwrap_or_else(|| "unknown".to_owned())),
    ] {
        table.add_row(vec![TableCell::styled(name, NAME), TableCell::new(result)]);
    }
    table.print(&context.output)?;
    context.output.print_line("")?;
    context.output.print_line(&report.verdict())?;
    report
        .findings
        .iter()
        .try_for_each(|it| context.output.print_line(&format!("  fix: {}", it.fix)))
}

fn to_json(report: &ProbeReport) -> Value {
    let mut json = json!(report);
    json["verdict"] = json!(report.verdict());
    json
}
