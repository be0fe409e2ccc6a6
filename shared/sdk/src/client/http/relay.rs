//! Calls that are passed on as they are, for a proxy on this machine.

use std::time::Duration;

use reqwest::Url;
use reqwest::header::{ACCEPT, CONTENT_TYPE, DATE, HeaderMap, HeaderName, RETRY_AFTER};

use super::{ANSWER_BOUND, ClientError, Http, chain};

/// The headers of a request that belong to the call. Others belong to the connection or to the caller's browser.
const SENT: [HeaderName; 2] = [ACCEPT, CONTENT_TYPE];
/// The headers of an answer that belong to it. The date tells the server's time.
const RETURNED: [HeaderName; 3] = [CONTENT_TYPE, DATE, RETRY_AFTER];
/// The longest wait of a long poll.
const WAIT_MAX: Duration = Duration::from_secs(20);

impl Http {
    /// Passes a request on to the endpoint, with the endpoint's credentials, and returns the answer, whatever its status.
    /// The request's target is a path with a query, such as `/v1/tasks?limit=5`, below the endpoint's address. It
    /// is sent once.
    ///
    /// # Errors
    ///
    /// [`ClientError::Invalid`] if the path isn't encoded, or has segments such as `..`; [`ClientError::Unavailable`] without
    /// an answer; that of a call which can't be signed.
    pub async fn relay(
        &self,
        request: http::Request<Vec<u8>>,
    ) -> Result<http::Response<Vec<u8>>, ClientError> {
        let (parts, body) = request.into_parts();
        let url = self.below(parts.uri.path(), parts.uri.query())?;
        let mut headers = only(&SENT, &parts.headers);
        headers.extend(self.headers.clone());
        let request =
            self.sender.request(parts.method, url).headers(headers).timeout(ANSWER_BOUND + WAIT_MAX);
        let unavailable = |error: reqwest::Error| ClientError::Unavailable {
            place: self.endpoint.to_string(),
            reason: chain(&error.without_url()),
        };
        let mut request = request.body(body).build().map_err(unavailable)?;
        self.sign(&mut request).await?;
        let response = self.sender.execute(request).await.map_err(unavailable)?;
        let (status, headers) = (response.status(), only(&RETURNED, response.headers()));
        let mut answer = http::Response::new(response.bytes().await.map_err(unavailable)?.into());
        (*answer.status_mut(), *answer.headers_mut()) = (status, headers);
        Ok(answer)
    }

    /// The endpoint's address with a path that is encoded already.
    fn below(&self, path: &str, query: Option<&str>) -> Result<Url, ClientError> {
        let mut url = self.endpoint.clone();
        let path = format!("{}/{}", url.path().trim_end_matches('/'), path.trim_start_matches('/'));
        url.set_path(&path);
        url.set_query(query);
        // Otherwise `..` would lead to other parts of the host, with this endpoint's credentials.
        if url.path() == path {
            Ok(url)
        } else {
            Err(ClientError::invalid("path", "it isn't in its normal form"))
        }
    }
}

/// The headers with these names.
fn only(names: &[HeaderName], headers: &HeaderMap) -> HeaderMap {
    names.iter().filter_map(|name| Some((name.clone(), headers.get(name)?.clone()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_stays_below_the_endpoint_and_as_it_was_encoded() {
        let http = Http::new("http://127.0.0.1:1/stage/").unwrap();
        let url = http.below("/v1/executions/a%3Ab/steps/x%5B3%5D/retry", Some("a=%20b")).unwrap();
        let expected = "http://127.0.0.1:1/stage/v1/executions/a%3Ab/steps/x%5B3%5D/retry?a=%20b";
        assert_eq!(url.as_str(), expected);
        for outside in
            ["/v1/../admin", "/v1/%2e%2e/admin", "/v1/.%2E/x", "/v1/./x", "/v1/a b", "/v1/x\\..\\y"]
        {
            let refused = http.below(outside, None).unwrap_err();
            assert!(
                matches!(&refused, ClientError::Invalid { field, .. } if field == "path"),
                "{outside}: {refused:?}"
            );
        }
    }
}
