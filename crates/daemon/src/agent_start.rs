//! Starts the processes of agents, each in its sandbox, and releases what belongs to a process when it has ended.

use crate::{
    agent_registry::{ProcessLimits, ResolvedVariant},
    effects::HubEffects,
    environment,
    sandbox::LaunchNeeds,
    spawn_context::SpawnContext,
};
use jackfield_agents::{LaunchCommand, StdoutFormat};
use jackfield_hub::{AgentId, Exit, Input, Launch};
use jackfield_protocol::chain;
use std::{path::PathBuf, sync::Arc};

impl HubEffects {
    pub(crate) fn spawn_agent(&mut self, agent: AgentId, launch: &Launch) {
        let mut request = launch.sandbox.clone();
        if request.profile.is_none() {
            let settings = self.agent_registry.settings();
            request.profile = settings.sandbox_of(&launch.name).map(Into::into);
        }
        let profile = match self.sandboxes.find_profile(&request) {
            Ok(profile) => profile,
            Err(why) => return self.on_spawn_failed(agent, why, false),
        };
        let limits = if profile.is_some() { ProcessLimits::Sandbox } else { ProcessLimits::None };
        let process_env = environment::process_env();
        let resolved = self.agent_registry.resolve_launch(launch, limits, process_env);
        let mut launch_command = match resolved {
            Ok(launch_command) => launch_command,
            Err(why) => return self.on_spawn_failed(agent, why, false),
        };
        // The process is started before a session names a directory.
        let has_no_cwd = launch.cwd.as_os_str().is_empty();
        let cwd = if has_no_cwd { PathBuf::from("/") } else { launch.cwd.clone() };
        let (of_agent, env_rules) = self.agent_registry.sandbox_needs(&launch.name);
        if limits == ProcessLimits::Sandbox {
            launch_command.set_variables(&of_agent.env);
        }
        let needs = LaunchNeeds {
            cwd: &launch.cwd,
            argv: &launch_command.argv,
            env: &launch_command.env,
            has_client_env: launch_command.has_client_env,
            layer: self.agent_registry.settings().sandbox_layer,
            env_rules: &env_rules,
            of_agent: &of_agent,
        };
        let prepared =
            profile.map(|it| self.sandboxes.prepare(agent, it, &request.directories, &needs));
        let sandbox = match prepared.transpose() {
            Ok(sandbox) => sandbox.map(Arc::new),
            Err(why) => return self.on_spawn_failed(agent, why, false),
        };
        self.served.on_spawned(agent, &launch_command.env, sandbox.clone());
        if launch_command.never_asks {
            self.inputs.push_back(Input::AgentNeverAsks { agent });
        }
        if let Some(ResolvedVariant { name, next }) = launch_command.variant {
            self.inputs.push_back(Input::AgentVariantChosen { agent, variant: name, next });
        }
        let mut argv = launch_command.argv;
        if let Some(sandbox) = sandbox {
            argv = sandbox.wrap_command(argv);
            let sandbox = Arc::new(sandbox.to_event());
            self.inputs.push_back(Input::AgentSandboxed { agent, sandbox });
        }
        let stdout_format = StdoutFormat::Frames;
        let command = LaunchCommand { argv, cwd, env: launch_command.env, stdout_format };
        let SpawnContext { guard, ledger, mark } = &self.spawn_context;
        let mark = format!("{mark}-{}", agent.0);
        let events = self.agent_events.clone();
        match jackfield_agents::spawn_agent(guard, &command, &mark, ledger, events, agent) {
            Ok(handle) => {
                self.counters.on_spawn(agent);
                self.agents.insert(agent, handle);
            }
            Err(error) => match error.shortage() {
                Some(hint) => {
                    self.on_spawn_failed(agent, format!("{}; {hint}", chain(&error)), true);
                }
                None => self.on_spawn_failed(agent, chain(&error), false),
            },
        }
    }

    /// The process of an agent has ended, or could not be started.
    pub(crate) fn on_agent_gone(&mut self, agent: AgentId) {
        self.served.on_gone(agent);
        self.sandboxes.on_gone(agent);
        self.host_asks.on_gone(agent);
    }

    fn on_spawn_failed(&mut self, agent: AgentId, status: String, shortage: bool) {
        self.on_agent_gone(agent);
        let exit = Exit { status, stderr: String::new(), started: false, shortage };
        self.inputs.push_back(Input::AgentGone { agent, exit });
    }
}
