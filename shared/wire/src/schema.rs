//! Schemas of the types with their own serialisation. Their bounds are the constants of the checks, so that the
//! document has the same bounds.

use std::borrow::Cow;

use tickover_core::duration::Millis;
use tickover_core::retry::{MAX_CODE_CHARS, MAX_CODES, MAX_LISTED_DELAYS};
use utoipa::openapi::schema::{AdditionalProperties, ArrayItems, SchemaType};
use utoipa::openapi::{
    Array, ArrayBuilder, KnownFormat, Object, ObjectBuilder, OneOfBuilder, Ref, RefOr, Schema, SchemaFormat,
    Type,
};
use utoipa::{Number, PartialSchema, ToSchema};

use tickover_core::limits::{LABEL_NAME_MAX, LABEL_VALUE_MAX, LABELS_MAX};

use crate::request::{Codes, Delay, ScheduleRequest, StartRequest, Statuses, UniqueFor};
use crate::{
    Attempts, ClaimCount, ConcurrencyLimit, CronText, Cursor, Duration, FailureCode, IdempotencyKey, Instant,
    Interval, Label, Labels, Lease, LeaseToken, Length, OpenEnum, PageLimit, Progress, RateLimit, RatePeriod,
    RunCount, RunNumber, RunTimeout, Span, Timeout, ValueVersion, Verbatim, Wait, Window, Word, Words,
};

fn of(kind: Type) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(kind)
}

fn whole(least: usize, most: usize) -> Object {
    of(Type::Integer).minimum(Some(Number::UInt(least))).maximum(Some(Number::UInt(most))).build()
}

fn list(entries: impl Into<ArrayItems>, least: usize, most: usize) -> Array {
    ArrayBuilder::new().items(entries).min_items(Some(least)).max_items(Some(most)).build()
}

fn ms(span: Millis) -> usize {
    usize::try_from(span.as_u64()).unwrap_or(usize::MAX)
}

/// Types whose schema refers to no other schema.
macro_rules! schemas {
    ($($of:ty, $schema:expr;)*) => {$(
        impl PartialSchema for $of {
            fn schema() -> RefOr<Schema> {
                RefOr::T(Schema::from($schema))
            }
        }

        impl ToSchema for $of {}
    )*};
}

schemas! {
    Instant, of(Type::String).format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)));
    Length, of(Type::String).description(Some("A length of time.")).examples(["1h 30m"]);
    Duration, span::<Self>("A length of time: at most a year.");
    Timeout, span::<Self>("A length of time: longer than zero, at most a year.");
    RunTimeout, span::<Self>("A length of time: 1 s to a year.");
    Interval, span::<Self>("Whole seconds: 1 s to a year.");
    Lease, span::<Self>("A length of time: 1 s to 12 h.");
    Wait, span::<Self>("A length of time: at most 20 s.");
    ClaimCount, whole(Self::LEAST, Self::MOST);
    PageLimit, whole(Self::LEAST, Self::MOST);
    ConcurrencyLimit, whole(Self::LEAST, Self::MOST);
    RateLimit, whole(Self::LEAST, Self::MOST);
    RatePeriod, span::<Self>("A length of time: longer than zero, at most 24 h.");
    Window, span::<Self>("A length of time: longer than zero, at most 30 days.");
    UniqueFor, of(Type::String).min_length(Some(2))
        .description(Some("`open`, `waiting`, or a length of time of at most 30 days."));
    RunCount, whole(Self::LEAST, Self::MOST);
    RunNumber, whole(Self::LEAST, Self::MOST);
    ValueVersion, whole(Self::LEAST, Self::MOST);
    Progress, of(Type::Number).minimum(Some(Number::Float(0.0))).maximum(Some(Number::Float(1.0)));
    Attempts, of(Type::Integer).minimum(Some(Number::Int(-1))).maximum(Some(Number::UInt(0xffff_ffff)))
        .description(Some("Attempts, the first included: 0 to skip the task, -1 for no limit."));
    IdempotencyKey, text(Self::MOST);
    LeaseToken, text(Self::MOST);
    FailureCode, text(None);
    CronText, text(Self::MOST);
    Cursor, text(Self::MOST);
    Label, of(Type::String).min_length(Some(2)).max_length(Some(LABEL_NAME_MAX + 1 + LABEL_VALUE_MAX))
        .pattern(Some("^[^=]+="));
    Labels, of(Type::Object).max_properties(Some(LABELS_MAX))
        .property_names(Some(
            of(Type::String).min_length(Some(1)).max_length(Some(LABEL_NAME_MAX)).pattern(Some("^[^=]+$")),
        ))
        .additional_properties(Some(AdditionalProperties::RefOr(RefOr::T(Schema::from(
            of(Type::String).max_length(Some(LABEL_VALUE_MAX)),
        )))));
    Codes, list(of(Type::String).min_length(Some(1)).max_length(Some(MAX_CODE_CHARS)), 0, MAX_CODES);
}

