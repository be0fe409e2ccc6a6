//! Corrects what the derive macro generates for optional fields: it says that each may also be `null`. In answers, a
//! field that doesn't apply is absent. A payload is any JSON, which already includes `null`.

use tickover_wire::Verbatim;
use utoipa::openapi::schema::SchemaType;
use utoipa::openapi::{OneOf, OpenApi, RefOr, Schema, Type};

/// The suffixes of the names of answer types and of their parts.
const ANSWERS: [&str; 4] = ["View", "Answer", "Result", "Problem"];

/// Removes `null` from the fields of answers, and from payloads.
pub(super) fn never_null(document: &mut OpenApi) {
    let schemas = document.components.iter_mut().flat_map(|components| &mut components.schemas);
    for (name, schema) in schemas {
        let RefOr::T(Schema::Object(object)) = schema else { continue };
        let is_answer = ANSWERS.iter().any(|end| name.ends_with(end));
        for field in object.properties.values_mut().filter(|field| is_answer || is_payload(field)) {
            take_null(field);
        }
    }
}

fn is_payload(field: &RefOr<Schema>) -> bool {
    let is_any = |form: &RefOr<Schema>| match form {
        RefOr::Ref(target) => target.ref_location.ends_with(Verbatim::SCHEMA),
        RefOr::T(_) => false,
    };
    match field {
        RefOr::T(Schema::OneOf(forms)) => forms.items.iter().any(is_any),
        _ => false,
    }
}

fn take_null(field: &mut RefOr<Schema>) {
    let RefOr::T(schema) = field else { return };
    match schema {
        Schema::Object(value) => take_null_type(&mut value.schema_type),
        Schema::Array(list) => take_null_type(&mut list.schema_type),
        Schema::OneOf(forms) => {
            if let Some(form) = only_form(forms) {
                *field = form;
            }
        }
        _ => {}
    }
}

fn take_null_type(kind: &mut SchemaType) {
    if let SchemaType::Array(kinds) = kind {
        kinds.retain(|kind| *kind != Type::Null);
        if let [one] = kinds.as_slice() {
            *kind = SchemaType::Type(one.clone());
        }
    }
}

/// The only form beside `null`, with the field's description.
fn only_form(forms: &OneOf) -> Option<RefOr<Schema>> {
    let is_null = |form: &RefOr<Schema>| match form {
        RefOr::T(Schema::Object(value)) => value.schema_type == SchemaType::Type(Type::Null),
        _ => false,
    };
    let mut others = forms.items.iter().filter(|form| !is_null(form));
    let mut form = others.next().filter(|_| others.next().is_none())?.clone();
    if let (RefOr::Ref(target), Some(description)) = (&mut form, &forms.description) {
        target.description.clone_from(description);
    }
    Some(form)
}
