//! The names of the attributes and indexes that the adapter itself adds to records. A record's own short names
//! are those of its serialised form.

/// Partition key.
pub(crate) const PK: &str = "pk";
/// Sort key.
pub(crate) const SK: &str = "sk";
/// Version of an item's format.
pub(crate) const FORMAT: &str = "v";
/// When the item may be deleted, in seconds since the epoch.
pub(crate) const TTL: &str = "ttl";

/// The index of what has to be looked at, and when.
pub(crate) const DUE_INDEX: &str = "due";
/// The part of that index, as text: a key of an index has one type for good.
pub(crate) const DUE_SHARD: &str = "due_shard";
/// The instant, in milliseconds since the epoch.
pub(crate) const DUE_AT: &str = "due_at";
/// What is due then.
pub(crate) const DUE_KIND: &str = "due_kind";

/// The index that operators' lists come from.
pub(crate) const LIST_INDEX: &str = "list";
/// Which list, and which part of it.
pub(crate) const LIST_KEY: &str = "list_key";
/// The place in it: an instant in milliseconds since the epoch.
pub(crate) const LIST_AT: &str = "list_at";

/// The names that a record's own serialised form gives to what conditions look at: a task's, and those that an
/// execution has in common with it.
pub(crate) mod task {
    pub(crate) const ID: &str = "id";
    pub(crate) const DUE: &str = "due";
    pub(crate) const INCARNATION: &str = "inc";
    pub(crate) const VERSION: &str = "ver";
    pub(crate) const NONCE: &str = "non";
    pub(crate) const STATE: &str = "st";
    pub(crate) const ENDED: &str = "e";
    pub(crate) const EXPIRES_AT: &str = "x";
}

/// The names that only an execution's serialised form has.
pub(crate) mod execution {
    pub(crate) const WORKFLOW: &str = "k";
    pub(crate) const CREATED_AT: &str = "t0";
    pub(crate) const WAKES: &str = "wak";
    pub(crate) const CLOSING: &str = "c";
}

/// The names in rows of other records; nonce and version are called as in a task.
pub(crate) mod row {
    pub(crate) const EXPIRES_AT: &str = "x";
    pub(crate) const BODY: &str = "body";
    pub(crate) const PLACES: &str = "places";
}
