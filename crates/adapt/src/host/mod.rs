//! An adapter on a connection, with real programs: the I/O around the value.
//!
//! Every program runs under a guard of its own, so that a cancelled turn leaves nothing of its tree
//! behind, and neither does an adapter that is killed.

mod notes;

use crate::{Adapter, Dialect, Output, Program, Settings};
use bytes::Bytes;
use jackfield_agents::{
    AgentEvent, AgentHandle, Exit, GuardCommand, Launch, Ledger, Speaks, Stop, spawn,
};
use jackfield_clients::{ClientEvent, ConnHandle, Stream, open};
use jackfield_wire::{FRAME_BYTES_MAX, FRAME_ROOM_BYTES, Fault, Frame, chain};
use notes::Notes;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;
use tokio::sync::mpsc;

/// Events of programs and of the client that may wait here; behind them the pipes are not read.
const MAIL_MAX: usize = 64;
/// A client that is so far behind makes its programs wait.
const BEHIND_BYTES: usize = 4 << 20;

/// What an adapter needs of this machine.
pub struct Host {
    pub settings: Settings,
    pub make: fn() -> Box<dyn Dialect>,
    /// The program that is adapted.
    pub program: PathBuf,
    /// The whole environment of the program.
    pub env: Vec<(String, String)>,
    pub guard: GuardCommand,
    /// Where notes about sessions are kept.
    pub notes: PathBuf,
}

/// Serves one client until it is gone and every program has ended.
pub async fn serve(host: Host, stream: Stream) {
    let (client_events, mut client_mail) = mpsc::channel(MAIL_MAX);
    let (program_events, mut program_mail) = mpsc::channel(MAIL_MAX);
    let client = open(stream, (), client_events, FRAME_BYTES_MAX + FRAME_ROOM_BYTES);
    let Host { settings, make, program, env, guard, notes } = host;
    let scratch = settings.scratch.clone();
    let mut desk = Desk {
        adapter: Adapter::new(settings, make),
        notes: Notes::new(notes),
        client,
        programs: BTreeMap::new(),
        program,
        env,
        guard,
        events: program_events,
        paused: false,
        client_left: false,
    };
    while !desk.client_left || !desk.programs.is_empty() {
        tokio::select! {
            Some(((), event)) = client_mail.recv() => desk.on_client(event),
            Some((program, event)) = program_mail.recv() => desk.on_program(program, event),
            else => break,
        }
        desk.carry_out();
    }
    // Empty by now, or never made.
    let _ = std::fs::remove_dir(scratch);
    desk.client.close_after_flush();
    // The last words are written by the connection's task.
    while client_mail.recv().await.is_some() {}
}

struct Desk {
    adapter: Adapter,
    notes: Notes,
    client: ConnHandle,
    programs: BTreeMap<Program, Running>,
    program: PathBuf,
    env: Vec<(String, String)>,
    guard: GuardCommand,
    events: mpsc::Sender<(Program, AgentEvent)>,
    /// Programs wait because the client does not read.
    paused: bool,
    client_left: bool,
}

struct Running {
    handle: AgentHandle,
    /// What was handed over as files.
    files: Vec<String>,
    /// When its last turn began.
    began: Instant,
}

impl Desk {
    fn on_client(&mut self, event: ClientEvent) {
        match event {
            ClientEvent::Frames(frames) => {
                for frame in frames {
                    // A frame is JSON by its making.
                    if let Ok(value) = serde_json::from_str(frame.text()) {
                        self.adapter.on_client(&value, &mut self.notes);
                    }
                }
            }
            ClientEvent::Babbled(fault) => self.babbled(&fault),
            ClientEvent::Opened | ClientEvent::Wrote(_) => {}
            ClientEvent::Finished | ClientEvent::Gone => {
                if !self.client_left {
                    self.client_left = true;
                    self.adapter.on_client_gone();
                }
            }
        }
    }

    fn babbled(&mut self, fault: &Fault) {
        self.client.send(Frame::error_for("null", fault).bytes().clone());
    }

