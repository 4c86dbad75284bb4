//! The tool `read`: reads a text file, or a part of it.
//!
//! Lines are not numbered, because small models copy the numbers into their edits.

use super::{
    PreparedCall, RequiredPermission, SessionContext, ToolOutcome, ToolWork,
    arguments::ToolArguments,
    files::{ResolvedPath, file_not_found},
    to_fenced_block,
    truncate::{OUTPUT_CHARS_MAX, truncate_middle},
};

const LINES_DEFAULT: u64 = 2_000;
/// Leaves space for the note at the end.
const TEXT_CHARS_MAX: usize = OUTPUT_CHARS_MAX - 300;

#[derive(Debug)]
pub(crate) struct FileRead {
    file: ResolvedPath,
    offset: u32,
    limit: u32,
}

pub(super) async fn prepare(
    args: &ToolArguments,
    context: &SessionContext,
) -> Result<PreparedCall<ToolWork>, String> {
    let file = ResolvedPath::resolve_file(&args.required_text("path")?, context).await?;
    let saturate = |it: u64| u32::try_from(it).unwrap_or(u32::MAX - 1);
    let offset = saturate(args.optional_number("offset")?.unwrap_or(1));
    let limit = saturate(args.optional_number("limit")?.unwrap_or(LINES_DEFAULT));
    Ok(PreparedCall {
        input: args.to_input(),
        title: file.display.clone(),
        kind: args.tool().kind,
        locations: vec![file.to_location(Some(offset))],
        content: Vec::new(),
        permission: RequiredPermission::None,
        work: ToolWork::Read(FileRead { file, offset, limit }),
    })
}

impl FileRead {
    pub(super) async fn run(self, context: &SessionContext) -> ToolOutcome {
        // A client may have a new file in the editor that is not on disk yet.
        if !self.file.exists && !context.client_io.reads_files {
            return ToolOutcome::failure(file_not_found(&self.file.display));
        }
        // One line more than requested shows whether there is more.
        let limit = self.limit.saturating_add(1);
        match self.file.read(context, Some(self.offset), Some(limit)).await {
            Ok(text) => self.to_outcome(&text),
            Err(error) => ToolOutcome::failure(error),
        }
    }

    fn to_outcome(&self, text: &str) -> ToolOutcome {
        if text.is_empty() {
            let FileRead { file, offset, .. } = self;
            let message = match offset {
                1 => format!("`{}` is empty.", file.display),
                line => format!("`{}` has no line {line}: it is shorter.", file.display),
            };
            return ToolOutcome::success(message);
        }
        let lines = text.split_inclusive('\n').take(self.limit as usize);
        let mut kept = String::new();
        let (mut count, mut chars) = (0, 0);
        for line in lines {
            chars += line.chars().count();
            if 0 < count && TEXT_CHARS_MAX < chars {
                break;
            }
            kept.push_str(line);
            count += 1;
        }
        let is_complete = kept.len() == text.len();
        let mut output = truncate_middle(&kept, TEXT_CHARS_MAX, "this line is too long to be read");
        if !is_complete {
            let next = u64::from(self.offset) + count;
            let end = if output.ends_with('\n') { "" } else { "\n" };
            let first = self.offset;
            output = format!(
                "{output}{end}[lines {first} to {}; there are more: read on with `offset` {next}]",
                next - 1
            );
        }
        ToolOutcome {
            content: vec![to_fenced_block(&output)],
            text: output,
            ..ToolOutcome::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::tool::{IoCapabilities, RequiredPermission, test_session::with_test_session};
    use agent_client_protocol::v1::schema::ToolKind;
    use serde_json::json;
    use std::fs;

    #[tokio::test]
    async fn file_is_read_unchanged_and_a_part_has_a_note_how_to_continue() {
        for client_io in [
            IoCapabilities::default(),
            IoCapabilities { reads_files: true, ..IoCapabilities::default() },
        ] {
            with_test_session(client_io, async |session| {
                fs::write(session.at("a"), "one\n  two\nthree").unwrap();
                let prepared = session.prepare("read", json!({ "path": "a" })).await.unwrap();
                assert_eq!((prepared.title.as_str(), prepared.kind), ("a", ToolKind::Read));
                assert_eq!(prepared.permission, RequiredPermission::None);
                assert_eq!(session.run(prepared).await.text, "one\n  two\nthree");
                let part = json!({ "path": "a", "offset": 2, "limit": 1 });
                let text = session.call("read", part).await.text;
                let end = "[lines 2 to 2; there are more: read on with `offset` 3]";
                assert_eq!(text, format!("  two\n{end}"));
                let after = session.call("read", json!({ "path": "a", "offset": 9 })).await.text;
                assert_eq!(after, "`a` has no line 9: it is shorter.");
            })
            .await;
        }
    }

    #[tokio::test]
    async fn path_that_is_not_a_text_file_is_explained() {
        with_test_session(IoCapabilities::default(), async |session| {
            fs::create_dir(session.at("dir")).unwrap();
            fs::write(session.at("zero"), b"a\0b").unwrap();
            fs::write(session.at("bytes"), b"\xff\xfe").unwrap();
            fs::write(session.at("empty"), "").unwrap();
            for (path, message) in [
                ("dir", "is a directory. Use `list`"),
                ("zero", "is a binary file"),
                ("bytes", "not UTF-8 text"),
                ("missing", "There is no `missing`"),
            ] {
                let outcome = session.call("read", json!({ "path": path })).await;
                assert!(outcome.is_error && outcome.text.contains(message), "{outcome:?}");
            }
            let empty = session.call("read", json!({ "path": "empty" })).await;
            assert_eq!((empty.is_error, empty.text.as_str()), (false, "`empty` is empty."));
        })
        .await;
    }

    #[tokio::test]
    async fn parts_of_a_long_file_make_the_whole_file() {
        with_test_session(IoCapabilities::default(), async |session| {
            let lines: Vec<String> = (0..9_000).map(|it| format!("line {it}\n")).collect();
            let whole = lines.concat();
            fs::write(session.at("long"), &whole).unwrap();
            let (mut offset, mut read) = (1, String::new());
            loop {
                let part = json!({ "path": "long", "offset": offset });
                let text = session.call("read", part).await.text;
                assert!(text.chars().count() <= crate::tool::truncate::OUTPUT_CHARS_MAX);
                let Some((lines, end)) = text.rsplit_once("[lines ") else {
                    read.push_str(&text);
                    break;
                };
                read.push_str(lines);
                let next = end.rsplit_once("`offset` ").unwrap().1.trim_end_matches(']');
                offset = next.parse().unwrap();
            }
            assert!(read == whole);
            fs::write(session.at("wide"), "x".repeat(100_000)).unwrap();
            let wide = session.call("read", json!({ "path": "wide" })).await.text;
            assert!(wide.contains("this line is too long"), "{}", wide.len());
        })
        .await;
    }
}
