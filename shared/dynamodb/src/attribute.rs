//! The names of the attributes and indexes that the adapter itself adds to records. The short names of a record's own
//! fields come from its serialised form.

/// Partition key.
pub(crate) const PK: &str = "pk";
/// Sort key.
pub(crate) const SK: &str = "sk";
/// Version of an item's format.
pub(crate) const FORMAT: &str = "v";
/// When the item may be deleted, in seconds since the epoch.
pub(crate) const TTL: &str = "ttl";

/// The index of due records: which record must be processed, and when.
pub(crate) const DUE_INDEX: &str = "due";
/// The shard in that index, as text: the type of an index key can't change.
pub(crate) const DUE_SHARD: &str = "due_shard";
/// The instant, in milliseconds since the epoch.
pub(crate) const DUE_AT: &str = "due_at";
pub(crate) const DUE_KIND: &str = "due_kind";
/// What that index has besides its keys: what is due, and what the hint of an execution that sleeps needs, so that the
/// tick sends it without reading the record. These never change while a record has its due slot, so they cost no write.
pub(crate) const DUE_PROJECTION: [&str; 4] = [DUE_KIND, task::QUEUE, task::INCARNATION, task::LANE];

/// The index for operators' lists.
pub(crate) const LIST_INDEX: &str = "list";
/// Which list, and which of its shards.
pub(crate) const LIST_KEY: &str = "list_key";
/// The position in it: an instant in milliseconds since the epoch.
pub(crate) const LIST_AT: &str = "list_at";

/// The index of executions of all workflows: only those that failed or timed out, unless the store lists all. No other
/// item is in it. Its sort key is that of the list index.
pub(crate) const ALL_INDEX: &str = "all";
/// The list's name, and which of its shards.
pub(crate) const ALL_KEY: &str = "all_key";

/// The names of fields in a record's serialised form that conditions use: a task's fields, and those that an execution
/// shares with a task.
pub(crate) mod task {
    pub(crate) const ID: &str = "id";
    pub(crate) const DUE: &str = "due";
    pub(crate) const INCARNATION: &str = "inc";
    pub(crate) const QUEUE: &str = "q";
    pub(crate) const LANE: &str = "ln";
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

/// The names that only the items of those who wait at a key have.
pub(crate) mod gate {
    pub(crate) const WAITER: &str = "w";
}

/// The names in rows of other records; nonce and version have the same names as in a task.
pub(crate) mod row {
    pub(crate) const EXPIRES_AT: &str = "x";
    pub(crate) const BODY: &str = "body";
    pub(crate) const PLACES: &str = "places";
}
