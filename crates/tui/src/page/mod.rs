//! What the pages have in common: inputs, effects, the context in which an input is handled, a field for one line, and rows.

mod context;
mod effect;
mod input;
mod line_field;
mod options;
mod rows;

pub(crate) use context::{PageChange, UpdateContext};
pub(crate) use effect::AppEffect;
pub(crate) use input::AppInput;
pub(crate) use line_field::LineField;
pub(crate) use options::{ActivePage, ViewOptions};
pub(crate) use rows::split_rows;
