//! The capacity that the store's calls consumed, as `DynamoDB` reports it.

use std::sync::{Mutex, PoisonError};

use aws_sdk_dynamodb::types::ConsumedCapacity;

/// Capacity used and requests made since the store was built. Only grows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Read units of the table and its indexes.
    pub read_units: f64,
    /// Write units of the table and its indexes, as reported: without those of [`Usage::failed_condition_units`].
    pub write_units: f64,
    /// Requests, without the SDK's own retries.
    pub requests: u64,
    /// Write requests that were refused because a condition failed.
    pub failed_conditions: u64,
    /// The write units that failed conditions cost at least: `DynamoDB` bills them without reporting them. One for a
    /// single write, two for each write of a transaction.
    pub failed_condition_units: f64,
}

impl Usage {
    /// What was used since `earlier`, a value of the same store.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            read_units: self.read_units - earlier.read_units,
            write_units: self.write_units - earlier.write_units,
            requests: self.requests.saturating_sub(earlier.requests),
            failed_conditions: self.failed_conditions.saturating_sub(earlier.failed_conditions),
            failed_condition_units: self.failed_condition_units - earlier.failed_condition_units,
        }
    }
}

/// Adds up the reported consumption of each answer.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    used: Mutex<Usage>,
}

impl Meter {
    pub(crate) fn usage(&self) -> Usage {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request that is about to be sent.
    pub(crate) fn request(&self) {
        self.change(|used| used.requests += 1);
    }

    /// Counts the consumption of a read.
    pub(crate) fn read<'a>(&self, consumed: impl IntoIterator<Item = &'a ConsumedCapacity>) {
        let units: f64 = consumed.into_iter().filter_map(|capacity| capacity.capacity_units).sum();
        self.change(|used| used.read_units += units);
    }

    /// Counts the consumption of a write. A transaction that was already applied reports reads instead.
    pub(crate) fn written<'a>(&self, consumed: impl IntoIterator<Item = &'a ConsumedCapacity>) {
        for capacity in consumed {
            let (read, write) = match (capacity.read_capacity_units, capacity.write_capacity_units) {
                (None, None) => (None, capacity.capacity_units),
                separate => separate,
            };
            self.change(|used| {
                used.read_units += read.unwrap_or_default();
                used.write_units += write.unwrap_or_default();
            });
        }
    }

    /// Counts a failed condition, which cost at least this much.
    pub(crate) fn condition_failed(&self, units: f64) {
        self.change(|used| {
            used.failed_conditions += 1;
            used.failed_condition_units += units;
        });
    }

    fn change(&self, change: impl FnOnce(&mut Usage)) {
        change(&mut self.used.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_add_up_and_differences_are_taken() {
        let meter = Meter::default();
        let of = |units| ConsumedCapacity::builder().capacity_units(units).build();
        meter.request();
        meter.read([&of(0.5)]);
        let before = meter.usage();
        meter.request();
        meter.written([&of(3.0)]);
        meter.written([&ConsumedCapacity::builder().capacity_units(4.0).read_capacity_units(4.0).build()]);
        meter.condition_failed(1.0);
        let used = meter.usage().since(before);
        assert!((used.write_units - 3.0).abs() < f64::EPSILON);
        assert!((used.read_units - 4.0).abs() < f64::EPSILON);
        assert_eq!((used.requests, used.failed_conditions), (1, 1));
        assert!((meter.usage().read_units - 4.5).abs() < f64::EPSILON);
    }
}