impl PartialSchema for Verbatim {
    fn schema() -> RefOr<Schema> {
        let any = ObjectBuilder::new().schema_type(SchemaType::AnyValue);
        any.description(Some("Any JSON. It is kept as it was sent.")).into()
    }
}

impl ToSchema for Verbatim {
    fn name() -> Cow<'static, str> {
        Self::SCHEMA.into()
    }
}

/// The request for a cron's tasks: its `id` is a template.
pub(crate) enum CronTask {}

/// The request for a cron's executions: its `id` is a template.
pub(crate) enum CronExecution {}

impl PartialSchema for CronTask {
    fn schema() -> RefOr<Schema> {
        with_template(ScheduleRequest::schema())
    }
}

impl PartialSchema for CronExecution {
    fn schema() -> RefOr<Schema> {
        with_template(StartRequest::schema())
    }
}

impl ToSchema for CronTask {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        ScheduleRequest::schemas(schemas);
    }
}

impl ToSchema for CronExecution {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        StartRequest::schemas(schemas);
    }
}

fn with_template(request: RefOr<Schema>) -> RefOr<Schema> {
    let RefOr::T(Schema::Object(mut request)) = request else { return request };
    let id = of(Type::String).pattern(Some(r"\{occurrence\}")).description(Some(
        "The ids of the runs: a text in which each occurrence's instant replaces `{occurrence}`.",
    ));
    request.properties.insert("id".to_owned(), RefOr::T(Schema::from(id)));
    RefOr::T(Schema::Object(request))
}

/// The server limits bytes. A text never has more characters than bytes.
fn text(most: Option<usize>) -> ObjectBuilder {
    of(Type::String).min_length(Some(1)).max_length(most)
}

fn span<S: Span>(description: &str) -> OneOfBuilder {
    let form = "One or more of `<integer><unit>` with units `ms`, `s`, `m`, `h`, `d` and their long forms, or whole \
                milliseconds.";
    OneOfBuilder::new()
        .description(Some(format!("{description}\n\n{form}")))
        .examples([serde_json::json!("1h 30m"), serde_json::json!(5_400_000)])
        .item(of(Type::String).description(Some("In words.")))
        .item(whole(ms(S::LEAST), ms(S::MOST)))
}

impl PartialSchema for Delay {
    fn schema() -> RefOr<Schema> {
        let one = || Ref::from_schema_name(Duration::name());
        OneOfBuilder::new()
            .description(Some("One delay, or a list of them whose last one repeats."))
            .item(one())
            .item(list(one(), 1, MAX_LISTED_DELAYS))
            .into()
    }
}

impl ToSchema for Delay {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((Duration::name().into_owned(), Duration::schema()));
    }
}

impl<T: Words> PartialSchema for Word<T> {
    fn schema() -> RefOr<Schema> {
        of(Type::String).enum_values(Some(T::ALL.iter().map(Words::as_word))).into()
    }
}

impl<T: Words> ToSchema for Word<T> {
    fn name() -> Cow<'static, str> {
        T::NAME.into()
    }
}

impl<T: Words> PartialSchema for OpenEnum<T> {
    fn schema() -> RefOr<Schema> {
        let words: Vec<_> = T::ALL.iter().map(|value| format!("`{}`", value.as_word())).collect();
        let description = format!("One of {}. A newer server may have others.", words.join(", "));
        of(Type::String).description(Some(description)).into()
    }
}

impl<T: Words> ToSchema for OpenEnum<T> {
    fn name() -> Cow<'static, str> {
        format!("{}Word", T::NAME).into()
    }
}

impl<T: Words> PartialSchema for Statuses<T> {
    fn schema() -> RefOr<Schema> {
        let words: Vec<_> = T::ALL.iter().map(|value| format!("`{}`", value.as_word())).collect();
        let description = format!("One or more of {}, separated by commas.", words.join(", "));
        text(None).description(Some(description)).into()
    }
}

impl<T: Words> ToSchema for Statuses<T> {
    fn name() -> Cow<'static, str> {
        format!("{}List", T::NAME).into()
    }
}
