//! `jackfield models probe`: whether a model server will do for our agent.

use crate::{
    app::Desk,
    env,
    exit::Exit,
    out::{Cell, Format, NAME, Table, document},
    report::Failure,
};
use clap::Args;
use jackfield_chat_agent::{ChatSettings, ModelFitness, ProbeReport, ToolCallSupport};
use serde_json::{Value, json};

/// Ask a Chat Completions server what it can do
///
/// Two short questions are put to the model: whether words and calls are streamed, how fast, and
/// how many tokens it really sees at once. The last line says whether it will do for `jackfield
/// agent`, and how to fix what will not. The key is `OPENAI_API_KEY`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield models probe http://localhost:11434
  $ jackfield models probe https://api.openai.com/v1 --model gpt-4o
  $ jackfield models probe http://localhost:8000/v1 --format json | jq .window")]
pub(crate) struct Probe {
    /// Where the server is; `/v1` is added where there is no path
    url: String,

    /// Which of its models; the first of its list if it does not have `OPENAI_MODEL`
    #[arg(long, env = env::MODEL, hide_env_values = true)]
    model: Option<String>,

    /// How to print what was found; `quiet` prints the verdict
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: Format,
}

impl Probe {
    pub(crate) fn run(self, desk: &Desk) -> Result<(), Failure> {
        let (mut settings, _) = ChatSettings::from_variables(|name| std::env::var(name).ok());
        settings.base_url = self.url;
        let what = "the model server cannot be used";
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Failure::local(what, error))?;
        let report = runtime
            .block_on(jackfield_chat_agent::probe_model_server(&settings, self.model.as_deref()));
        let report = report.map_err(|why| Failure::local(what, why))?;
        match self.format {
            Format::Json => document(&desk.out, &to_json(&report))?,
            Format::Quiet => desk.out.line(&report.verdict())?,
            Format::Text => print(desk, &report)?,
        }
        if report.fitness == ModelFitness::Unfit {
            Err(Failure::Told(Exit::Failed))
        } else {
            Ok(())
        }
    }
}

fn print(desk: &Desk, report: &ProbeReport) -> Result<(), Failure> {
    let mut table = Table::new(&["PROBE", "FOUND"]);
    let yes = |it: bool| if it { "yes" } else { "no" }.to_owned();
    let window = match (report.window, report.window_from) {
        (Some(tokens), Some(from)) => format!("{tokens} tokens (told by {from})"),
        _ => "nobody tells".to_owned(),
    };
    let calls = match report.call_support {
        ToolCallSupport::Native => "yes",
        ToolCallSupport::Text => "as text, which is read",
        ToolCallSupport::Garbled => "as text that cannot be read",
        ToolCallSupport::Refused => "refused by the server",
        ToolCallSupport::None => "none, though it was asked to",
    };
    let rate = report.tokens_per_second.map(|it| format!("{it:.1} tokens a second"));
    for (name, found) in [
        ("server", report.url.clone()),
        ("model", report.model.clone()),
        ("window", window),
        ("streaming", yes(report.streams_text)),
        ("tool calls", calls.to_owned()),
        ("streamed calls", yes(report.streams_calls)),
        ("parallel calls", yes(report.parallel_calls)),
        ("thoughts apart", yes(report.separates_reasoning)),
        ("first token", format!("{} ms", report.first_token_ms)),
        ("speed", rate.unwrap_or_else(|| "cannot be told".to_owned())),
    ] {
        table.row(vec![Cell::styled(name, NAME), Cell::new(found)]);
    }
    table.print(&desk.out)?;
    desk.out.line("")?;
    desk.out.line(&report.verdict())?;
    report.findings.iter().try_for_each(|it| desk.out.line(&format!("  fix: {}", it.fix)))
}

fn to_json(report: &ProbeReport) -> Value {
    let mut json = json!(report);
    json["verdict"] = json!(report.verdict());
    json
}
