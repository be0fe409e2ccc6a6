//! Corrects what the derive macro generates for an enum without a tag: it says that exactly one alternative fits. Two
//! spellings of an object have fields in common, and an object with only those fits both.

use std::collections::BTreeSet;

use utoipa::openapi::schema::AnyOf;
use utoipa::openapi::{OpenApi, RefOr, Schema, Type};

/// Says `anyOf` of the alternatives of which more than one is an object.
pub(super) fn may_overlap(document: &mut OpenApi) {
    let Some(components) = &mut document.components else { return };
    let is_object = |schema: &RefOr<Schema>| match schema {
        RefOr::T(Schema::Object(object)) => object.schema_type == Type::Object.into(),
        RefOr::T(_) | RefOr::Ref(_) => false,
    };
    let objects: BTreeSet<String> = components
        .schemas
        .iter()
        .filter(|(_, schema)| is_object(schema))
        .map(|(name, _)| format!("#/components/schemas/{name}"))
        .collect();
    for schema in components.schemas.values_mut() {
        let RefOr::T(Schema::OneOf(forms)) = schema else { continue };
        let are_objects = forms.items.iter().filter(|form| match form {
            RefOr::Ref(target) => objects.contains(&target.ref_location),
            RefOr::T(_) => is_object(form),
        });
        if are_objects.count() > 1 {
            let mut any = AnyOf::new();
            any.items = std::mem::take(&mut forms.items);
            any.description = forms.description.take();
            *schema = RefOr::T(Schema::AnyOf(any));
        }
    }
}
