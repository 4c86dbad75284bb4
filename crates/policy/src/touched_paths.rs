//! The paths that a call touches: paths that it names, and words of its commands that may be paths.

use crate::{
    ToolCallFacts,
    glob::{PathContext, PathMatcher},
    shell::{
        CommandAnalysis, GlobToken, MatchCertainty, ShellWord, WordKind, could_overlap,
        tokenize_word,
    },
};

/// Commands and options that are followed by a folder in which something runs.
const FOLDER_CHANGERS: &[&str] =
    &["cd", "pushd", "chdir", "-C", "-D", "--chdir", "--cwd", "--directory"];

/// If a call has more folders, relative paths may be in any folder.
const FOLDERS_MAX: usize = 8;

/// Longer words are not compared token by token.
const PATH_BYTES_MAX: usize = 4096;

/// An unknown folder, in the form of a word that a shell expands.
const ANY_FOLDER: &str = "/$X";

/// Whether a path, a word of a command or a word of a text matches one of these globs.
pub(crate) fn match_touched_paths(
    globs: &[String],
    call: &ToolCallFacts,
    analyses: &[CommandAnalysis],
    texts: [&[Vec<ShellWord>]; 2],
) -> MatchCertainty {
    let context = call.path_context();
    let matcher = context.match_touched(globs);
    let is_touched = |path: &String| {
        let word = ShellWord { text: path.clone(), kind: word_kind(path), ..ShellWord::default() };
        match_word(&word, &matcher, &context) == MatchCertainty::Certain
    };
    let is_path = |it: &String| matcher.matches(&context.to_absolute(it.trim()));
    if call.paths.iter().chain(&call.folders).any(is_touched) || call.unknown.iter().any(is_path) {
        return MatchCertainty::Certain;
    }
    // In a text for the user, only words that look like a path count.
    let hints = texts.into_iter().flatten().flatten().filter(|it| it.text.contains('/'));
    let folders = working_folders(call, analyses);
    let mut best = MatchCertainty::None;
    for word in analyses.iter().flat_map(CommandAnalysis::words).chain(hints) {
        for candidate in path_candidates(word) {
            for folder in &folders {
                let context = PathContext { cwd: folder, ..context };
                best = best.max(match_word(&candidate, &matcher, &context));
            }
        }
        if best == MatchCertainty::Certain {
            break;
        }
    }
    if analyses.iter().any(CommandAnalysis::is_unsearched) { MatchCertainty::Certain } else { best }
}

/// Whether a command has words that may be paths, and all of them match these globs.
pub(crate) fn has_only_paths_inside(
    globs: &[String],
    call: &ToolCallFacts,
    words: &[ShellWord],
) -> bool {
    let context = call.path_context();
    let inside = context.match_inside(globs);
    let mut paths = words.iter().flat_map(path_candidates).peekable();
    let is_option = |it: &ShellWord| it.text.starts_with('-') && !it.text.contains(['/', '.', '=']);
    let is_inside = |word: &ShellWord| {
        let is_fixed = word.kind == WordKind::Fixed;
        is_fixed
            && path_candidates(word).iter().all(|it| inside.matches(&context.to_absolute(&it.text)))
    };
    paths.peek().is_some() && words.iter().all(|it| is_option(it) || is_inside(it))
}