    fn on_program(&mut self, program: Program, event: AgentEvent) {
        match event {
            AgentEvent::Lines(lines) => {
                for line in lines {
                    let line = String::from_utf8_lossy(&line);
                    self.adapter.on_line(program, &line, &mut self.notes);
                }
            }
            AgentEvent::Gone(exit) => self.adapter.on_end(program, &exit, &mut self.notes),
            AgentEvent::Swept { .. } => {
                for file in self.programs.remove(&program).into_iter().flat_map(|it| it.files) {
                    // It was ours alone; if it is gone, so much the better.
                    let _ = std::fs::remove_file(file);
                }
            }
            AgentEvent::Started { .. }
            | AgentEvent::Frames(_)
            | AgentEvent::Output(_)
            | AgentEvent::Noise(_)
            | AgentEvent::Oversized(_)
            | AgentEvent::Wrote { .. } => {}
        }
    }

    fn carry_out(&mut self) {
        while let Some(output) = self.adapter.take_output() {
            match output {
                Output::ToClient(frame) => self.client.send(Bytes::from(frame.to_string())),
                Output::Start { program, argv, cwd, files } => {
                    self.start(program, argv, cwd, files);
                }
                Output::Write { program, line } => self.write(program, &line),
                Output::CloseStdin { program } => {
                    self.with(program, |running| running.handle.close_stdin());
                }
                Output::Began { program } => {
                    self.with(program, |running| running.began = Instant::now());
                }
                Output::EndTools { program } => self.with(program, |running| {
                    running.handle.end_tools(running.began.elapsed());
                }),
                Output::Finish { program } => {
                    self.with(program, |running| running.handle.stop(Stop::Polite));
                }
                Output::Stop { program } => {
                    self.with(program, |running| running.handle.stop(Stop::Soon));
                }
            }
        }
        self.client.flush();
        self.pace();
    }

    /// Whoever does not read makes everyone before it wait: nothing piles up here.
    fn pace(&mut self) {
        let behind = BEHIND_BYTES < self.client.queued_bytes();
        if behind != self.paused {
            self.paused = behind;
            for running in self.programs.values_mut() {
                if behind { running.handle.pause() } else { running.handle.resume() }
            }
        }
    }

    fn start(
        &mut self,
        program: Program,
        args: Vec<String>,
        cwd: String,
        files: Vec<(String, String)>,
    ) {
        if let Err(why) = self.try_start(program, args, cwd, files) {
            let exit = Exit { failed_to_start: Some(why), ..Exit::default() };
            self.adapter.on_end(program, &exit, &mut self.notes);
        }
    }

    fn try_start(
        &mut self,
        program: Program,
        args: Vec<String>,
        cwd: String,
        files: Vec<(String, String)>,
    ) -> Result<(), String> {
        for (path, text) in &files {
            jackfield_private_files::replace_file(path.as_ref(), text.as_bytes())
                .map_err(|error| format!("failed to write `{path}` for it: {error}"))?;
        }
        let program_path = self.program.to_string_lossy().into_owned();
        let command = std::iter::once(program_path).chain(args).collect();
        let launch =
            Launch { argv: command, cwd: cwd.into(), env: self.env.clone(), speaks: Speaks::Lines };
        let mark = format!("adapt-{}-{program}", self.notes.tag());
        let events = self.events.clone();
        let handle = spawn(&self.guard, &launch, &mark, &Ledger::nowhere(), events, program)
            .map_err(|error| chain(&error))?;
        let files = files.into_iter().map(|(path, _)| path).collect();
        self.programs.insert(program, Running { handle, files, began: Instant::now() });
        Ok(())
    }

    fn write(&mut self, program: Program, text: &str) {
        self.with(program, |running| {
            for line in text.split('\n') {
                if running.handle.send(Bytes::copy_from_slice(line.as_bytes())).is_err() {
                    // It has not read for a long time and will not miss one more line.
                    running.handle.stop(Stop::Now);
                    return;
                }
            }
            running.handle.flush();
        });
    }

    fn with(&mut self, program: Program, act: impl FnOnce(&mut Running)) {
        if let Some(running) = self.programs.get_mut(&program) {
            act(running);
        }
    }
}
