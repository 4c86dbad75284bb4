//! JSON in which no object has a member twice. Parsers differ in which of the two they take, so what
//! is checked here could be something else to the agent that reads the same text.

use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Number, Value};
use std::fmt;

/// Reads a text. It is refused if it is not JSON, if a number or a text cannot be represented, if it
/// is nested too deeply, and if an object has a member twice.
pub(crate) fn parse(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str::<Unique>(text).map(|it| it.0)
}

struct Unique(Value);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Unique, D::Error> {
        deserializer.deserialize_any(UniqueVisitor).map(Unique)
    }
}

struct UniqueVisitor;

impl<'de> Visitor<'de> for UniqueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::from).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(Unique(value)) = seq.next_element()? {
            values.push(value);
        }
        Ok(values.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some((name, Unique(value))) = map.next_entry::<String, Unique>()? {
            if members.contains_key(&name) {
                return Err(A::Error::custom(format_args!("member `{name}` is there twice")));
            }
            members.insert(name, value);
        }
        Ok(members.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_without_a_repeated_member_is_read_as_it_is() {
        let text = r#"{"a":[1,-2,1.5,true,null,"x\n"],"b":{"a":{}}}"#;
        let expected = json!({ "a": [1, -2, 1.5, true, null, "x\n"], "b": { "a": {} } });
        assert_eq!(parse(text).unwrap(), expected);
    }

    #[test]
    fn a_repeated_member_is_refused_at_any_depth_and_in_any_spelling() {
        for text in [r#"{"a":1,"a":1}"#, r#"{"a":1,"\u0061":1}"#, r#"[{"b":[{"a":1,"a":2}]}]"#] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains("member `a` is there twice"), "{text}: {error}");
        }
    }

    #[test]
    fn what_parsers_read_differently_is_refused() {
        let deep = "[".repeat(200) + &"]".repeat(200);
        for text in [r#""\ud800""#, "1e999", "{} {}", "{", &deep] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