/// The folders that a relative path may refer to.
fn working_folders(call: &ToolCallFacts, analyses: &[CommandAnalysis]) -> Vec<String> {
    let mut folders = vec![call.cwd.clone()];
    folders.extend(call.folders.iter().cloned());
    for analysis in analyses {
        let words = analysis.words();
        for (at, word) in words.iter().enumerate() {
            let (name, value) = word.text.split_once('=').unwrap_or((&word.text, ""));
            if !FOLDER_CHANGERS.contains(&name) {
                continue;
            }
            let next = words.get(at + 1);
            let target = if value.is_empty() { next.map_or("~", |it| &it.text) } else { value };
            let is_open = next.is_some_and(|it| it.kind != WordKind::Fixed) || value.contains('$');
            if is_open || folders.len() > FOLDERS_MAX {
                folders.push(ANY_FOLDER.to_owned());
                return folders;
            }
            let home = call.home.as_deref();
            let from: Vec<String> = folders.clone();
            let reached = from.iter().map(|it| PathContext { cwd: it, home }.to_absolute(target));
            folders.extend(reached.filter(|it| !from.contains(it)));
            folders.extend(home.filter(|_| name == "cd").map(str::to_owned));
            folders.dedup();
        }
    }
    folders
}

/// The parts of a word that may be a path: `--file=x`, `-Ix`, `host:x`, `@x`, `a=@x`.
fn path_candidates(word: &ShellWord) -> Vec<ShellWord> {
    let text = word.text.as_str();
    let short = text.strip_prefix('-').filter(|it| !it.starts_with('-')).and_then(|it| it.get(1..));
    let value = text.split_once('=').map(|it| it.1);
    let parts = text.split(':').filter(|_| text.contains(':') && !text.contains("://"));
    let all = [Some(text), value, short].into_iter().flatten().chain(parts);
    let all = all.map(|it| it.trim_start_matches('@')).filter(|it| !it.is_empty());
    let all = all.filter(|it| !it.starts_with('-') || *it == "-");
    // These variables are numbers, not paths.
    let all = all.filter(|it| !matches!(*it, "$?" | "$#" | "$$" | "$!"));
    all.map(|it| ShellWord { text: expand_known_variables(it), kind: word.kind, is_start: false })
        .collect()
}

/// Replaces `$HOME` and `$PWD` at the start by `~` and `.`.
fn expand_known_variables(text: &str) -> String {
    let bare = text.strip_prefix('$').unwrap_or(text);
    for (name, value) in [("HOME", "~"), ("PWD", ".")] {
        if let Some(rest) = bare.strip_prefix(name)
            && (rest.is_empty() && bare.len() < text.len() || rest.starts_with('/'))
        {
            return format!("{value}{rest}");
        }
    }
    text.to_owned()
}

/// Whether a word is, or could expand to, a path that the globs match.
fn match_word(
    word: &ShellWord,
    matcher: &PathMatcher,
    context: &PathContext<'_>,
) -> MatchCertainty {
    let path = context.to_absolute(&word.text);
    if matcher.matches(&path) {
        return MatchCertainty::Certain;
    }
    let any_folder = context.cwd == ANY_FOLDER && !word.text.starts_with(['/', '~']);
    if word.kind == WordKind::Fixed && !any_folder {
        return MatchCertainty::None;
    }
    let tokens = tokenize_word(&ShellWord { kind: WordKind::Open, ..word.clone() });
    let is_value = |it: &GlobToken| matches!(it, GlobToken::Value | GlobToken::Any);
    let is_letter = |it: &GlobToken| matches!(it, GlobToken::Char(it) if it.is_alphanumeric());
    let starts_with_value = tokens.first().is_some_and(is_value);
    let certainty = if tokens.iter().any(is_letter) || !tokens.iter().any(is_value) {
        MatchCertainty::Certain
    } else {
        MatchCertainty::Possible
    };
    if path.len() > PATH_BYTES_MAX || starts_with_value && word.text.contains("..") {
        return certainty;
    }
    // A variable at the start may be an absolute path.
    let expanded = if starts_with_value {
        tokens
    } else {
        tokenize_word(&ShellWord { text: path, kind: WordKind::Open, is_start: false })
    };
    let can_match = matcher.tokens().iter().any(|it| could_overlap(&expanded, it));
    if can_match { certainty } else { MatchCertainty::None }
}

fn word_kind(path: &str) -> WordKind {
    if path.contains(['*', '?', '[', '{', '$']) { WordKind::Open } else { WordKind::Fixed }
}
