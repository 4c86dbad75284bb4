//! Runs an adapter on a connection with real programs.
//!
//! Every program runs under its own guard. The guard stops its whole process tree when a turn is
//! cancelled or the adapter is killed.

mod session_files;
mod utf8_chunks;

use crate::{Adapter, AdapterOutput, AdapterSettings, DialectFactory, ProgramId};
use bytes::Bytes;
use jackfield_agents::{
    AgentExit, AgentHandle, AgentProcessEvent, GuardCommand, LaunchCommand, ProcessLedger,
    StdoutFormat, StopUrgency, spawn_agent,
};
use jackfield_protocol::{FRAME_BYTES_MAX, FRAME_ROOM_BYTES, Fault, Frame, chain};
use jackfield_transport::{ClientEvent, ClientHandle, ClientStream, open_connection};
use session_files::SessionFiles;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;
use tokio::sync::mpsc;
use utf8_chunks::Utf8Chunks;

/// The capacity of each event queue. While a queue is full, its pipes are not read.
const QUEUE_LEN: usize = 64;
/// If more bytes than this wait for the client, the programs are paused.
const PAUSE_BYTES: usize = 4 << 20;

/// The local resources of an adapter.
pub struct HostConfig {
    pub settings: AdapterSettings,
    pub new_dialect: DialectFactory,
    /// The program that is adapted.
    pub program: PathBuf,
    /// The whole environment of the program.
    pub env: Vec<(String, String)>,
    pub guard: GuardCommand,
    /// The directory of the session records.
    pub session_dir: PathBuf,
}

/// Serves one client until it has disconnected and every program has exited.
pub async fn serve_client(config: HostConfig, stream: ClientStream) {
    let (client_events, mut client_queue) = mpsc::channel(QUEUE_LEN);
    let (program_events, mut program_queue) = mpsc::channel(QUEUE_LEN);
    let client = open_connection(stream, (), client_events, FRAME_BYTES_MAX + FRAME_ROOM_BYTES);
    let HostConfig { settings, new_dialect, program, env, guard, session_dir } = config;
    let scratch = settings.scratch.clone();
    let mut host = AdapterHost {
        adapter: Adapter::new(settings, new_dialect),
        session_files: SessionFiles::new(session_dir),
        client,
        programs: BTreeMap::new(),
        program,
        env,
        guard,
        events: program_events,
        is_paused: false,
        is_client_gone: false,
    };
    while !host.is_client_gone || !host.programs.is_empty() {
        tokio::select! {
            Some(((), event)) = client_queue.recv() => host.on_client(event),
            Some((program, event)) = program_queue.recv() => host.on_program(program, event),
            else => break,
        }
        host.apply_outputs();
    }
    // The directory is empty now, or was never created.
    let _result = std::fs::remove_dir(scratch);
    host.client.close_after_flush();
    // The connection's task still writes the last frames.
    while client_queue.recv().await.is_some() {}
}

struct AdapterHost {
    adapter: Adapter,
    session_files: SessionFiles,
    client: ClientHandle,
    programs: BTreeMap<ProgramId, RunningProgram>,
    program: PathBuf,
    env: Vec<(String, String)>,
    guard: GuardCommand,
    events: mpsc::Sender<(ProgramId, AgentProcessEvent)>,
    /// Whether the programs are paused because the client does not read.
    is_paused: bool,
    is_client_gone: bool,
}

struct RunningProgram {
    handle: AgentHandle,
    /// The files that were written for it.
    files: Vec<String>,
    /// When its last turn started.
    turn_started: Instant,
    /// The output of a program that prints text.
    output: Utf8Chunks,
}

impl AdapterHost {
    fn on_client(&mut self, event: ClientEvent) {
        match event {
            ClientEvent::Frames(frames) => {
                for frame in frames {
                    // A frame is always valid JSON.
                    if let Ok(value) = serde_json::from_str(frame.text()) {
                        self.adapter.on_client_frame(&value, &mut self.session_files);
                    }
                }
            }
            ClientEvent::InvalidFrame(fault) => self.send_fault(&fault),
            ClientEvent::Opened | ClientEvent::Wrote(_) => {}
            ClientEvent::Finished | ClientEvent::Gone => {
                if !self.is_client_gone {
                    self.is_client_gone = true;
                    self.adapter.on_client_disconnected();
                }
            }
        }
    }

    fn send_fault(&mut self, fault: &Fault) {
        self.client.send(Frame::error_for("null", fault).bytes().clone());
    }

