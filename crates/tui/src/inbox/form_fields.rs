//! The fields of a form: from the JSON schema of the agent to fields, and from their values to the answer.

use crate::page::LineField;
use serde_json::{Map, Value, json};

/// More fields or choices are not shown.
const FIELDS_MAX: usize = 100;
const CHOICES_MAX: usize = 500;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FieldChoice {
    pub(crate) value: String,
    pub(crate) label: String,
}

/// The value of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FieldValue {
    Text(LineField),
    /// `is_integer` refuses fractions.
    Number {
        field: LineField,
        is_integer: bool,
    },
    Boolean(bool),
    Choice {
        choices: Vec<FieldChoice>,
        chosen: Option<usize>,
    },
    /// Several choices, and the one that the keys are about.
    Choices {
        choices: Vec<FieldChoice>,
        chosen: Vec<bool>,
        focus: usize,
    },
    /// A kind of field that cannot be shown; it is left out of the answer.
    Unknown,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FormField {
    pub(crate) name: String,
    pub(crate) label: String,
    pub(crate) description: Option<String>,
    pub(crate) is_required: bool,
    /// Limits of the length of a text, of a number, or of the number of choices.
    min: Option<f64>,
    max: Option<f64>,
    pub(crate) value: FieldValue,
}

/// The fields in the order of the schema.
pub(crate) fn read_fields(schema: &Value) -> Vec<FormField> {
    let required: Vec<_> = texts(&schema["required"]).collect();
    let properties = schema["properties"].as_object();
    let properties = properties.into_iter().flatten().take(FIELDS_MAX);
    properties.map(|(name, it)| read_field(name, it, required.contains(&name.as_str()))).collect()
}

fn read_field(name: &str, property: &Value, is_required: bool) -> FormField {
    let kind = property["type"].as_str().unwrap_or_default();
    let limits = match kind {
        "number" | "integer" => ["minimum", "maximum"],
        "array" => ["minItems", "maxItems"],
        _ => ["minLength", "maxLength"],
    };
    let [min, max] = limits.map(|it| property[it].as_f64());
    FormField {
        name: name.to_owned(),
        label: property["title"].as_str().unwrap_or(name).to_owned(),
        description: property["description"].as_str().map(str::to_owned),
        is_required,
        min,
        max,
        value: read_value(kind, property),
    }
}

fn read_value(kind: &str, property: &Value) -> FieldValue {
    let default = &property["default"];
    let default_text = match default {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => String::new(),
    };
    let choices = read_choices(if kind == "array" { &property["items"] } else { property });
    match kind {
        "string" if !choices.is_empty() => {
            let chosen = choices.iter().position(|it| it.value == default_text);
            FieldValue::Choice { choices, chosen }
        }
        "string" => FieldValue::Text(LineField::new(&default_text)),
        "number" | "integer" => FieldValue::Number {
            field: LineField::new(&default_text),
            is_integer: kind == "integer",
        },
        "boolean" => FieldValue::Boolean(default == true),
        "array" if !choices.is_empty() => {
            let defaults: Vec<_> = texts(default).collect();
            let chosen = choices.iter().map(|it| defaults.contains(&it.value.as_str())).collect();
            FieldValue::Choices { choices, chosen, focus: 0 }
        }
        _ => FieldValue::Unknown,
    }
}

/// The choices of `enum`, or of `oneOf` or `anyOf` with titles; `enumNames` is the older form of titles.
fn read_choices(source: &Value) -> Vec<FieldChoice> {
    let titled = [&source["oneOf"], &source["anyOf"]].into_iter().find_map(Value::as_array);
    if let Some(titled) = titled {
        let choice = |it: &Value| {
            let value = it["const"].as_str()?.to_owned();
            let label = it["title"].as_str().unwrap_or(&value).to_owned();
            Some(FieldChoice { value, label })
        };
        return titled.iter().filter_map(choice).take(CHOICES_MAX).collect();
    }
    let names: Vec<_> = texts(&source["enumNames"]).collect();
    let values = texts(&source["enum"]).take(CHOICES_MAX).enumerate();
    let choice = |(index, value): (usize, &str)| FieldChoice {
        value: value.to_owned(),
        label: names.get(index).copied().unwrap_or(value).to_owned(),
    };
    values.map(choice).collect()
}

