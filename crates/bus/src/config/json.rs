//! JSON whose values know where they stand, so that whatever is wrong with one has a line.

use super::flaw::Flaw;
use serde::de::{self, Deserialize, DeserializeOwned, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// A value and its place in the text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Value<'a> {
    text: &'a str,
    raw: &'a str,
}

impl<'a> Value<'a> {
    pub(super) fn parse(text: &'a str) -> Result<Value<'a>, Flaw> {
        let raw: &'a RawValue = serde_json::from_str(text).map_err(|error| {
            let reason = format!("this is no JSON: {error}");
            // The reader ends with the place, which stands before the sentence already.
            let at = format!(" at line {} column {}", error.line(), error.column());
            Flaw { line: error.line().max(1), reason: reason.replace(&at, "") }
        })?;
        Ok(Value { text, raw: raw.get() })
    }

    pub(super) fn flaw(self, reason: impl Into<String>) -> Flaw {
        // What was parsed lies inside of the text it was parsed from.
        let offset = self.raw.as_ptr() as usize - self.text.as_ptr() as usize;
        let line = self.text[..offset].matches('\n').count() + 1;
        Flaw { line, reason: reason.into() }
    }

    /// The members of an object, in order; `what` names it for people.
    pub(super) fn members(self, what: &str) -> Result<Members<'a>, Flaw> {
        let members = self
            .read::<Pairs<'a>>()
            .ok_or_else(|| self.flaw(format!("config: {what} must be an object: write `{{…}}`")))?;
        let mut left: Vec<(Cow<'a, str>, Value<'a>)> = Vec::new();
        for (name, raw) in members.0 {
            let value = Value { text: self.text, raw: raw.get() };
            if left.iter().any(|(it, _)| *it == name) {
                return Err(value.flaw(format!("config: `{name}` stands twice: keep one")));
            }
            left.push((name, value));
        }
        Ok(Members { left })
    }

    pub(super) fn items(self) -> Option<Vec<Value<'a>>> {
        let items: Vec<&'a RawValue> = self.read()?;
        Some(items.into_iter().map(|it| Value { text: self.text, raw: it.get() }).collect())
    }

    pub(super) fn string(self) -> Option<String> {
        self.get()
    }

    pub(super) fn get<T: DeserializeOwned>(self) -> Option<T> {
        self.read()
    }

    fn read<T: Deserialize<'a>>(self) -> Option<T> {
        serde_json::from_str(self.raw).ok()
    }
}

/// What is left of an object while it is being read.
#[derive(Debug)]
pub(super) struct Members<'a> {
    left: Vec<(Cow<'a, str>, Value<'a>)>,
}

impl<'a> Members<'a> {
    /// A member that is `null` is not there.
    pub(super) fn take(&mut self, name: &str) -> Option<Value<'a>> {
        let at = self.left.iter().position(|(it, _)| it == name)?;
        let (_, value) = self.left.remove(at);
        (value.raw != "null").then_some(value)
    }

    /// What nobody asked for.
    pub(super) fn rest(self) -> Vec<(Cow<'a, str>, Value<'a>)> {
        self.left
    }
}

/// The members of an object in the order written, twins included.
struct Pairs<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Pairs<'a> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Pairs<'a>, D::Error> {
        struct Collect;

        impl<'de> Visitor<'de> for Collect {
            type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(name) = map.next_key::<String>()? {
                    pairs.push((Cow::Owned(name), map.next_value()?));
                }
                Ok(pairs)
            }
        }

        deserializer.deserialize_map(Collect).map(Pairs)
    }
}
