//! Runs `$VISUAL` or `$EDITOR` on a text.

use std::{fs, io, process::Command};

/// What is run if no editor is configured, as in other programs.
const DEFAULT_EDITOR: &str = "vi";

/// The editor of the user. Like in other programs, the variable may contain arguments.
pub(super) fn find_editor(env: impl Fn(&str) -> Option<String>) -> String {
    let configured = ["VISUAL", "EDITOR"].into_iter().filter_map(env);
    configured.into_iter().find(|it| !it.trim().is_empty()).unwrap_or(DEFAULT_EDITOR.to_owned())
}

/// Runs the editor on a file with the text; `None` if it failed or the text was not changed. Blocks.
pub(super) fn edit_text(editor: &str, text: &str) -> io::Result<Option<String>> {
    let file = tempfile::Builder::new().prefix("jackfield-prompt-").suffix(".md").tempfile()?;
    fs::write(file.path(), text)?;
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(format!("{editor} \"$1\"")).arg("sh").arg(file.path());
    if !command.status()?.success() {
        return Ok(None);
    }
    let edited = fs::read_to_string(file.path())?;
    // Editors end the last line.
    let edited = edited.strip_suffix('\n').unwrap_or(&edited);
    Ok((edited != text).then(|| edited.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_text_is_returned_without_the_last_line_end() {
        let edited = edit_text("printf ' and more\\n' >>", "text").unwrap();
        assert_eq!(edited.as_deref(), Some("text and more"));
        assert_eq!(edit_text("true", "text").unwrap(), None);
        assert_eq!(edit_text("false", "text").unwrap(), None);
    }

    #[test]
    fn visual_comes_before_editor() {
        let find = |set: &'static [(&str, &str)]| {
            find_editor(|name| set.iter().find(|it| it.0 == name).map(|it| it.1.to_owned()))
        };
        assert_eq!(find(&[("EDITOR", "nano"), ("VISUAL", "code -w")]), "code -w");
        assert_eq!(find(&[("EDITOR", "nano"), ("VISUAL", " ")]), "nano");
        assert_eq!(find(&[]), "vi");
    }
}
