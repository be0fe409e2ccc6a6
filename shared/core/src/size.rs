//! The size of a record as a `DynamoDB` item.
//!
//! Rule: names and strings count their UTF-8 bytes. A number counts about half its digits plus one. Booleans and
//! null count one. Lists and maps count three, plus one for each element (developer guide, "Item sizes and
//! formats").

use serde::Serialize;
use serde_json::Value;

/// Bytes that the adapter's own attributes add to a record: key names and prefixes, the index, the TTL.
pub const ADAPTER_BYTES: usize = 48;

/// The size of a record in bytes, including the adapter's attributes.
pub fn of(record: &impl Serialize) -> usize {
    // Serialisation never fails: a record's maps have string keys. If it did, the store would refuse the record too.
    serde_json::to_value(record).map_or(usize::MAX, |value| value_bytes(&value) + ADAPTER_BYTES)
}

fn value_bytes(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 1,
        Value::Number(number) => {
            let digits = number.to_string();
            digits.bytes().filter(u8::is_ascii_digit).count().div_ceil(2)
                + 1
                + usize::from(digits.starts_with('-'))
        }
        Value::String(text) => text.len(),
        Value::Array(items) => 3 + items.iter().map(|item| 1 + value_bytes(item)).sum::<usize>(),
        Value::Object(fields) => {
            3 + fields.iter().map(|(name, field)| 1 + name.len() + value_bytes(field)).sum::<usize>()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_as_the_documentation_says() {
        let item = serde_json::json!({"a": "é", "b": 1_700_000_000_000_i64, "c": [true, null]});
        // map 3 + (1+1+2) + (1+1+8) + (1+1+ list 3 + 2 + 2)
        assert_eq!(value_bytes(&item), 3 + 4 + 10 + 9);
        assert_eq!(value_bytes(&Value::from(-12)), 3);
    }
}
