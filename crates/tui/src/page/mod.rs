//! What the pages have in common: inputs, effects, and the context in which an input is handled.

mod context;
mod effect;
mod input;
mod options;
mod page_keys;

pub(crate) use context::{PageChange, UpdateContext, UpdateResult};
pub(crate) use effect::AppEffect;
pub(crate) use input::AppInput;
pub(crate) use options::{ActivePage, ViewOptions};
pub(crate) use page_keys::{PageAction, find_page_action};
