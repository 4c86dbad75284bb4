//! `jackfield sandbox explain`: what the sandbox of a session permits, what it refused, and how to permit it.

use super::host_answers::{storage_error, stored_answers};
use super::sandbox_history::{LoggedRefusal, LoggedSandbox, RefusedAction, SandboxHistory};
use crate::{
    complete,
    context::CommandContext,
    env,
    hub::{find_session, list_sessions, read_log},
    out::{BRIGHT, DIM, OutputFormat, format_age, paint, print_json_document},
    plain_text::to_one_line,
    report::CommandError,
};
use clap::Args;
use jackfield_daemon::StoredHostAnswer;
use jackfield_events::{ConnectionRefused, ReceivedEvent, Time};
use jackfield_network_proxy::{HostPort, HostRule, HostRules, RuleDecision};
use jackfield_sandbox::{
    explanation::PathExplanation,
    plan::{NetworkPlan, PathAccess, SandboxPlan},
};
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Explain what the sandbox of a session permits and what it refused
///
/// Without a path or a host, it prints what the agent may use, and the last refusals: connections, files
/// that the agent requested, and errors in the output of tools that the sandbox causes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield sandbox explain s-7f3
  $ jackfield sandbox explain s-7f3 ~/.ssh/id_ed25519 pypi.org
  $ jackfield sandbox explain s-7f3 --format json | jq .refusals")]
pub(super) struct ExplainSandboxCommand {
    /// A name, an id, a unique prefix of an id, or a title
    #[arg(add = complete::sessions())]
    session: String,

    /// Paths and hosts to explain; a path contains `/`, a host may have a port
    what: Vec<String>,

    /// How to print it
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: OutputFormat,
}

/// An explanation of one path or host, or of one refusal.
struct RefusalExplanation {
    subject: String,
    /// What applies, and why.
    reason: String,
    /// What the agent gets, in the words that it reads.
    agent_sees: Option<String>,
    way_out: Option<String>,
}

impl ExplainSandboxCommand {
    pub(super) fn run(&self, context: &CommandContext) -> Result<(), CommandError> {
        let mut conn = context.daemon.connect("sandbox")?;
        let row = find_session(&list_sessions(&mut conn)?, &self.session)?;
        let home = std::env::home_dir().unwrap_or_else(|| PathBuf::from("/"));
        let mut history = SandboxHistory::new(&home, &row.cwd);
        read_log(&mut conn, &row.session_id, &mut |event| {
            let event = serde_json::from_str(event).unwrap_or_default();
            if let Ok(event) = ReceivedEvent::from_value(event) {
                history.add_event(&event);
            }
            Ok(())
        })?;
        let Some(sandbox) = &history.sandbox else {
            return Err(CommandError::usage(
                format!("the agent of session `{}` runs without a sandbox", row.session_id),
                "start a session with a profile: `jackfield run --sandbox workspace`, or set `sandbox` in config.toml",
            ));
        };
        let paths = context.daemon.paths();
        let own_folders = vec![paths.config.clone(), paths.state.clone(), paths.runtime.clone()];
        let answers = stored_answers(context).list().map_err(storage_error)?;
        let explainer = SandboxExplainer { sandbox, home, own_folders, answers };
        let asked = self.what.iter().map(|it| explainer.explain(it));
        let asked = asked.collect::<Result<Vec<_>, _>>()?;
        let refused: Vec<(&LoggedRefusal, RefusalExplanation)> =
            history.refusals.iter().map(|it| (it, explainer.explain_refusal(it))).collect();
        match self.format {
            OutputFormat::Json => print_json_document(
                &context.output,
                &json!({
                    "sessionId": row.session_id,
                    "profile": sandbox.profile,
                    "hosts": sandbox.hosts,
                    "plan": sandbox.plan,
                    "explained": asked.iter().map(RefusalExplanation::to_json).collect::<Vec<_>>(),
                    "refusals": refused.iter().map(|(at, it)| {
                        let mut json = it.to_json();
                        json["at"] = json!(at.at);
                        json
                    }).collect::<Vec<_>>(),
                }),
            ),
            OutputFormat::Quiet => context.output.print_line(&sandbox.profile),
            OutputFormat::Text if asked.is_empty() => {
                explainer.print_summary(context)?;
                print_refusals(context, &refused)
            }
            OutputFormat::Text => asked.iter().try_for_each(|it| it.print(context, "")),
        }
    }
}

fn print_refusals(
    context: &CommandContext,
    refused: &[(&LoggedRefusal, RefusalExplanation)],
) -> Result<(), CommandError> {
    context.output.print_line("")?;
    if refused.is_empty() {
        return context.output.print_line("Nothing was refused, as far as the log shows.");
    }
    context.output.print_line(&paint(BRIGHT, "Refused"))?;
    for (refusal, explanation) in refused {
        explanation.print(context, &describe_age(refusal.at))?;
    }
    Ok(())
}

