//! JSON values that know their position, so that every problem has a line.

use super::problem::ConfigProblem;
use serde::de::{self, Deserialize, DeserializeOwned, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// A value and its position in the text.
#[derive(Debug, Clone, Copy)]
pub(super) struct PositionedValue<'a> {
    text: &'a str,
    raw: &'a str,
}

impl<'a> PositionedValue<'a> {
    pub(super) fn parse(text: &'a str) -> Result<PositionedValue<'a>, ConfigProblem> {
        let raw: &'a RawValue = serde_json::from_str(text).map_err(|error| {
            let reason = format!("invalid JSON: {error}");
            // The parser repeats the position at the end of its message.
            let position = format!(" at line {} column {}", error.line(), error.column());
            ConfigProblem { line: error.line().max(1), reason: reason.replace(&position, "") }
        })?;
        Ok(PositionedValue { text, raw: raw.get() })
    }

    pub(super) fn problem(self, reason: impl Into<String>) -> ConfigProblem {
        // The raw value is a slice of the text.
        let offset = self.raw.as_ptr() as usize - self.text.as_ptr() as usize;
        let line = self.text[..offset].matches('\n').count() + 1;
        ConfigProblem { line, reason: reason.into() }
    }

    /// The members of an object, in order; `what` names the object in error messages.
    pub(super) fn members(self, what: &str) -> Result<ObjectMembers<'a>, ConfigProblem> {
        let members = self.read::<MemberPairs<'a>>().ok_or_else(|| {
            self.problem(format!("config: {what} must be an object: write `{{…}}`"))
        })?;
        let mut remaining: Vec<(Cow<'a, str>, PositionedValue<'a>)> = Vec::new();
        for (name, raw) in members.0 {
            let value = PositionedValue { text: self.text, raw: raw.get() };
            if remaining.iter().any(|(it, _)| *it == name) {
                return Err(value.problem(format!("config: duplicate `{name}`: keep one")));
            }
            remaining.push((name, value));
        }
        Ok(ObjectMembers { remaining })
    }

    pub(super) fn items(self) -> Option<Vec<PositionedValue<'a>>> {
        let items: Vec<&'a RawValue> = self.read()?;
        Some(
            items
                .into_iter()
                .map(|it| PositionedValue { text: self.text, raw: it.get() })
                .collect(),
        )
    }

    pub(super) fn string(self) -> Option<String> {
        self.read_owned()
    }

    pub(super) fn read_owned<T: DeserializeOwned>(self) -> Option<T> {
        self.read()
    }

    fn read<T: Deserialize<'a>>(self) -> Option<T> {
        serde_json::from_str(self.raw).ok()
    }
}

/// The members of an object that are not read yet.
#[derive(Debug)]
pub(super) struct ObjectMembers<'a> {
    remaining: Vec<(Cow<'a, str>, PositionedValue<'a>)>,
}

impl<'a> ObjectMembers<'a> {
    /// Takes a member. One that is `null` counts as missing.
    pub(super) fn take_member(&mut self, name: &str) -> Option<PositionedValue<'a>> {
        let position = self.remaining.iter().position(|(it, _)| it == name)?;
        let (_, value) = self.remaining.remove(position);
        (value.raw != "null").then_some(value)
    }

    /// The members that were not taken.
    pub(super) fn into_rest(self) -> Vec<(Cow<'a, str>, PositionedValue<'a>)> {
        self.remaining
    }
}

/// The members of an object in their order, including duplicates.
struct MemberPairs<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for MemberPairs<'a> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<MemberPairs<'a>, D::Error> {
        struct PairsVisitor;

        impl<'de> Visitor<'de> for PairsVisitor {
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

        deserializer.deserialize_map(PairsVisitor).map(MemberPairs)
    }
}
