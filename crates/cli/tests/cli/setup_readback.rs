//! What `jackfield setup` writes, read by the editor itself or by its parser: scripts/install-editors.sh installs them.

use crate::home::TestHome;
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

const PROGRAM: &str = env!("CARGO_BIN_EXE_jackfield");

fn set_up(home: &TestHome, args: &[&str]) {
    let outcome = home.run(&[&["setup", "--yes", "--agent", "goose,fast-agent"], args].concat());
    assert_eq!(outcome.code, 0, "{outcome:?}");
}

/// The JSON that a program prints last.
fn read_output(home: &TestHome, command: &mut Command) -> Value {
    command.env("HOME", home.path()).env("XDG_CONFIG_HOME", home.path().join("config"));
    command.env("XDG_DATA_HOME", home.path().join("data")).current_dir(home.path());
    let hint = "scripts/install-editors.sh --all installs the editors";
    let output = command.output().unwrap_or_else(|it| panic!("{command:?}: {it}; {hint}"));
    let (stdout, stderr) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{stdout}{stderr}");
    let last = stdout.lines().last().unwrap_or_else(|| panic!("no output: {stderr}"));
    serde_json::from_str(last).unwrap_or_else(|it| panic!("{it}: {stdout}{stderr}"))
}

fn write_script(home: &TestHome, name: &str, text: &str) -> PathBuf {
    let path = home.path().join(name);
    fs::write(&path, text).unwrap();
    path
}

#[test]
fn vscode_reads_its_settings() {
    let home = TestHome::new();
    let settings = home.path().join("config/Code/User/settings.json");
    fs::create_dir_all(settings.parent().unwrap()).unwrap();
    let text = "\u{feff}{\r\n\t// theme\r\n\t\"workbench.colorTheme\": \"Dark\", /* x */\r\n\t\
                \"acp.agents\": {\r\n\t\t\"mine\": { \"command\": \"x\" }, // mine\r\n\t},\r\n}\r\n";
    fs::write(&settings, text).unwrap();
    set_up(&home, &["vscode"]);
    let parser = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../target/tools/editors/node_modules/jsonc-parser");
    assert!(parser.exists(), "scripts/install-editors.sh installs {}", parser.display());
    let script = write_script(
        &home,
        "read.cjs",
        "const [parser, file] = process.argv.slice(2);
         const errors = [], options = { allowTrailingComma: true };
         const text = require('fs').readFileSync(file, 'utf8').replace(/^\\ufeff/, '');
         const value = require(parser).parse(text, errors, options);
         console.log(JSON.stringify({ value, errors }));",
    );
    let read = read_output(&home, Command::new("node").args([&script, &parser, &settings]));
    let expected = json!({
        "workbench.colorTheme": "Dark",
        "acp.agents": {
            "mine": { "command": "x" },
            "Goose in Jackfield": { "command": PROGRAM, "args": ["acp", "goose"], "env": {} },
            "fast-agent in Jackfield":
                { "command": PROGRAM, "args": ["acp", "fast-agent"], "env": {} },
        },
    });
    assert_eq!(read, json!({ "value": expected, "errors": [] }));
}

#[test]
fn neovim_loads_the_module_and_the_specification_of_lazy() {
    let home = TestHome::new();
    let folder = home.path().join("config/nvim");
    fs::create_dir_all(folder.join("lua/plugins")).unwrap();
    set_up(&home, &["neovim"]);
    let script = write_script(
        &home,
        "check.lua",
        r#"
        package.preload["codecompanion.adapters.acp.helpers"] = function()
          return { form_messages = function(_, messages) return messages end }
        end
        local spec = dofile(vim.fn.stdpath("config") .. "/lua/plugins/jackfield.lua")
        local codecompanion, avante = { adapters = { acp = { mine = "x" } } }, {}
        spec[1].opts(nil, codecompanion)
        spec[2].opts(nil, avante)
        local names = vim.tbl_keys(codecompanion.adapters.acp)
        table.sort(names)
        local adapter = codecompanion.adapters.acp.jackfield_fast_agent()
        local provider = avante.acp_providers["jackfield-fast-agent"]
        print(vim.fn.json_encode({
          names = names,
          adapter = {
            name = adapter.name, title = adapter.formatted_name, type = adapter.type,
            command = adapter.commands.default, auth = adapter.handlers.auth(),
            messages = adapter.handlers.form_messages(adapter, { "m" }, {}),
          },
          provider = { command = provider.command, args = provider.args, home = provider.env.HOME },
        }))
        "#,
    );
    let mut command = Command::new("nvim");
    command.args(["--headless", "-u", "NONE", "-i", "NONE", "-c"]);
    command.arg(format!("luafile {}", script.display())).args(["-c", "qa!"]);
    // Neovim prints messages to stderr.
    let mut shell = Command::new("sh");
    shell.args(["-c", "exec \"$@\" 2>&1", "sh"]).arg(command.get_program());
    shell.args(command.get_args());
    let read = read_output(&home, &mut shell);
    let expected = json!({
        "names": ["jackfield_fast_agent", "jackfield_goose", "mine"],
        "adapter": {
            "name": "jackfield_fast_agent", "title": "fast-agent in Jackfield", "type": "acp",
            "command": [PROGRAM, "acp", "fast-agent"], "auth": true, "messages": ["m"],
        },
        "provider":
            { "command": PROGRAM, "args": ["acp", "fast-agent"], "home": home.path() },
    });
    assert_eq!(read, expected);
}

#[test]
#[ignore = "nightly: Emacs is a large package"]
fn emacs_compiles_and_loads_the_file() {
    let home = TestHome::new();
    fs::create_dir_all(home.path().join(".emacs.d")).unwrap();
    set_up(&home, &["emacs"]);
    write_script(
        &home,
        "agent-shell.el",
        r#"
        (require 'cl-lib)
        (defvar agent-shell-agent-configs '(((:buffer-name . "Mine"))))
        (cl-defun agent-shell-make-agent-config
            (&key identifier mode-line-name buffer-name shell-prompt shell-prompt-regexp
                  client-maker install-instructions)
          (ignore mode-line-name shell-prompt shell-prompt-regexp install-instructions)
          `((:identifier . ,identifier) (:buffer-name . ,buffer-name)
            (:client-maker . ,client-maker)))
        (cl-defun acp-make-client (&key command command-params context-buffer)
          (ignore context-buffer)
          (cons command command-params))
        (provide 'agent-shell)
        "#,
    );
    let script = write_script(
        &home,
        "check.el",
        r#"
        (require 'json)
        (setq byte-compile-error-on-warn t)
        (add-to-list 'load-path default-directory)
        (let ((file (expand-file-name "~/.emacs.d/jackfield")))
          (unless (byte-compile-file (concat file ".el")) (kill-emacs 1))
          (load file t))
        (require 'agent-shell)
        (let ((config (nth 2 agent-shell-agent-configs)))
          (princ (json-encode
                  `((count . ,(length agent-shell-agent-configs))
                    (id . ,(alist-get :identifier config))
                    (title . ,(alist-get :buffer-name config))
                    (command . ,(vconcat (funcall (alist-get :client-maker config) nil)))))))
        (terpri)
        "#,
    );
    let mut command = Command::new("emacs");
    command.args(["--batch", "-Q", "-l"]).arg(&script);
    let expected = json!({
        "count": 3, "id": "jackfield-fast-agent", "title": "fast-agent in Jackfield",
        "command": [PROGRAM, "acp", "fast-agent"],
    });
    assert_eq!(read_output(&home, &mut command), expected);
}
