//! Signature Version 4, computed a second time: from the request as the server received it.

use sha2::{Digest as _, Sha256};

use crate::server::Request;

const BLOCK: usize = 64;

/// Checks the header `authorization` of a request against the caller's keys.
pub(crate) fn check(request: &Request, service: &str, region: &str) {
    let date = request.header("x-amz-date");
    let scope = format!("{}/{region}/{service}/aws4_request", &date[..8]);
    let authorization = request.header("authorization");
    let fields = authorization.strip_prefix("AWS4-HMAC-SHA256 ").expect("the algorithm");
    let field = |name: &str| {
        let found = fields.split(", ").find_map(|field| field.strip_prefix(name)?.strip_prefix('='));
        found.unwrap_or_else(|| panic!("no {name} in {authorization}"))
    };
    assert_eq!(field("Credential"), format!("{}/{scope}", crate::KEY_ID));
    let names = field("SignedHeaders");
    for required in ["host", "x-amz-date", "x-amz-content-sha256", "content-type", "x-amz-security-token"] {
        let is_sent = request.headers.iter().any(|(name, _)| name == required);
        assert_eq!(names.split(';').any(|name| name == required), is_sent, "{required} in {names}");
    }

    let digest = hex(&Sha256::digest(&request.body));
    assert_eq!(request.header("x-amz-content-sha256"), digest);
    let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
    let mut pairs: Vec<&str> = query.split('&').filter(|pair| !pair.is_empty()).collect();
    pairs.sort_unstable();
    let headers = names.split(';').map(|name| format!("{name}:{}\n", request.header(name).trim()));
    let headers = headers.collect::<Vec<_>>().concat();
    let canonical = format!(
        "{}\n{}\n{}\n{headers}\n{names}\n{digest}",
        request.method,
        // Services decode nothing before they encode.
        path.replace('%', "%25"),
        pairs.join("&"),
    );
    let text = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{}", hex(&Sha256::digest(&canonical)));
    let mut key = format!("AWS4{}", crate::SECRET).into_bytes();
    for part in [&date[..8], region, service, "aws4_request"] {
        key = hmac(&key, part.as_bytes());
    }
    assert_eq!(field("Signature"), hex(&hmac(&key, text.as_bytes())), "{canonical}");
}

/// For keys of at most one block.
fn hmac(key: &[u8], text: &[u8]) -> Vec<u8> {
    assert!(key.len() <= BLOCK);
    let padded = |with: u8| {
        let mut block = [with; BLOCK];
        block.iter_mut().zip(key).for_each(|(byte, key)| *byte ^= key);
        Sha256::new().chain_update(block)
    };
    let inner = padded(0x36).chain_update(text).finalize();
    padded(0x5c).chain_update(inner).finalize().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat()
}
