//! Adds the spellings of lengths of time as whole numbers: the types of requests have only the first one.

use std::collections::BTreeMap;

use tickover_wire::read::{SPELLED, UNITS};
use utoipa::Number;
use utoipa::openapi::{ObjectBuilder, OneOfBuilder, OpenApi, Ref, RefOr, Schema, Type};

type Schemas = BTreeMap<String, RefOr<Schema>>;

/// Adds `delay_seconds` and `delay_ms` beside `delay`, to each request that has such fields, also as a part of a cron.
pub(super) fn as_numbers(document: &mut OpenApi) {
    let Some(components) = &mut document.components else { return };
    let schemas = &mut components.schemas;
    for (request, fields) in SPELLED {
        for (field, (end, unit)) in fields.iter().flat_map(|field| UNITS.map(|unit| (field, unit))) {
            let Some(span) = span_of(schemas, request, field) else { continue };
            let Some(number) = schemas.get(&span).and_then(|span| number(span, unit)) else { continue };
            let name = format!("{span}{}", if unit == 1 { "Milliseconds" } else { "Seconds" });
            let mut spelling = Ref::from_schema_name(&name);
            spelling.description =
                format!("`{field}` in whole {}.", if unit == 1 { "milliseconds" } else { "seconds" });
            schemas.insert(name, number);
            let of_crons = if request == "StartRequest" { "CronExecution" } else { "CronTask" };
            let also = ["StartRequest", "ScheduleRequest"].contains(&request).then_some(of_crons);
            for request in [request].into_iter().chain(also) {
                if let Some(RefOr::T(Schema::Object(object))) = schemas.get_mut(request) {
                    let null = ObjectBuilder::new().schema_type(Type::Null);
                    let form = OneOfBuilder::new().item(spelling.clone()).item(null);
                    object.properties.insert(format!("{field}{end}"), form.into());
                }
            }
        }
    }
}

/// The name of the type of an optional field.
fn span_of(schemas: &Schemas, request: &str, field: &str) -> Option<String> {
    let RefOr::T(Schema::Object(request)) = schemas.get(request)? else { return None };
    let RefOr::T(Schema::OneOf(forms)) = request.properties.get(field)? else { return None };
    forms.items.iter().find_map(|form| match form {
        RefOr::Ref(target) => target.ref_location.rsplit('/').next().map(str::to_owned),
        RefOr::T(_) => None,
    })
}

/// The number of a unit in a length of time, which is text or whole milliseconds.
fn number(span: &RefOr<Schema>, unit: u64) -> Option<RefOr<Schema>> {
    let RefOr::T(Schema::OneOf(forms)) = span else { return None };
    let unit = usize::try_from(unit).ok()?;
    forms.items.iter().find_map(|form| match form {
        RefOr::T(Schema::Object(ms)) => match (&ms.minimum, &ms.maximum) {
            (Some(Number::UInt(least)), Some(Number::UInt(most))) => {
                let number = ObjectBuilder::new().schema_type(Type::Integer);
                let number = number.minimum(Some(Number::UInt(least.div_ceil(unit))));
                Some(number.maximum(Some(Number::UInt(most / unit))).into())
            }
            _ => None,
        },
        _ => None,
    })
}
