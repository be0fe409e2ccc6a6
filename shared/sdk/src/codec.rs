//! Converts values to JSON and back. Errors name the path of a field, never its value, because payloads must not be
//! logged.

use serde::Serialize;
use serde::de::DeserializeOwned;
use tickover_core::payload::Json;

/// Why a value can't be written or read, with the path of the invalid field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{problem}", place(path))]
pub(crate) struct CodecError {
    /// The field, such as `boxes[2].weight`; empty for the whole value.
    pub(crate) path: String,
    /// What was expected there, and what was found.
    pub(crate) problem: String,
}

fn place(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!("at `{path}`: ") }
}

/// Writes a value.
pub(crate) fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Json, CodecError> {
    let mut bytes = Vec::new();
    serde_path_to_error::serialize(value, &mut serde_json::Serializer::new(&mut bytes))
        .map_err(CodecError::at)?;
    let text = String::from_utf8(bytes).ok().and_then(Json::parse);
    text.ok_or_else(|| CodecError { path: String::new(), problem: "it isn't one JSON value".to_owned() })
}

/// Writes a value that is read as the same type later. Tests and debug builds read it at once: serde writes some values in
/// a form that it can't read, such as a number that isn't finite.
pub(crate) fn encode_stored<T: Serialize + DeserializeOwned>(value: &T) -> Result<Json, CodecError> {
    let json = encode(value)?;
    if cfg!(any(debug_assertions, feature = "test")) {
        decode::<T>(&json).map_err(|CodecError { path, problem }| {
            let problem = format!("serde writes it in a form that it can't read back: {problem}");
            CodecError { path, problem }
        })?;
    }
    Ok(json)
}

/// Reads a value.
pub(crate) fn decode<T: DeserializeOwned>(json: &Json) -> Result<T, CodecError> {
    let mut text = serde_json::Deserializer::from_str(json.as_str());
    serde_path_to_error::deserialize(&mut text).map_err(CodecError::at)
}

impl CodecError {
    fn at(error: serde_path_to_error::Error<serde_json::Error>) -> Self {
        let path = error.path().to_string();
        let problem = error.into_inner().to_string();
        // The path of the whole value is a dot. The position in the text is removed, because users don't see the text.
        let path = if path == "." { String::new() } else { path };
        let problem = problem.split(" at line ").next().unwrap_or(&problem).to_owned();
        Self { path, problem }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Serialize, Deserialize)]
    struct Package {
        weight: u32,
    }

    #[derive(Debug, Serialize, Deserialize)]
    struct Order {
        boxes: Vec<Package>,
    }

    #[test]
    fn a_value_that_does_not_fit_is_refused_with_the_path_of_the_bad_field() {
        let json = Json::parse(r#"{"boxes":[{"weight":1},{"weight":"heavy"}]}"#).unwrap();
        let error = decode::<Order>(&json).unwrap_err();
        assert_eq!(error.path, "boxes[1].weight");
        assert!(error.to_string().starts_with("at `boxes[1].weight`: invalid type: string"), "{error}");
        assert!(!error.problem.contains("line"), "{error}");
    }

    #[test]
    fn a_value_of_another_kind_is_refused_as_a_whole() {
        let error = decode::<u32>(&Json::string("one")).unwrap_err();
        assert_eq!(error.path, "");
    }

    #[test]
    fn what_is_written_in_a_form_that_can_not_be_read_is_refused_with_its_path() {
        #[derive(Serialize, Deserialize)]
        #[serde(untagged)]
        enum Amount {
            Whole(u128),
            Text(String),
        }
        let unread = |refused: Result<Json, CodecError>| refused.unwrap_err().to_string();
        let error = unread(encode_stored(&BTreeMap::from([("share".to_owned(), f64::NAN)])));
        assert!(
            error.starts_with("at `share`: serde writes it in a form that it can't read back: "),
            "{error}"
        );
        assert!(unread(encode_stored(&Amount::Whole(1 << 100))).contains("can't read back"));
        assert_eq!(encode_stored(&Amount::Text("1".to_owned())).unwrap().as_str(), "\"1\"");
        assert_eq!(encode_stored(&0.5).unwrap().as_str(), "0.5");
    }

    #[test]
    fn what_json_has_no_form_for_is_refused() {
        let by_bytes = BTreeMap::from([(vec![1_u8], 1)]);
        assert!(encode(&by_bytes).is_err());
        assert_eq!(encode(&("a", 1)).unwrap().as_str(), r#"["a",1]"#);
        assert_eq!(encode(&()).unwrap().as_str(), "null");
    }
}