fn texts(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

impl FormField {
    /// The lines of the field: its value, and its description or problem.
    pub(crate) fn line_count(&self) -> usize {
        1 + usize::from(self.description.is_some() || self.problem().is_some())
    }

    /// What is wrong with the value, in words for the user.
    pub(crate) fn problem(&self) -> Option<String> {
        match &self.value {
            FieldValue::Unknown => {
                self.is_required.then(|| "This field cannot be shown here.".to_owned())
            }
            FieldValue::Boolean(_) => None,
            FieldValue::Choice { chosen, .. } => {
                (self.is_required && chosen.is_none()).then(|| "Choose a value.".to_owned())
            }
            FieldValue::Choices { chosen, .. } => {
                self.check_count(chosen.iter().filter(|it| **it).count())
            }
            FieldValue::Text(field) if field.text().is_empty() => self.missing(),
            FieldValue::Text(field) => self.check_length(field.text().chars().count()),
            FieldValue::Number { field, .. } if field.text().trim().is_empty() => self.missing(),
            FieldValue::Number { field, is_integer } => {
                self.check_number(field.text().trim(), *is_integer)
            }
        }
    }

    fn missing(&self) -> Option<String> {
        self.is_required.then(|| "A value is required.".to_owned())
    }

    fn check_length(&self, length: usize) -> Option<String> {
        #[expect(clippy::cast_precision_loss, reason = "a field is far shorter")]
        let length = length as f64;
        match (self.min, self.max) {
            (Some(min), _) if length < min => {
                Some(format!("At least {min} characters are required."))
            }
            (_, Some(max)) if max < length => {
                Some(format!("At most {max} characters are permitted."))
            }
            _ => None,
        }
    }

    fn check_count(&self, count: usize) -> Option<String> {
        #[expect(clippy::cast_precision_loss, reason = "there are far fewer choices")]
        let number = count as f64;
        let least = self.min.unwrap_or(if self.is_required { 1.0 } else { 0.0 });
        match self.max {
            _ if count == 0 && !self.is_required => None,
            _ if number < least => Some(format!("Choose at least {least}.")),
            Some(max) if max < number => Some(format!("Choose at most {max}.")),
            _ => None,
        }
    }

    fn check_number(&self, text: &str, is_integer: bool) -> Option<String> {
        let Some(number) = text.parse::<f64>().ok().filter(|it| it.is_finite()) else {
            return Some("This is not a number.".to_owned());
        };
        if is_integer && text.parse::<i64>().is_err() {
            return Some("This is not a whole number.".to_owned());
        }
        match (self.min, self.max) {
            (Some(min), _) if number < min => Some(format!("The least value is {min}.")),
            (_, Some(max)) if max < number => Some(format!("The greatest value is {max}.")),
            _ => None,
        }
    }

    /// The value in the answer; `None` if the field is left out.
    fn to_json(&self) -> Option<Value> {
        match &self.value {
            FieldValue::Text(field) => {
                Some(json!(field.text())).filter(|_| !field.text().is_empty())
            }
            FieldValue::Number { field, is_integer: true } => {
                field.text().trim().parse::<i64>().ok().map(|it| json!(it))
            }
            FieldValue::Number { field, .. } => {
                field.text().trim().parse::<f64>().ok().map(|it| json!(it))
            }
            FieldValue::Boolean(value) => Some(json!(value)),
            FieldValue::Choice { choices, chosen } => chosen.map(|it| json!(choices[it].value)),
            FieldValue::Choices { choices, chosen, .. } => {
                let values = choices.iter().zip(chosen).filter(|(_, is_chosen)| **is_chosen);
                let values: Vec<_> = values.map(|(it, _)| &it.value).collect();
                (self.is_required || !values.is_empty()).then(|| json!(values))
            }
            FieldValue::Unknown => None,
        }
    }
}

/// The `content` of the answer. Fields without a value are left out.
pub(crate) fn to_content(fields: &[FormField]) -> Value {
    let members = fields.iter().filter_map(|it| Some((it.name.clone(), it.to_json()?)));
    Value::Object(members.collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(property: &Value, value: &str) -> FormField {
        let schema = json!({ "properties": { "it": property }, "required": ["it"] });
        let mut field = read_fields(&schema).remove(0);
        if let FieldValue::Text(line) | FieldValue::Number { field: line, .. } = &mut field.value {
            *line = LineField::new(value);
        }
        field
    }

    #[test]
    fn values_are_checked_as_the_schema_says() {
        for (property, value, problem) in [
            (json!({ "type": "string" }), "", "A value is required."),
            (
                json!({ "type": "string", "minLength": 3 }),
                "ab",
                "At least 3 characters are required.",
            ),
            (
                json!({ "type": "string", "maxLength": 1 }),
                "ab",
                "At most 1 characters are permitted.",
            ),
            (json!({ "type": "integer" }), "1.5", "This is not a whole number."),
            (json!({ "type": "number" }), "one", "This is not a number."),
            (json!({ "type": "number", "minimum": 2 }), "1.5", "The least value is 2."),
            (json!({ "type": "integer", "maximum": 9 }), "10", "The greatest value is 9."),
            (json!({ "type": "string", "enum": ["a"] }), "", "Choose a value."),
            (json!({ "type": "array", "items": { "enum": ["a"] } }), "", "Choose at least 1."),
            (json!({ "type": "object" }), "", "This field cannot be shown here."),
        ] {
            assert_eq!(field(&property, value).problem().as_deref(), Some(problem), "{property}");
        }
        assert_eq!(field(&json!({ "type": "number" }), "-1e3").problem(), None);
    }

    #[test]
    fn content_has_the_types_of_the_schema_and_the_defaults() {
        let schema = json!({ "properties": {
            "text": { "type": "string", "default": "x" },
            "count": { "type": "integer", "default": 3 },
            "share": { "type": "number", "default": 0.5 },
            "flag": { "type": "boolean", "default": true },
            "color": { "type": "string", "oneOf": [{ "const": "r", "title": "Red" }], "default": "r" },
            "tags": { "type": "array", "items": { "enum": ["a", "b"] }, "default": ["b"] },
            "empty": { "type": "string" },
            "other": { "type": "object" },
        } });
        let content = to_content(&read_fields(&schema));
        let expected = json!({ "text": "x", "count": 3, "share": 0.5, "flag": true, "color": "r", "tags": ["b"] });
        assert_eq!(content, expected);
        assert_eq!(to_content(&read_fields(&Value::Null)), json!({}));
    }
}
