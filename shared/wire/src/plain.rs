//! Access to the plain values in the types of answers.

use std::fmt;
use std::ops::Deref;

use serde::de::DeserializeOwned;
use tickover_core::duration::Millis;
use tickover_core::payload::Json;
use tickover_core::time::Timestamp;

use crate::read::{self, Unreadable};
use crate::{Cursor, Instant, LeaseToken, Length, OpenEnum, Verbatim, Words};

impl Deref for Instant {
    type Target = Timestamp;

    fn deref(&self) -> &Timestamp {
        &self.0
    }
}

impl PartialEq<Timestamp> for Instant {
    fn eq(&self, other: &Timestamp) -> bool {
        self.0 == *other
    }
}

impl fmt::Display for Length {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        Millis::from(*self).fmt(formatter)
    }
}

impl PartialEq<Millis> for Length {
    fn eq(&self, other: &Millis) -> bool {
        Millis::from(*self) == *other
    }
}

impl<T: Words> PartialEq<T> for OpenEnum<T> {
    fn eq(&self, other: &T) -> bool {
        self.known() == Some(*other)
    }
}

impl Deref for Verbatim {
    type Target = Json;

    fn deref(&self) -> &Json {
        &self.0
    }
}

impl Verbatim {
    /// Reads it as a type.
    ///
    /// # Errors
    ///
    /// Returns where a value doesn't fit, and why.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Unreadable> {
        read::answer(self.as_str().as_bytes())
    }
}

impl From<Cursor> for String {
    fn from(cursor: Cursor) -> Self {
        cursor.0
    }
}

impl From<LeaseToken> for String {
    fn from(lease: LeaseToken) -> Self {
        lease.0
    }
}
