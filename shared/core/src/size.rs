//! The size of a record as a `DynamoDB` item.
//!
//! Rule: names and strings count their UTF-8 bytes. A number counts about half its digits plus one. Booleans and
//! null count one. Lists and maps count three, plus one for each element (developer guide, "Item sizes and
//! formats").

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{CharEscape, Formatter, Serializer};

/// Bytes that the adapter's own attributes add to a record: key names and prefixes, the index, the TTL.
pub const ADAPTER_BYTES: usize = 48;

/// The size of a record in bytes, including the adapter's attributes.
///
/// Each decision asks for it. So it is counted while the record is serialised, and nothing is kept.
pub fn of(record: &impl Serialize) -> usize {
    let mut counter = Counter(ADAPTER_BYTES);
    // Serialisation never fails: a record's maps have string keys. If it did, the store would refuse the record too.
    let result = record.serialize(&mut Serializer::with_formatter(&mut counter, ItemFormat));
    result.map_or(usize::MAX, |()| counter.0)
}

/// Counts what is written.
struct Counter(usize);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes as many bytes for each value as it has in an item. What they are doesn't matter.
struct ItemFormat;

/// As many digits as no number has.
const DIGITS: [u8; 32] = [b'0'; 32];

fn number<W: ?Sized + Write>(writer: &mut W, digits: usize, is_negative: bool) -> io::Result<()> {
    let bytes = digits.div_ceil(2) + 1 + usize::from(is_negative);
    writer.write_all(&DIGITS[..bytes.min(DIGITS.len())])
}

/// The methods for integers.
macro_rules! integers {
    ($($method:ident: $integer:ty),*) => {
        $(fn $method<W: ?Sized + Write>(&mut self, writer: &mut W, value: $integer) -> io::Result<()> {
            let digits = value.unsigned_abs().checked_ilog10().map_or(1, |power| power as usize + 1);
            number(writer, digits, value < 0)
        })*
    };
}

impl Formatter for ItemFormat {
    fn write_null<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b"0")
    }

    fn write_bool<W: ?Sized + Write>(&mut self, writer: &mut W, _value: bool) -> io::Result<()> {
        writer.write_all(b"0")
    }

    integers!(write_i8: i8, write_i16: i16, write_i32: i32, write_i64: i64);

    fn write_u8<W: ?Sized + Write>(&mut self, writer: &mut W, value: u8) -> io::Result<()> {
        self.write_u64(writer, value.into())
    }

    fn write_u16<W: ?Sized + Write>(&mut self, writer: &mut W, value: u16) -> io::Result<()> {
        self.write_u64(writer, value.into())
    }

    fn write_u32<W: ?Sized + Write>(&mut self, writer: &mut W, value: u32) -> io::Result<()> {
        self.write_u64(writer, value.into())
    }

    fn write_u64<W: ?Sized + Write>(&mut self, writer: &mut W, value: u64) -> io::Result<()> {
        number(writer, value.checked_ilog10().map_or(1, |power| power as usize + 1), false)
    }

    fn write_f64<W: ?Sized + Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        let digits = value.to_string().bytes().filter(u8::is_ascii_digit).count();
        number(writer, digits, value < 0.0)
    }

    fn begin_string<W: ?Sized + Write>(&mut self, _writer: &mut W) -> io::Result<()> {
        Ok(())
    }

    fn end_string<W: ?Sized + Write>(&mut self, _writer: &mut W) -> io::Result<()> {
        Ok(())
    }

    fn write_char_escape<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        _escape: CharEscape,
    ) -> io::Result<()> {
        writer.write_all(b"0")
    }

    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b"000")
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, writer: &mut W, _is_first: bool) -> io::Result<()> {
        writer.write_all(b"0")
    }

    fn end_array<W: ?Sized + Write>(&mut self, _writer: &mut W) -> io::Result<()> {
        Ok(())
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b"000")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, _is_first: bool) -> io::Result<()> {
        writer.write_all(b"0")
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, _writer: &mut W) -> io::Result<()> {
        Ok(())
    }

    fn end_object<W: ?Sized + Write>(&mut self, _writer: &mut W) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn counts_as_the_documentation_says() {
        for (value, bytes) in [
            (json!({}), 3),
            (json!([]), 3),
            (json!(null), 1),
            (json!(true), 1),
            (json!(0), 2),
            (json!(-12), 3),
            (json!(123), 3),
            (json!(1.5), 2),
            (json!(""), 0),
            (json!("é"), 2),
            // What JSON escapes is one byte.
            (json!("a\"b\n\u{1}"), 5),
            (json!([[], [1]]), 3 + (1 + 3) + (1 + 3 + 1 + 2)),
            // The map, and of each element its own byte, its name and its value.
            (
                json!({"a": "é", "b": 1_700_000_000_000_i64, "c": [true, null]}),
                3 + (1 + 1 + 2) + (1 + 1 + 8) + (1 + 1 + 3 + 2 + 2),
            ),
        ] {
            assert_eq!(of(&value), bytes + ADAPTER_BYTES, "{value}");
        }
    }

    #[test]
    fn a_variant_counts_as_its_name_or_as_a_map_of_one_element() {
        #[derive(Serialize)]
        enum Kind {
            Plain,
            With { number: u8 },
        }
        let of_value = |value: &Value| of(value);
        assert_eq!(of(&Kind::Plain), of_value(&json!("Plain")));
        assert_eq!(of(&Kind::With { number: 7 }), of_value(&json!({"With": {"number": 7}})));
    }
}