    fn on_program(&mut self, program: ProgramId, event: AgentProcessEvent) {
        match event {
            AgentProcessEvent::Lines(lines) => {
                for line in lines {
                    let line = String::from_utf8_lossy(&line);
                    self.adapter.on_line(program, &line, &mut self.session_files);
                }
            }
            AgentProcessEvent::Output(bytes) => {
                let Some(running) = self.programs.get_mut(&program) else { return };
                let text = running.output.push(&bytes);
                self.adapter.on_output(program, &text, &mut self.session_files);
            }
            AgentProcessEvent::Stderr(text) => {
                self.adapter.on_stderr(program, &text, &mut self.session_files);
            }
            AgentProcessEvent::Gone(exit) => {
                self.adapter.on_exit(program, &exit, &mut self.session_files);
            }
            AgentProcessEvent::Swept { .. } => {
                for file in self.programs.remove(&program).into_iter().flat_map(|it| it.files) {
                    // Nothing else uses the file; it may already be gone.
                    let _result = std::fs::remove_file(file);
                }
            }
            AgentProcessEvent::Started { .. }
            | AgentProcessEvent::Frames(_)
            | AgentProcessEvent::Noise(_)
            | AgentProcessEvent::Oversized(_)
            | AgentProcessEvent::Wrote { .. } => {}
        }
    }

    fn apply_outputs(&mut self) {
        while let Some(output) = self.adapter.take_output() {
            match output {
                AdapterOutput::SendToClient(frame) => {
                    self.client.send(Bytes::from(frame.to_string()));
                }
                AdapterOutput::StartProgram { program, argv, cwd, files } => {
                    self.start(program, argv, cwd, files);
                }
                AdapterOutput::WriteStdin { program, line } => self.write(program, &line),
                AdapterOutput::CloseStdin { program } => {
                    self.with_program(program, |running| running.handle.close_stdin());
                }
                AdapterOutput::MarkTurnStart { program } => {
                    self.with_program(program, |running| running.turn_started = Instant::now());
                }
                AdapterOutput::StopTools { program } => self.with_program(program, |running| {
                    running.handle.end_tools(running.turn_started.elapsed());
                }),
                AdapterOutput::FinishProgram { program } => {
                    self.with_program(program, |running| running.handle.stop(StopUrgency::Polite));
                }
                AdapterOutput::StopProgram { program } => {
                    self.with_program(program, |running| running.handle.stop(StopUrgency::Soon));
                }
            }
        }
        self.client.flush();
        self.pause_or_resume();
    }

    /// Applies backpressure: pauses the programs while the client does not read.
    fn pause_or_resume(&mut self) {
        let should_pause = PAUSE_BYTES < self.client.queued_bytes();
        if should_pause != self.is_paused {
            self.is_paused = should_pause;
            for running in self.programs.values_mut() {
                if should_pause { running.handle.pause() } else { running.handle.resume() }
            }
        }
    }

    fn start(
        &mut self,
        program: ProgramId,
        args: Vec<String>,
        cwd: String,
        files: Vec<(String, String)>,
    ) {
        if let Err(why) = self.try_start(program, args, cwd, files) {
            let exit = AgentExit { failed_to_start: Some(why), ..AgentExit::default() };
            self.adapter.on_exit(program, &exit, &mut self.session_files);
        }
    }

    fn try_start(
        &mut self,
        program: ProgramId,
        args: Vec<String>,
        cwd: String,
        files: Vec<(String, String)>,
    ) -> Result<(), String> {
        for (path, text) in &files {
            jackfield_private_files::replace_file(path.as_ref(), text.as_bytes())
                .map_err(|error| format!("failed to write `{path}`: {error}"))?;
        }
        let program_path = self.program.to_string_lossy().into_owned();
        let command = std::iter::once(program_path).chain(args).collect();
        let launch = LaunchCommand {
            argv: command,
            cwd: cwd.into(),
            env: self.env.clone(),
            stdout_format: if self.adapter.prints_text() {
                StdoutFormat::Text
            } else {
                StdoutFormat::Lines
            },
        };
        let mark = format!("adapt-{}-{program}", self.session_files.tag());
        let events = self.events.clone();
        let handle = spawn_agent(
            &self.guard,
            &launch,
            &mark,
            &ProcessLedger::without_files(),
            events,
            program,
        )
        .map_err(|error| chain(&error))?;
        let files = files.into_iter().map(|(path, _)| path).collect();
        let (turn_started, output) = (Instant::now(), Utf8Chunks::default());
        self.programs.insert(program, RunningProgram { handle, files, turn_started, output });
        Ok(())
    }

    fn write(&mut self, program: ProgramId, text: &str) {
        self.with_program(program, |running| {
            for line in text.split('\n') {
                if running.handle.send(Bytes::copy_from_slice(line.as_bytes())).is_err() {
                    // The program has not read its stdin for a long time.
                    running.handle.stop(StopUrgency::Now);
                    return;
                }
            }
            running.handle.flush();
        });
    }

    fn with_program(&mut self, program: ProgramId, action: impl FnOnce(&mut RunningProgram)) {
        if let Some(running) = self.programs.get_mut(&program) {
            action(running);
        }
    }
}
