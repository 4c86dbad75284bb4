//! Derives from the results of a probe whether the model is suitable, and how to fix what is not.

use super::{ProbeReport, ToolCallSupport, server_kind::ServerKind};
use serde::Serialize;

/// The system prompt, the tools and two files do not fit into less.
const WINDOW_MIN: u64 = 8192;
/// A longer task fits into this.
const WINDOW_GOOD: u64 = 32_768;
/// With a slower model, a user waits for minutes.
const TOKENS_PER_SECOND_MIN: f64 = 5.0;

/// Whether the model is suitable for the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelFitness {
    Good,
    /// It works, with restrictions.
    Usable,
    Unfit,
}

/// A property that does not meet the needs of the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProbeFinding {
    #[serde(rename = "what")]
    pub problem: String,
    /// The exact command or setting.
    pub fix: String,
}

impl ProbeReport {
    /// Returns one line that says whether the model is suitable, and why.
    pub fn verdict(&self) -> String {
        let model = &self.model;
        let problems: Vec<&str> = self.findings.iter().map(|it| it.problem.as_str()).collect();
        let problems = problems.join("; ");
        match self.fitness {
            ModelFitness::Good => format!("{model} is suitable as an agent"),
            ModelFitness::Usable => format!("{model} is suitable as an agent, but {problems}"),
            ModelFitness::Unfit => format!("{model} is not suitable as an agent: {problems}"),
        }
    }

    /// Sets the findings and the fitness that follows from them.
    pub(super) fn assess(&mut self, server: ServerKind) {
        self.assess_window(server);
        self.assess_calls(server);
        if !self.streams_text {
            let fix = "turn off buffering in the proxy before the server".to_owned();
            let problem = "its responses are not streamed".to_owned();
            self.add_finding(ModelFitness::Usable, problem, fix);
        }
        if let Some(speed) = self.tokens_per_second.filter(|it| *it < TOKENS_PER_SECOND_MIN) {
            let fix = "use a smaller model or a graphics card".to_owned();
            let problem = format!("it generates only {speed:.1} tokens per second");
            self.add_finding(ModelFitness::Usable, problem, fix);
        }
    }

    fn assess_window(&mut self, server: ServerKind) {
        let Some(tokens) = self.window else {
            let fix = "OPENAI_CONTEXT_WINDOW=TOKENS jackfield agent".to_owned();
            let problem = "the size of its context window is unknown".to_owned();
            self.add_finding(ModelFitness::Usable, problem, fix);
            return;
        };
        if WINDOW_GOOD <= tokens {
            return;
        }
        let model = &self.model;
        let fix = match server {
            ServerKind::Ollama => format!("OLLAMA_CONTEXT_LENGTH={WINDOW_GOOD} ollama serve"),
            ServerKind::LlamaCpp => format!("llama-server --ctx-size {WINDOW_GOOD} …"),
            ServerKind::Vllm => format!("vllm serve {model} --max-model-len {WINDOW_GOOD}"),
            ServerKind::Other => {
                format!("configure a context window of {WINDOW_GOOD} tokens, or use another model")
            }
        };
        let fitness = if tokens < WINDOW_MIN { ModelFitness::Unfit } else { ModelFitness::Usable };
        let problem = format!("its context window has only {tokens} tokens");
        self.add_finding(fitness, problem, fix);
    }

    fn assess_calls(&mut self, server: ServerKind) {
        let (fitness, problem) = match self.call_support {
            ToolCallSupport::Native => return,
            ToolCallSupport::Text => {
                (ModelFitness::Usable, "it writes its calls into the text, where we parse them")
            }
            ToolCallSupport::Garbled => {
                (ModelFitness::Unfit, "it writes calls into the text that cannot be parsed")
            }
            ToolCallSupport::Refused => (ModelFitness::Unfit, "the server does not accept tools"),
            ToolCallSupport::None => {
                (ModelFitness::Unfit, "it did not call the tool it was offered")
            }
        };
        let model = &self.model;
        let has_calls = self.call_support != ToolCallSupport::None;
        let fix = match server {
            ServerKind::Vllm if has_calls => {
                format!("vllm serve {model} --enable-auto-tool-choice --tool-call-parser hermes")
            }
            ServerKind::LlamaCpp if has_calls => "llama-server --jinja …".to_owned(),
            ServerKind::Ollama => {
                "ollama pull qwen3, or another model of https://ollama.com/search?c=tools"
                    .to_owned()
            }
            _ => "use a model that was trained to call tools; without them: OPENAI_TOOLS=0"
                .to_owned(),
        };
        self.add_finding(fitness, problem.to_owned(), fix);
    }

    /// Adds a finding. The fitness becomes the worse of the current one and `fitness`.
    fn add_finding(&mut self, fitness: ModelFitness, problem: String, fix: String) {
        self.findings.push(ProbeFinding { problem, fix });
        self.fitness = self.fitness.max(fitness);
    }
}
