//! JSON that is carried as its exact text.

use bytes::Bytes;
use serde::{
    Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned,
    ser::SerializeStruct as _,
};
use serde_json::value::RawValue;
use std::fmt;

/// Valid JSON as text. Cheap to clone.
#[derive(Clone, PartialEq, Eq)]
pub struct RawJson(Bytes);

impl RawJson {
    /// Wraps text that the caller knows to be JSON, because it was scanned or written by us.
    pub fn trusted(text: impl Into<Bytes>) -> RawJson {
        RawJson(text.into())
    }

    pub fn null() -> RawJson {
        RawJson(Bytes::from_static(b"null"))
    }

    pub fn bytes(&self) -> &Bytes {
        &self.0
    }

    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("JSON text was checked when it came in")
    }

    /// Reads the text as a value of another type; `None` if it has another form or is nested too deep.
    pub fn parse<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_slice(&self.0).ok()
    }
}

impl fmt::Debug for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

/// The name by which the serializer of `serde_json` recognizes JSON text that it copies unchanged. Its
/// `RawValue` serializes under the same name; a `RawValue` would check the text again for every event.
const RAW_VALUE: &str = "$serde_json::private::RawValue";

impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut raw = serializer.serialize_struct(RAW_VALUE, 1)?;
        raw.serialize_field(RAW_VALUE, self.as_str())?;
        raw.end()
    }
}

impl<'de> Deserialize<'de> for RawJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RawJson, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Ok(RawJson(Bytes::from(String::from(Box::<str>::from(raw)))))
    }
}
