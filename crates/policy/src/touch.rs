//! Which paths a call touches: those it names, and the words of its commands that may be one.

use crate::{
    Call,
    glob::{Paths, Place},
    shell::{Hit, Reading, Token, Word, WordKind, could_meet, tokens},
};

/// Words before the name of a folder in which something is done.
const GOES_TO: &[&str] = &["cd", "pushd", "chdir", "-C", "-D", "--chdir", "--cwd", "--directory"];

/// More folders than these are taken for any folder.
const FOLDERS_MAX: usize = 8;

/// Longer words are not compared piece by piece.
const PATH_BYTES_MAX: usize = 4096;

/// A folder that is not known, in the form of a word that a shell expands.
const ANY_FOLDER: &str = "/$X";

/// Whether one of these globs is touched: by a path, by a word of a command or of a hint.
pub(crate) fn touches(
    globs: &[String],
    call: &Call,
    readings: &[Reading],
    texts: [&[Vec<Word>]; 2],
) -> Hit {
    let place = call.place();
    let touching = place.touching(globs);
    let named = call.paths.iter().chain(&call.folders);
    let mut named = named.map(|it| Word { text: it.clone(), kind: kind_of(it), ..Word::default() });
    let unknown = |it: &String| touching.matches(&place.absolute(it.trim()));
    if named.any(|it| touched(&it, &touching, &place) == Hit::Yes)
        || call.unknown.iter().any(unknown)
    {
        return Hit::Yes;
    }
    // Of a text for people, only what looks like a path.
    let hinted = texts.into_iter().flatten().flatten().filter(|it| it.text.contains('/'));
    let folders = folders(call, readings);
    let mut best = Hit::No;
    for word in readings.iter().flat_map(|it| it.words().0).chain(hinted) {
        for piece in pieces(word) {
            for folder in &folders {
                let place = Place { cwd: folder, ..place };
                best = best.max(touched(&piece, &touching, &place));
            }
        }
        if best == Hit::Yes {
            break;
        }
    }
    if readings.iter().any(|it| it.words().1) { Hit::Yes } else { best }
}

/// Whether all words of a command that may be paths are inside of these globs, and there is one.
pub(crate) fn stays_inside(globs: &[String], call: &Call, words: &[Word]) -> bool {
    let place = call.place();
    let inside = place.inside(globs);
    let mut paths = words.iter().flat_map(pieces).peekable();
    let is_option = |it: &Word| it.text.starts_with('-') && !it.text.contains(['/', '.', '=']);
    let stays = |word: &Word| {
        let fixed = word.kind == WordKind::Fixed;
        fixed && pieces(word).iter().all(|it| inside.matches(&place.absolute(&it.text)))
    };
    paths.peek().is_some() && words.iter().all(|it| is_option(it) || stays(it))
}

/// The folders from which a relative path may be meant.
fn folders(call: &Call, readings: &[Reading]) -> Vec<String> {
    let mut folders = vec![call.cwd.clone()];
    folders.extend(call.folders.iter().cloned());
    for reading in readings {
        let words = reading.words().0;
        for (at, word) in words.iter().enumerate() {
            let (name, value) = word.text.split_once('=').unwrap_or((&word.text, ""));
            if !GOES_TO.contains(&name) {
                continue;
            }
            let next = words.get(at + 1);
            let target = if value.is_empty() { next.map_or("~", |it| &it.text) } else { value };
            let open = next.is_some_and(|it| it.kind != WordKind::Fixed) || value.contains('$');
            if open || folders.len() > FOLDERS_MAX {
                folders.push(ANY_FOLDER.to_owned());
                return folders;
            }
            let home = call.home.as_deref();
            let from: Vec<String> = folders.clone();
            let reached = from.iter().map(|it| Place { cwd: it, home }.absolute(target));
            folders.extend(reached.filter(|it| !from.contains(it)));
            folders.extend(home.filter(|_| name == "cd").map(str::to_owned));
            folders.dedup();
        }
    }
    folders
}

/// The parts of a word that may be a path: `--file=x`, `-Ix`, `host:x`, `@x`, `a=@x`.
fn pieces(word: &Word) -> Vec<Word> {
    let text = word.text.as_str();
    let short = text.strip_prefix('-').filter(|it| !it.starts_with('-')).and_then(|it| it.get(1..));
    let value = text.split_once('=').map(|it| it.1);
    let parts = text.split(':').filter(|_| text.contains(':') && !text.contains("://"));
    let all = [Some(text), value, short].into_iter().flatten().chain(parts);
    let all = all.map(|it| it.trim_start_matches('@')).filter(|it| !it.is_empty());
    let all = all.filter(|it| !it.starts_with('-') || *it == "-");
    // Numbers are no paths.
    let all = all.filter(|it| !matches!(*it, "$?" | "$#" | "$$" | "$!"));
    all.map(|it| Word { text: known_values(it), kind: word.kind, is_start: false }).collect()
}

/// With the variables that everybody knows.
fn known_values(text: &str) -> String {
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

fn touched(word: &Word, touching: &Paths, place: &Place<'_>) -> Hit {
    let path = place.absolute(&word.text);
    if touching.matches(&path) {
        return Hit::Yes;
    }
    let any_folder = place.cwd == ANY_FOLDER && !word.text.starts_with(['/', '~']);
    if word.kind == WordKind::Fixed && !any_folder {
        return Hit::No;
    }
    let own = tokens(&Word { kind: WordKind::Open, ..word.clone() });
    let is_value = |it: &Token| matches!(it, Token::Value | Token::Any);
    let says_something = own.iter().any(|it| matches!(it, Token::Char(it) if it.is_alphanumeric()));
    let open = own.first().is_some_and(is_value);
    let sure = if says_something || !own.iter().any(is_value) { Hit::Yes } else { Hit::Possible };
    if path.len() > PATH_BYTES_MAX || open && word.text.contains("..") {
        return sure;
    }
    // A variable at the start may be a path from the root on.
    let expanded = if open {
        own
    } else {
        tokens(&Word { text: path, kind: WordKind::Open, is_start: false })
    };
    let could = touching.tokens().iter().any(|it| could_meet(&expanded, it));
    if could { sure } else { Hit::No }
}

fn kind_of(path: &str) -> WordKind {
    if path.contains(['*', '?', '[', '{', '$']) { WordKind::Open } else { WordKind::Fixed }
}
