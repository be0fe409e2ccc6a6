//! Who makes a request: what the context of API Gateway or of a function URL says, and never what the request says.

use axum::http::Request;
use lambda_http::RequestExt as _;
use lambda_http::request::RequestContext;
use tickover_api::audit::Identity;
use tickover_core::by::Caller;

/// Who may call without credentials.
const ANONYMOUS: &str = "anonymous";
/// The claims that name the program to which a token was given (of RFC 9068, and of an id token).
const CLIENT_CLAIMS: [&str; 2] = ["client_id", "azp"];

/// The subject and the client of a token, or the principal of IAM.
pub(crate) fn identity<B>(request: &Request<B>) -> Identity {
    let found = match request.request_context_ref() {
        Some(RequestContext::ApiGatewayV2(context)) => context.authorizer.as_ref().and_then(|authorizer| {
            let token = authorizer.jwt.as_ref();
            let principal = authorizer.iam.as_ref().and_then(|iam| iam.user_arn.as_deref());
            token
                .and_then(|token| of_token(|name| token.claims.get(name).map(String::as_str)))
                .or(of(principal))
        }),
        // A REST API, which is none of the template's.
        Some(RequestContext::ApiGatewayV1(context)) => {
            let claims = context.authorizer.fields.get("claims");
            claims
                .and_then(|claims| of_token(|name| claims.get(name)?.as_str()))
                .or(of(context.identity.user_arn.as_deref()))
        }
        Some(_) | None => None,
    };
    found.unwrap_or_else(|| Identity { caller: Caller::new(ANONYMOUS), client: None })
}

/// The subject. The token of a program that acts for nobody may have none.
fn of_token<'t>(claim: impl Fn(&str) -> Option<&'t str>) -> Option<Identity> {
    let client = CLIENT_CLAIMS.into_iter().find_map(&claim);
    let caller = Caller::new(claim("sub").or(client)?);
    Some(Identity { caller, client: client.map(Caller::new) })
}

fn of(principal: Option<&str>) -> Option<Identity> {
    principal.map(|principal| Identity { caller: Caller::new(principal), client: None })
}

#[cfg(test)]
mod tests {
    use lambda_http::aws_lambda_events::apigw::ApiGatewayV2httpRequestContext;
    use serde_json::{Value, json};

    use super::*;

    fn of(authorizer: &Value) -> (String, Option<String>) {
        let context = json!({"http": {"method": "POST"}, "timeEpoch": 0, "authorizer": authorizer});
        let context: ApiGatewayV2httpRequestContext = serde_json::from_value(context).unwrap();
        let request = Request::builder().header("authorization", "Bearer eve").header("x-user", "eve");
        let request = request.header("x-forwarded-user", "eve").body(()).unwrap();
        let request = request.with_request_context(RequestContext::ApiGatewayV2(context));
        let Identity { caller, client } = identity(&request);
        (caller.to_string(), client.map(|client| client.to_string()))
    }

    fn token(claims: &Value) -> (String, Option<String>) {
        of(&json!({"jwt": {"claims": claims, "scopes": ["tickover/operate"]}}))
    }

    #[test]
    fn a_caller_is_who_the_context_says_whatever_the_headers_say() {
        let ada = || "ada".to_owned();
        assert_eq!(
            token(&json!({"sub": "ada", "client_id": "console"})),
            (ada(), Some("console".to_owned()))
        );
        assert_eq!(token(&json!({"sub": "ada", "azp": "cli"})), (ada(), Some("cli".to_owned())));
        assert_eq!(token(&json!({"sub": "ada"})), (ada(), None));
        assert_eq!(token(&json!({"client_id": "job"})), ("job".to_owned(), Some("job".to_owned())));
        let role = "arn:aws:sts::123456789012:assumed-role/operators/ada";
        let iam = json!({"accessKey": "AKIA", "accountId": "123456789012", "callerId": "x", "userArn": role});
        assert_eq!(of(&json!({"iam": iam})), (role.to_owned(), None));
        for nobody in [json!({}), json!(null), json!({"lambda": {"user": "eve"}})] {
            assert_eq!(of(&nobody), ("anonymous".to_owned(), None), "{nobody}");
        }
        assert_eq!(token(&json!({"email": "eve"})).0, "anonymous");
    }
}
