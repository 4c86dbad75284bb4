//! `read`: a text file, or a part of it.
//!
//! Lines are not numbered: small models copy the numbers into their edits.

use super::{
    Grant, Job, Outcome, Site, Work,
    args::Args,
    cut::{OUTPUT_CHARS_MAX, cut},
    fenced,
    files::{Target, no_file},
};

const LINES_DEFAULT: u64 = 2_000;
/// Room for the words at the end.
const TEXT_CHARS_MAX: usize = OUTPUT_CHARS_MAX - 300;

#[derive(Debug)]
pub(crate) struct Read {
    target: Target,
    offset: u32,
    limit: u32,
}

pub(super) async fn prepare(args: &Args, site: &Site) -> Result<Job<Work>, String> {
    let target = Target::find_file(&args.text("path")?, site).await?;
    let small = |it: u64| u32::try_from(it).unwrap_or(u32::MAX - 1);
    let offset = small(args.number("offset")?.unwrap_or(1));
    let limit = small(args.number("limit")?.unwrap_or(LINES_DEFAULT));
    Ok(Job {
        input: args.input(),
        title: target.shown.clone(),
        kind: args.tool().kind,
        locations: vec![target.location(Some(offset))],
        content: Vec::new(),
        grant: Grant::Free,
        work: Work::Read(Read { target, offset, limit }),
    })
}

impl Read {
    pub(super) async fn run(self, site: &Site) -> Outcome {
        // A file that is only in the editor yet is not for us to miss.
        if !self.target.exists && !site.offers.read {
            return Outcome::failed(no_file(&self.target.shown));
        }
        // One line more than wanted tells whether there is more.
        let limit = self.limit.saturating_add(1);
        match self.target.read(site, Some(self.offset), Some(limit)).await {
            Ok(text) => self.tell(&text),
            Err(why) => Outcome::failed(why),
        }
    }

    fn tell(&self, text: &str) -> Outcome {
        if text.is_empty() {
            let Read { target, offset, .. } = self;
            let what = match offset {
                1 => format!("`{}` is empty.", target.shown),
                line => format!("`{}` has no line {line}: it is shorter.", target.shown),
            };
            return Outcome::told(what);
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
        let is_all = kept.len() == text.len();
        let mut told = cut(&kept, TEXT_CHARS_MAX, "this line is too long to be read");
        if !is_all {
            let next = u64::from(self.offset) + count;
            let end = if told.ends_with('\n') { "" } else { "\n" };
            let from = self.offset;
            told = format!(
                "{told}{end}[lines {from} to {}; there are more: read on with `offset` {next}]",
                next - 1
            );
        }
        Outcome { content: vec![fenced(&told)], text: told, ..Outcome::default() }
    }
}

#[cfg(test)]
mod tests {
    use crate::tool::{Grant, Offers, world::in_world};
    use agent_client_protocol::v1::schema::ToolKind;
    use serde_json::json;
    use std::fs;

    #[tokio::test]
    async fn a_file_is_read_as_it_is_and_a_part_says_where_to_read_on() {
        for offers in [Offers::default(), Offers { read: true, ..Offers::default() }] {
            in_world(offers, async |world| {
                fs::write(world.at("a"), "one\n  two\nthree").unwrap();
                let job = world.prepare("read", json!({ "path": "a" })).await.unwrap();
                assert_eq!((job.title.as_str(), job.kind), ("a", ToolKind::Read));
                assert_eq!(job.grant, Grant::Free);
                assert_eq!(world.run(job).await.text, "one\n  two\nthree");
                let part = json!({ "path": "a", "offset": 2, "limit": 1 });
                let told = world.call("read", part).await.text;
                let end = "[lines 2 to 2; there are more: read on with `offset` 3]";
                assert_eq!(told, format!("  two\n{end}"));
                let after = world.call("read", json!({ "path": "a", "offset": 9 })).await.text;
                assert_eq!(after, "`a` has no line 9: it is shorter.");
            })
            .await;
        }
    }

    #[tokio::test]
    async fn what_is_no_text_is_told_as_what_it_is() {
        in_world(Offers::default(), async |world| {
            fs::create_dir(world.at("dir")).unwrap();
            fs::write(world.at("zero"), b"a\0b").unwrap();
            fs::write(world.at("bytes"), b"\xff\xfe").unwrap();
            fs::write(world.at("empty"), "").unwrap();
            for (path, what) in [
                ("dir", "is a directory. Use `list`"),
                ("zero", "is a binary file"),
                ("bytes", "no text in UTF-8"),
                ("missing", "There is no `missing`"),
            ] {
                let outcome = world.call("read", json!({ "path": path })).await;
                assert!(outcome.failed && outcome.text.contains(what), "{outcome:?}");
            }
            let empty = world.call("read", json!({ "path": "empty" })).await;
            assert_eq!((empty.failed, empty.text.as_str()), (false, "`empty` is empty."));
        })
        .await;
    }

    #[tokio::test]
    async fn a_long_file_comes_in_parts_that_make_it_whole() {
        in_world(Offers::default(), async |world| {
            let lines: Vec<String> = (0..9_000).map(|it| format!("line {it}\n")).collect();
            let whole = lines.concat();
            fs::write(world.at("long"), &whole).unwrap();
            let (mut offset, mut read) = (1, String::new());
            loop {
                let part = json!({ "path": "long", "offset": offset });
                let told = world.call("read", part).await.text;
                assert!(told.chars().count() <= crate::tool::cut::OUTPUT_CHARS_MAX);
                let Some((text, end)) = told.rsplit_once("[lines ") else {
                    read.push_str(&told);
                    break;
                };
                read.push_str(text);
                let next = end.rsplit_once("`offset` ").unwrap().1.trim_end_matches(']');
                offset = next.parse().unwrap();
            }
            assert!(read == whole);
            fs::write(world.at("wide"), "x".repeat(100_000)).unwrap();
            let wide = world.call("read", json!({ "path": "wide" })).await.text;
            assert!(wide.contains("this line is too long"), "{}", wide.len());
        })
        .await;
    }
}
