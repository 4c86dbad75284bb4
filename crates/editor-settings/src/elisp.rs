//! The Emacs Lisp file that adds our agents to agent-shell.

use crate::EditorAgent;
use std::fmt::Write as _;

const HEAD: &str = "\
;;; jackfield.el --- The agents of Jackfield for agent-shell -*- lexical-binding: t; -*-

;;; Commentary:

;; `jackfield setup emacs' writes this file, and `jackfield setup emacs --undo' removes it.

;;; Code:

(defvar agent-shell-agent-configs)
(declare-function agent-shell-make-agent-config \"agent-shell\")
(declare-function acp-make-client \"acp\")

";

const TAIL: &str = r#"
(defun jackfield-make-agent-config (agent)
  "Return the configuration of AGENT, a list of its id and its title."
  (let ((id (car agent))
        (title (cadr agent)))
    (agent-shell-make-agent-config
     :identifier (intern (concat "jackfield-" id))
     :mode-line-name title
     :buffer-name title
     :shell-prompt (concat title "> ")
     :shell-prompt-regexp (regexp-quote (concat title "> "))
     :client-maker (lambda (buffer)
                     (acp-make-client :command jackfield-program
                                      :command-params (list "acp" id)
                                      :context-buffer buffer))
     :install-instructions "Run `jackfield setup emacs' again.")))

(with-eval-after-load 'agent-shell
  (let ((earlier agent-shell-agent-configs)
        (configs (mapcar #'jackfield-make-agent-config jackfield-agents)))
    (setq agent-shell-agent-configs
          (if (functionp earlier)
              (lambda () (append (funcall earlier) configs))
            (append earlier configs)))))

(provide 'jackfield)
;;; jackfield.el ends here
"#;

/// The file that the init file loads.
pub fn generate_elisp_file(program: &str, agents: &[EditorAgent]) -> String {
    let mut text = HEAD.to_owned();
    let program = quote(program);
    let _infallible =
        writeln!(text, "(defvar jackfield-program {program}\n  \"The program of Jackfield.\")\n");
    text.push_str("(defvar jackfield-agents\n  '(");
    for (index, agent) in agents.iter().enumerate() {
        let separator = if index == 0 { "" } else { "\n    " };
        let (id, title) = (quote(&agent.id), quote(&agent.title));
        let _infallible = write!(text, "{separator}({id} {title})");
    }
    text.push_str(")\n  \"The id and the title of each agent.\")\n");
    text.push_str(TAIL);
    text
}

/// The line of an init file that loads the generated file, if it exists; `path` is without its extension.
pub fn elisp_load_line(path: &str) -> String {
    format!("(load {} t)", quote(path))
}

/// A string of Emacs Lisp. Other characters than these stand for themselves.
fn quote(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
