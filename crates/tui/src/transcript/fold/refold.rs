//! Folds a range again after events were added before it or removed from it.

use super::TranscriptFold;
use crate::transcript::{ItemContent, TranscriptItem};
use jackfield_events::ReceivedEvent;
use std::collections::{BTreeMap, BTreeSet};

impl TranscriptFold {
    /// Folds these events. Items that are the same as before keep their key and their revision; a message or a tool
    /// call whose beginning was added or removed keeps its key.
    pub(crate) fn refold<'a>(&mut self, events: impl IntoIterator<Item = &'a ReceivedEvent>) {
        let before = std::mem::take(self);
        self.revision = before.revision;
        for it in events {
            self.append(it);
        }
        keep_keys(&mut self.items, &before.items);
    }
}

fn keep_keys(items: &mut [TranscriptItem], before: &[TranscriptItem]) {
    let calls: BTreeMap<&str, &TranscriptItem> =
        before.iter().filter_map(|it| Some((call_id(it)?, it))).collect();
    let mut kept_keys = BTreeSet::new();
    for item in items {
        let same = before.binary_search_by_key(&item.seq, |it| it.seq).ok().map(|it| &before[it]);
        let same_call = || {
            let old = *calls.get(call_id(item)?)?;
            has_common_events(item, old).then_some(old)
        };
        let same = same.or_else(same_call).or_else(|| find_same_text(item, before));
        // A text that was divided has one item with the key of the whole.
        let Some(old) = same.filter(|it| kept_keys.insert(it.key)) else { continue };
        item.key = old.key;
        if is_same(item, old) {
            item.revision = old.revision;
        }
    }
}

fn call_id(item: &TranscriptItem) -> Option<&str> {
    match &item.content {
        ItemContent::ToolCall(call) => Some(&call.call_id),
        _ => None,
    }
}

fn has_common_events(a: &TranscriptItem, b: &TranscriptItem) -> bool {
    a.seq <= b.last_seq && b.seq <= a.last_seq
}

/// The text that has events in common with this one.
fn find_same_text<'a>(
    item: &TranscriptItem,
    before: &'a [TranscriptItem],
) -> Option<&'a TranscriptItem> {
    if !is_text(item) {
        return None;
    }
    let start = before.partition_point(|it| it.seq <= item.seq).saturating_sub(1);
    let near = before[start..].iter().take_while(|it| it.seq <= item.last_seq);
    near.take(3).find(|it| {
        let is_kind = std::mem::discriminant(&it.content) == std::mem::discriminant(&item.content);
        is_kind && is_text(it) && has_common_events(item, it)
    })
}

/// Whether the item consists of chunks.
fn is_text(item: &TranscriptItem) -> bool {
    match &item.content {
        ItemContent::Message { .. } | ItemContent::Thought { .. } => true,
        ItemContent::Prompt { by, .. } => by.is_empty(),
        _ => false,
    }
}

fn is_same(a: &TranscriptItem, b: &TranscriptItem) -> bool {
    (a.seq, a.last_seq, a.at, a.turn) == (b.seq, b.last_seq, b.at, b.turn) && a.content == b.content
}
