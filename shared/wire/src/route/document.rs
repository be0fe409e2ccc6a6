//! What the `OpenAPI` document says of a call, from its entry in the table.

use tickover_core::id::{
    CronId, EventName, ExecutionId, FlowKey, OperationId, Owner, QueueName, StepName, TaskId, TaskKind,
};
use utoipa::openapi::path::{Operation, OperationBuilder, Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::{
    Content, ContentBuilder, ObjectBuilder, OneOfBuilder, Ref, RefOr, Required, ResponseBuilder, Schema, Type,
};
use utoipa::{IntoParams, PartialSchema as _, ToSchema};

use super::Route;
use crate::request::ReasonQuery;

/// A call's part of the document.
pub struct Documented {
    /// The call, without its errors.
    pub operation: Operation,
    /// The types that it refers to, by name.
    pub schemas: Vec<(String, RefOr<Schema>)>,
}

/// A call with its texts and the names in its path: the lines of its text are those of a comment. The call's name is in the
/// style of the document.
pub(super) fn documented(route: Route, name: &str, group: &str, text: &[&str]) -> Documented {
    let lines: Vec<&str> = text.iter().map(|line| line.strip_prefix(' ').unwrap_or(line)).collect();
    let (summary, description) = lines.split_first().unwrap_or((&"", &[]));
    let description = description.join("\n");
    let operation = OperationBuilder::new()
        .tag(group)
        .operation_id(Some(snake_case(name)))
        .summary(Some(*summary))
        .description((!description.is_empty()).then(|| description.trim().to_owned()))
        .build();
    let mut told = Documented { operation, schemas: vec![] };
    if route.takes_reason() {
        told.finds::<ReasonQuery>();
    }
    let segments: Vec<&str> = route.path().split('/').collect();
    for pair in segments.windows(2) {
        if let Some(name) = pair[1].strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
            told.names(pair[0], name);
        }
    }
    told
}

impl Documented {
    /// A name in the path, by the segment before it.
    fn names(&mut self, of: &str, name: &str) {
        let (schema, description) = match of {
            "tasks" => (self.refer::<TaskId>(), "The task's id."),
            "queues" => (self.refer::<QueueName>(), "The queue's name."),
            "kinds" => (self.refer::<TaskKind>(), "The kind of task."),
            "executions" => (self.refer::<ExecutionId>(), "The execution's id."),
            "events" => (self.refer::<EventName>(), "The event's name."),
            "steps" => (self.refer::<StepName>(), "The step's name, such as `charge` or `label[3]`."),
            "values" => (self.refer::<StepName>(), "The name under which the value is published."),
            "crons" => (self.refer::<CronId>(), "The cron's id."),
            "operations" => (self.refer::<OperationId>(), "The operation's id."),
            "holders" => (self.refer::<Owner>(), "The id of a task, or `@` and that of an execution."),
            "limits" => (
                self.refer::<FlowKey>(),
                "The key. Each byte that isn't of `[A-Za-z0-9._:@-]` is `~` and two hexadecimal digits, and so are the \
                 dots of `.` and `..`: a gateway may decode percent-encoding before.",
            ),
            _ => (token(), "The callback's token."),
        };
        let parameter = ParameterBuilder::new()
            .name(name)
            .parameter_in(ParameterIn::Path)
            .required(Required::True)
            .description(Some(description))
            .schema(Some(schema));
        self.parameters([parameter.build()]);
    }

    /// The fields of a query.
    pub(super) fn finds<T: IntoParams>(&mut self) {
        self.parameters(T::into_params(|| Some(ParameterIn::Query)));
    }

    fn parameters(&mut self, more: impl IntoIterator<Item = Parameter>) {
        self.operation.parameters.get_or_insert_default().extend(more.into_iter().map(RefOr::T));
    }

    /// The body. One without required fields may be `null`. A call has a body even so: without the header that declares
    /// one as JSON, it is refused.
    pub(super) fn takes<T: ToSchema>(&mut self, or_null: bool) {
        let mut schema = self.refer::<T>();
        if or_null {
            let null = ObjectBuilder::new().schema_type(Type::Null);
            schema = OneOfBuilder::new().item(schema).item(null).into();
        }
        let body = RequestBodyBuilder::new().content("application/json", content(schema));
        self.operation.request_body = Some(body.required(Some(Required::True)).build().into());
    }

    /// An answer of this status.
    pub(super) fn answers<T: ToSchema>(&mut self, status: u16, what: &str) {
        let schema = self.refer::<T>();
        self.responds(status, what, content(schema));
    }

    /// An answer of this status, which is any JSON.
    pub(super) fn answers_anything(&mut self, status: u16, what: &str) {
        self.responds(status, what, content(serde_json::Value::schema()));
    }

    fn responds(&mut self, status: u16, what: &str, content: Content) {
        let response = ResponseBuilder::new().description(what).content("application/json", content);
        self.operation.responses.responses.insert(status.to_string(), response.build().into());
    }

    /// A reference to a type, which the document then has.
    fn refer<T: ToSchema>(&mut self) -> RefOr<Schema> {
        self.schemas.push((T::name().into_owned(), T::schema()));
        T::schemas(&mut self.schemas);
        Ref::from_schema_name(T::name()).into()
    }
}

fn content(schema: RefOr<Schema>) -> Content {
    ContentBuilder::new().schema(Some(schema)).build()
}

fn token() -> RefOr<Schema> {
    let text = ObjectBuilder::new().schema_type(Type::String);
    text.min_length(Some(1)).max_length(Some(400)).pattern(Some("^[A-Za-z0-9_-]+$")).build().into()
}

/// `RetryStep` as `retry_step`.
fn snake_case(name: &str) -> String {
    let mut text = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.push(letter.to_ascii_lowercase());
    }
    text
}