fn forget_command(target: &HostPort) -> String {
    format!("`jackfield sandbox forget {target}`, then you are asked again")
}

fn describe_age(time: Time) -> String {
    match format_age(time.0).as_str() {
        "now" => "now".to_owned(),
        age => format!("{age} ago"),
    }
}

impl RefusalExplanation {
    fn print(&self, context: &CommandContext, age: &str) -> Result<(), CommandError> {
        let age = if age.is_empty() { String::new() } else { format!("  {}", paint(DIM, age)) };
        context.output.print_line(&format!("{}{age}", to_one_line(&self.subject, 200)))?;
        let sees = self.agent_sees.clone().unwrap_or_default();
        let way_out = self.way_out.clone().unwrap_or_default();
        let fields = [("why", &self.reason), ("agent got", &sees), ("permit", &way_out)];
        for (name, value) in fields.into_iter().filter(|it| !it.1.is_empty()) {
            let name = paint(DIM, format!("{name:<9}"));
            context.output.print_line(&format!("  {name} {}", to_one_line(value, 400)))?;
        }
        Ok(())
    }

    fn to_json(&self) -> Value {
        json!({
            "subject": self.subject,
            "why": self.reason,
            "agentSees": self.agent_sees,
            "wayOut": self.way_out,
        })
    }
}

/// Explains refusals by the plan of a process.
struct SandboxExplainer<'a> {
    sandbox: &'a LoggedSandbox,
    home: PathBuf,
    /// The folders of Jackfield, which no profile can permit.
    own_folders: Vec<PathBuf>,
    /// The current answers about hosts, of all profiles.
    answers: Vec<StoredHostAnswer>,
}

