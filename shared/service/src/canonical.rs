//! One text for all texts of the same JSON, for comparing requests.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The JSON without white space, with the fields of each object sorted by name and each string escaped in one way. Numbers
/// stay as they are written: `1` and `1.0` are two values to many readers.
pub(crate) fn canonical(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    write(json, &mut text);
    text
}

fn write(json: &str, into: &mut String) {
    let json = json.trim_ascii();
    let written = match json.as_bytes().first() {
        Some(b'{') => serde_json::from_str(json).map(|Fields(fields)| write_fields(fields, into)),
        Some(b'[') => serde_json::from_str(json).map(|items: Vec<_>| write_items(&items, into)),
        Some(b'"') => serde_json::from_str(json).map(|text: String| write_string(&text, into)),
        Some(_) | None => return into.push_str(json),
    };
    // Not JSON, or with a part of a character: it equals only itself.
    if written.is_err() {
        into.push_str(json);
    }
}

fn write_fields(mut fields: Vec<(String, &RawValue)>, into: &mut String) {
    fields.sort_by(|one, other| one.0.cmp(&other.0));
    for (number, (name, value)) in fields.iter().enumerate() {
        into.push(if number == 0 { '{' } else { ',' });
        write_string(name, into);
        into.push(':');
        write(value.get(), into);
    }
    into.push_str(if fields.is_empty() { "{}" } else { "}" });
}

fn write_items(items: &[&RawValue], into: &mut String) {
    for (number, item) in items.iter().enumerate() {
        into.push(if number == 0 { '[' } else { ',' });
        write(item.get(), into);
    }
    into.push_str(if items.is_empty() { "[]" } else { "]" });
}

fn write_string(text: &str, into: &mut String) {
    // A string always serialises.
    into.push_str(&serde_json::to_string(text).unwrap_or_default());
}

/// An object's fields as they are written, repeated names included.
struct Fields<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each;

        impl<'de> Visitor<'de> for Each {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = vec![];
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }

        deserializer.deserialize_map(Each)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_space_and_escapes_are_no_difference() {
        for same in [
            r#"{"a b":[1,{"x":null,"y":"ä\n"}],"c\"":1.50,"d":{},"e":[]}"#,
            "{ \"c\\\"\" : 1.50,\n \"a\\u0020b\":[ 1, {\"y\" : \"\\u00e4\\n\", \"x\" :null} ], \"e\": [ ], \"d\": { } }",
        ] {
            let expected = r#"{"a b":[1,{"x":null,"y":"ä\n"}],"c\"":1.50,"d":{},"e":[]}"#;
            assert_eq!(canonical(same), expected);
        }
        assert_eq!(canonical(" true "), "true");
    }

    #[test]
    fn all_else_is_a_difference() {
        for (one, other) in [
            ("[1,2]", "[2,1]"),
            ("1", "1.0"),
            ("12345678901234567890", "12345678901234567891"),
            (r#"{"a":1,"a":2}"#, r#"{"a":2,"a":1}"#),
            (r#"{"a":1}"#, r#"{"a":"1"}"#),
            (r#""\ud800""#, r#""\ud801""#),
            (r#"{"\ud800":1}"#, r#"{"\ud801":1}"#),
            (r#""a b""#, r#""ab""#),
        ] {
            assert_ne!(canonical(one), canonical(other), "{one} {other}");
        }
    }
}
