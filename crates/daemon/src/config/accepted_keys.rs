//! Lists the keys that a type accepts when it is deserialized. The deserializer here has no input: it
//! offers each type what the type asks for, and records the fields of every struct.

use serde::{
    Deserialize,
    de::{
        DeserializeSeed, Deserializer, IntoDeserializer as _, MapAccess, Visitor,
        value::{Error, StrDeserializer},
    },
    forward_to_deserialize_any,
};
use std::{cell::RefCell, collections::BTreeSet};

/// The placeholder for the names in a map of structs.
const ANY_NAME: &str = "NAME";

/// The paths of all fields that contain no other fields, as in `agents.NAME.command`.
pub(super) fn list_accepted_keys<'de, T: Deserialize<'de>>() -> BTreeSet<String> {
    let structs = RefCell::default();
    let leaves = RefCell::default();
    T::deserialize(KeyRecorder { path: String::new(), structs: &structs, leaves: &leaves })
        .unwrap_or_else(|error| {
            panic!("a type has no value that this deserializer offers: {error}")
        });
    let structs: BTreeSet<String> = structs.into_inner();
    let has_fields = |leaf: &String| {
        let below = format!("{leaf}.");
        structs.iter().any(|it| it == leaf || it.starts_with(&below))
    };
    leaves.into_inner().into_iter().filter(|it| !has_fields(it)).collect()
}

macro_rules! forward_numbers {
    ($($name:ident)*) => {
        $(fn $name<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            self.deserialize_u64(visitor)
        })*
    };
}

struct KeyRecorder<'a> {
    path: String,
    /// The paths of structs.
    structs: &'a RefCell<BTreeSet<String>>,
    /// The paths of all fields.
    leaves: &'a RefCell<BTreeSet<String>>,
}

impl KeyRecorder<'_> {
    fn descend(&self, name: &str) -> Self {
        let path =
            if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) };
        KeyRecorder { path, ..*self }
    }
}

impl<'de> Deserializer<'de> for KeyRecorder<'_> {
    type Error = Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.structs.borrow_mut().insert(self.path.clone());
        for field in fields {
            self.leaves.borrow_mut().insert(self.descend(field).path);
        }
        visitor.visit_map(FieldList { recorder: self, names: fields.iter(), name: "" })
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_map(FieldList { recorder: self, names: [ANY_NAME].iter(), name: "" })
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_seq(serde::de::value::SeqDeserializer::new(std::iter::empty::<u8>()))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let variant: StrDeserializer<'_, Error> = variants[0].into_deserializer();
        visitor.visit_enum(variant)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_bool(true)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_u64(1)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    /// Texts; `never` is a duration, too.
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_str("never")
    }

    forward_numbers! { deserialize_u8 deserialize_u16 deserialize_u32 deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_f64(1.0)
    }

    forward_to_deserialize_any! {
        f32 char str string bytes byte_buf unit unit_struct tuple tuple_struct identifier ignored_any
    }
}

struct FieldList<'a, 'n> {
    recorder: KeyRecorder<'a>,
    names: std::slice::Iter<'n, &'static str>,
    name: &'static str,
}

impl<'de> MapAccess<'de> for FieldList<'_, '_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        let Some(name) = self.names.next() else { return Ok(None) };
        self.name = name;
        seed.deserialize(StrDeserializer::new(name)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        seed.deserialize(self.recorder.descend(self.name))
    }
}