impl SandboxExplainer<'_> {
    fn plan(&self) -> &SandboxPlan {
        &self.sandbox.plan
    }

    fn explain(&self, what: &str) -> Result<RefusalExplanation, CommandError> {
        if what.contains('/') || what.starts_with('~') {
            let path = match what.strip_prefix('~') {
                Some(rest) => self.home.join(rest.trim_start_matches('/')),
                None => std::path::absolute(what).unwrap_or_else(|_| PathBuf::from(what)),
            };
            return Ok(self.explain_path(&path));
        }
        self.explain_host(what)
    }

    fn explain_path(&self, path: &Path) -> RefusalExplanation {
        let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let subject = self.short(path);
        let Some(found) = PathExplanation::of(self.plan(), &real) else {
            let reason = "the plan has no rule for it".to_owned();
            return RefusalExplanation { subject, reason, agent_sees: None, way_out: None };
        };
        let rule = self.short(&found.rule);
        let own = self.own_folders.iter().find(|it| real.starts_with(it));
        let reason = match (found.access, own) {
            (PathAccess::Hidden, Some(own)) => {
                format!("hidden: `{}` belongs to Jackfield", self.short(own))
            }
            (PathAccess::Hidden, None) => {
                format!("hidden, because profile `{}` hides `{rule}`", self.sandbox.profile)
            }
            (PathAccess::ReadOnly, _) => {
                format!("can be read and not changed, by the rule for `{rule}`")
            }
            (PathAccess::Writable, _) => {
                format!("can be read and changed, by the rule for `{rule}`")
            }
            (PathAccess::Temporary, _) => {
                format!("`{rule}` is an empty directory inside of the sandbox, deleted at its end")
            }
        };
        let agent_sees = match (found.read_error, found.write_error) {
            (Some(read), _) => Some(format!("{read:?}")),
            (None, Some(write)) => Some(format!("{write:?} when it writes")),
            (None, None) => None,
        };
        let way_out = match found.access {
            _ if own.is_some() => Some("no profile can permit this".to_owned()),
            PathAccess::Hidden => Some(self.profile_entry(&format!("read = [\"{subject}\"]"))),
            PathAccess::ReadOnly => Some(self.profile_entry(&format!("write = [\"{subject}\"]"))),
            PathAccess::Writable | PathAccess::Temporary => None,
        };
        RefusalExplanation { subject, reason, agent_sees, way_out }
    }

    fn explain_host(&self, host: &str) -> Result<RefusalExplanation, CommandError> {
        let invalid = |it: &dyn std::error::Error| {
            CommandError::usage(
                format!("`{host}` is neither a path nor a host: {}", jackfield_protocol::chain(it)),
                "write a path with a `/`, or a host such as `pypi.org` or `pypi.org:8443`",
            )
        };
        let target = HostPort::parse(host, Some(443)).map_err(|it| invalid(&it))?;
        let subject = target.to_string();
        let entry = self.profile_entry(&format!("network = {{ hosts = [\"{host}\"] }}"));
        let (reason, way_out) = match self.plan().network {
            NetworkPlan::All => ("allowed: the network is not limited".to_owned(), None),
            NetworkPlan::None => {
                ("refused: the profile permits no network".to_owned(), Some(entry))
            }
            NetworkPlan::Proxy { .. } => self.explain_listed_host(&target, entry),
        };
        Ok(RefusalExplanation { subject, reason, agent_sees: None, way_out })
    }

    /// Why a proxy allows or refuses a host, and how to change it. `entry` would allow it.
    fn explain_listed_host(&self, target: &HostPort, entry: String) -> (String, Option<String>) {
        let patterns = self.sandbox.hosts.iter().filter_map(|it| it.parse().ok());
        let allowed = patterns.map(|pattern| HostRule { pattern, private: false });
        let rules = HostRules { allowed: allowed.collect(), refused: Vec::new() };
        let reason = match (rules.decide(target), self.stored_answer(target)) {
            (RuleDecision::Allowed(rule), _) => {
                return (format!("allowed by `{}`", rule.pattern), None);
            }
            (RuleDecision::UnlistedName, Some(allowed)) => {
                let effect = if allowed { "allowed" } else { "refused" };
                let reason = format!("{effect}: you answered so for all agents with this profile");
                return (reason, Some(forget_command(target)));
            }
            (RuleDecision::UnlistedName, None) => {
                "no rule allows it: you are asked when the agent connects, unless the profile refuses it"
            }
            _ => "refused: no rule names this address",
        };
        (reason.to_owned(), Some(entry))
    }

    /// Whether the user has allowed a host for all processes of the profile.
    fn stored_answer(&self, target: &HostPort) -> Option<bool> {
        let (profile, host) = (&self.sandbox.profile, target.host.to_string());
        let answer = self.answers.iter().find(|it| it.is_about(profile, &host, target.port));
        answer.map(|it| it.allowed)
    }

    fn explain_refusal(&self, refusal: &LoggedRefusal) -> RefusalExplanation {
        match &refusal.what {
            RefusedAction::Connection(refused) => self.explain_connection(refused),
            RefusedAction::Request { method, path, why } => RefusalExplanation {
                subject: format!("{method} {}", self.short(path)),
                agent_sees: Some(why.clone()),
                ..self.explain_path(path)
            },
            RefusedAction::Output { line, path } => {
                RefusalExplanation { agent_sees: Some(line.clone()), ..self.explain_path(path) }
            }
        }
    }

    fn explain_connection(&self, refused: &ConnectionRefused) -> RefusalExplanation {
        let ConnectionRefused { why, way_out, .. } = refused;
        let destination = refused.destination();
        let target = HostPort::parse(&destination, None).ok();
        let is_answered = target.as_ref().and_then(|it| self.stored_answer(it)) == Some(false);
        let way_to_permit = match target {
            Some(target) if is_answered => forget_command(&target),
            _ if why.starts_with("the rule") => self.profile_entry("remove the host from `refuse`"),
            _ => self.profile_entry(&format!("network = {{ hosts = [\"{destination}\"] }}")),
        };
        RefusalExplanation {
            subject: format!("connection to {destination}"),
            reason: why.to_string(),
            agent_sees: Some(format!("403 Host refused by the sandbox; {way_out}")),
            way_out: Some(way_to_permit),
        }
    }

    fn profile_entry(&self, entry: &str) -> String {
        format!("{entry} in [sandbox.{}] of policy.toml", self.sandbox.profile)
    }

    fn print_summary(&self, context: &CommandContext) -> Result<(), CommandError> {
        let plan = self.plan();
        let paths = |access: PathAccess| {
            let of_access = plan.paths.iter().filter(|it| it.access == access);
            of_access.map(|it| self.short(&it.path)).collect::<Vec<_>>().join(" ")
        };
        let network = match &plan.network {
            NetworkPlan::None => "none".to_owned(),
            NetworkPlan::All => "not limited".to_owned(),
            NetworkPlan::Proxy { .. } if self.sandbox.hosts.is_empty() => {
                "you are asked about each host".to_owned()
            }
            NetworkPlan::Proxy { .. } => {
                format!("{}; you are asked about others", self.sandbox.hosts.join(" "))
            }
        };
        let fields = [
            ("profile", self.sandbox.profile.clone()),
            ("layer", plan.layer.to_string()),
            ("started", describe_age(self.sandbox.at)),
            ("writes", paths(PathAccess::Writable)),
            ("reads", paths(PathAccess::ReadOnly)),
            ("hidden", paths(PathAccess::Hidden)),
            ("temporary", paths(PathAccess::Temporary)),
            ("network", network),
            ("variables", plan.env.join(" ")),
        ];
        for (name, value) in fields.iter().filter(|it| !it.1.is_empty()) {
            context.output.print_line(&format!("{} {value}", paint(DIM, format!("{name:<10}"))))?;
        }
        context
            .output
            .print_note("of two entries for a file, the one with the longer path applies");
        Ok(())
    }

    /// With `~` for the home directory.
    fn short(&self, path: &Path) -> String {
        match path.strip_prefix(&self.home) {
            Ok(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
            Ok(rest) => format!("~/{}", rest.display()),
            Err(_) => path.display().to_string(),
        }
    }
}
