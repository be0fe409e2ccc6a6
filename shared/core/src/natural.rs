//! The order in which people expect names: digits are compared as a number, so that `label[9]` comes before
//! `label[10]`. For display only: nothing is stored or decided in this order.

use std::cmp::Ordering;

/// Compares two names. Only identical names are equal.
pub fn compare(one: &str, other: &str) -> Ordering {
    let (mut left, mut right) = (one.as_bytes(), other.as_bytes());
    loop {
        let order = match (left, right) {
            ([a, ..], [b, ..]) if a.is_ascii_digit() && b.is_ascii_digit() => {
                by_size(number(&mut left), number(&mut right))
            }
            ([a, rest @ ..], [b, others @ ..]) => {
                (left, right) = (rest, others);
                a.cmp(b)
            }
            // For example `7` and `07`.
            ([], []) => return one.cmp(other),
            (rest, others) => return rest.len().cmp(&others.len()),
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

/// Takes the leading digits off the name, and returns them without leading zeros.
fn number<'a>(name: &mut &'a [u8]) -> &'a [u8] {
    let end = name.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(name.len());
    let (digits, rest) = name.split_at(end);
    *name = rest;
    let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
    &digits[zeros..]
}

/// The number with more digits is larger.
fn by_size(one: &[u8], other: &[u8]) -> Ordering {
    one.len().cmp(&other.len()).then_with(|| one.cmp(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_within_names_count_by_their_size() {
        let ordered = [
            "a",
            "a[2]",
            "a[10]",
            "a[10][3]",
            "a[10][20]",
            "a[99999999999999999998]",
            "a[99999999999999999999]",
            "ab",
            "b07",
            "b7",
            "b8",
            "b70",
            "c",
            "on_failure:a",
        ];
        for (index, one) in ordered.iter().enumerate() {
            for (place, other) in ordered.iter().enumerate() {
                assert_eq!(compare(one, other), index.cmp(&place), "{one} {other}");
            }
        }
    }
}
