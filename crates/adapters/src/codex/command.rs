//! Strips the shell invocation that Codex wraps around a command.

/// Returns `ls -la` for `/bin/bash -lc 'ls -la'`, and any other command unchanged.
pub(super) fn strip_shell(command: &str) -> String {
    let Some(arguments) = split_arguments(command) else { return command.to_owned() };
    let [shell, flag, script] = arguments.as_slice() else { return command.to_owned() };
    let shell = shell.rsplit(['/', '\\']).next().unwrap_or(shell);
    let shell = shell.strip_suffix(".exe").unwrap_or(shell);
    let is_wrapped = match shell {
        "bash" | "sh" | "zsh" | "dash" | "fish" => matches!(flag.as_str(), "-c" | "-lc"),
        "powershell" | "pwsh" => flag.eq_ignore_ascii_case("-command"),
        _ => false,
    };
    if is_wrapped { script.clone() } else { command.to_owned() }
}

/// Splits a line as a shell does; `None` if a quote is not closed.
fn split_arguments(line: &str) -> Option<Vec<String>> {
    let mut arguments = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.chars();
    while let Some(char) = chars.next() {
        match char {
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '\'' => break,
                        char => word.push(char),
                    }
                }
            }
            '"' => read_double_quoted(&mut chars, word.get_or_insert_default())?,
            '\\' => word.get_or_insert_default().push(chars.next()?),
            char if char.is_whitespace() => arguments.extend(word.take()),
            char => word.get_or_insert_default().push(char),
        }
    }
    arguments.extend(word);
    Some(arguments)
}

/// Reads a double-quoted string, in which a backslash escapes only a few characters.
fn read_double_quoted(chars: &mut std::str::Chars<'_>, word: &mut String) -> Option<()> {
    loop {
        match chars.next()? {
            '"' => return Some(()),
            '\\' => match chars.next()? {
                escaped @ ('"' | '\\' | '$' | '`') => word.push(escaped),
                other => word.extend(['\\', other]),
            },
            char => word.push(char),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shell_invocation_is_stripped() {
        let cases = [
            ("/bin/bash -lc 'echo hello-from-tool'", "echo hello-from-tool"),
            ("bash -lc ls", "ls"),
            (r#"/bin/zsh -lc "echo \"a b\" \$HOME '\n'""#, r#"echo "a b" $HOME '\n'"#),
            (r"bash -lc 'it'\''s'", "it's"),
            ("bash -lc 'line one\nline two'", "line one\nline two"),
            ("pwsh.exe -Command 'Get-ChildItem'", "Get-ChildItem"),
        ];
        for (command, stripped) in cases {
            assert_eq!(strip_shell(command), stripped, "{command}");
        }
    }

    #[test]
    fn other_commands_are_unchanged() {
        for command in ["ls -la", "bash -lc 'open", "bash script.sh arg", "git -lc x", ""] {
            assert_eq!(strip_shell(command), command);
        }
    }
}
