//! A command line as the model wrote it, without the shell around it.

/// `/bin/bash -lc 'ls -la'` is `ls -la` to people; anything else stays as it is.
pub(super) fn bare(command: &str) -> String {
    let Some(words) = words(command) else { return command.to_owned() };
    let [shell, flag, script] = words.as_slice() else { return command.to_owned() };
    let shell = shell.rsplit(['/', '\\']).next().unwrap_or(shell);
    let shell = shell.strip_suffix(".exe").unwrap_or(shell);
    let is_wrapped = match shell {
        "bash" | "sh" | "zsh" | "dash" | "fish" => matches!(flag.as_str(), "-c" | "-lc"),
        "powershell" | "pwsh" => flag.eq_ignore_ascii_case("-command"),
        _ => false,
    };
    if is_wrapped { script.clone() } else { command.to_owned() }
}

/// The words as a shell would split them; none if a quote is left open.
fn words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.chars();
    while let Some(char) = chars.next() {
        match char {
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '\'' => break,
                        inside => word.push(inside),
                    }
                }
            }
            '"' => quoted(&mut chars, word.get_or_insert_default())?,
            '\\' => word.get_or_insert_default().push(chars.next()?),
            blank if blank.is_whitespace() => words.extend(word.take()),
            plain => word.get_or_insert_default().push(plain),
        }
    }
    words.extend(word);
    Some(words)
}

/// What stands between double quotes, where a backslash spares only a few characters.
fn quoted(chars: &mut std::str::Chars<'_>, word: &mut String) -> Option<()> {
    loop {
        match chars.next()? {
            '"' => return Some(()),
            '\\' => match chars.next()? {
                spared @ ('"' | '\\' | '$' | '`') => word.push(spared),
                other => word.extend(['\\', other]),
            },
            inside => word.push(inside),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shell_around_a_command_is_left_out() {
        let cases = [
            ("/bin/bash -lc 'echo hello-from-tool'", "echo hello-from-tool"),
            ("bash -lc ls", "ls"),
            (r#"/bin/zsh -lc "echo \"a b\" \$HOME '\n'""#, r#"echo "a b" $HOME '\n'"#),
            (r"bash -lc 'it'\''s'", "it's"),
            ("bash -lc 'line one\nline two'", "line one\nline two"),
            ("pwsh.exe -Command 'Get-ChildItem'", "Get-ChildItem"),
        ];
        for (whole, bare_command) in cases {
            assert_eq!(bare(whole), bare_command, "{whole}");
        }
    }

    #[test]
    fn what_is_no_wrapper_is_left_alone() {
        for command in ["ls -la", "bash -lc 'open", "bash script.sh arg", "git -lc x", ""] {
            assert_eq!(bare(command), command);
        }
    }
}
