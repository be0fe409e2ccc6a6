use std::path::{Path, PathBuf};

use axum::body::Body;
use axum::http::Request;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::*;

/// The most bytes of all files together.
const BYTES_MAX: usize = 200_000;

async fn answer(method: &str, path: &str, tag: Option<&str>) -> Response {
    let request = Request::builder().method(method).uri(path);
    let request = tag.into_iter().fold(request, |request, tag| request.header(IF_NONE_MATCH, tag));
    let request = request.body(Body::empty()).unwrap();
    router(Settings::default()).oneshot(request).await.unwrap()
}

async fn text(response: Response) -> String {
    String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

/// All files of a folder, in it or below.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn every_file_of_the_folder_is_served_and_together_they_are_small() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("pages");
    let mut found: Vec<String> = files(&folder)
        .iter()
        .map(|file| format!("/dashboard/{}", file.strip_prefix(&folder).unwrap().display()))
        .map(|route| if route == "/dashboard/index.html" { "/".to_owned() } else { route })
        .collect();
    let mut served: Vec<String> = ASSETS.iter().map(|asset| asset.route.to_owned()).collect();
    found.sort();
    served.sort();
    assert_eq!(served, found);
    let bytes: usize = ASSETS.iter().map(|asset| asset.text().len()).sum();
    assert!(bytes < BYTES_MAX, "{bytes} bytes");
}

#[test]
fn a_script_is_served_without_the_lines_that_are_comments_and_without_indentation() {
    let script = "// One.\nconst a = 'b'; // c\n\n  /** Two. */\n  /*\n   Three\n   */\n  const d = a / 2;\n";
    assert_eq!(assets::compact(script), "\nconst a = 'b'; // c\n\n\n\n\n\nconst d = a / 2;\n");
    // The spaces at the beginning of a line belong to no text.
    for asset in ASSETS.iter().filter(|asset| asset.media_type.starts_with("text/javascript")) {
        let is_open = |line: &&str| line.matches('`').count() % 2 == 1;
        assert_eq!(asset.compiled.lines().find(is_open), None, "{}", asset.route);
    }
    let script = ASSETS.iter().find(|asset| asset.route.ends_with("app.js")).unwrap();
    assert_eq!(script.text().lines().count(), script.compiled.lines().count());
    assert!(script.text().len() < script.compiled.len());
}

#[tokio::test]
async fn every_answer_has_the_headers_that_keep_the_page_to_itself() {
    for path in ["/", "/dashboard/app.js", "/dashboard/settings.json"] {
        let answer = answer("GET", path, None).await;
        assert_eq!(answer.status(), 200);
        let header = |name: &str| answer.headers()[name].to_str().unwrap().to_owned();
        for part in
            ["default-src 'none'", "script-src 'self';", "frame-ancestors 'none'", "trusted-types 'none'"]
        {
            assert!(header("content-security-policy").contains(part), "{path}: {part}");
        }
        assert_eq!(header("x-content-type-options"), "nosniff");
        assert_eq!(header("referrer-policy"), "no-referrer");
    }
}

#[tokio::test]
async fn a_file_that_the_browser_has_is_not_sent_again() {
    for asset in ASSETS {
        let first = answer("GET", asset.route, None).await;
        assert_eq!(first.headers()[CONTENT_TYPE], asset.media_type);
        assert_eq!(first.headers()[CACHE_CONTROL], "no-cache");
        let tag = first.headers()[ETAG].to_str().unwrap().to_owned();
        assert_eq!(text(first).await, asset.text());
        for known in [tag.clone(), format!("W/{tag}"), format!("\"x\", {tag}"), "*".to_owned()] {
            let again = answer("GET", asset.route, Some(&known)).await;
            assert_eq!(
                (again.status(), again.headers()[ETAG].to_str().unwrap()),
                (StatusCode::NOT_MODIFIED, &*tag)
            );
            assert_eq!(text(again).await, "");
        }
        assert_eq!(answer("GET", asset.route, Some("\"other\"")).await.status(), 200);
    }
}

#[tokio::test]
async fn the_page_is_told_how_it_is_served() {
    let settings = answer("GET", "/dashboard/settings.json", None).await;
    assert_eq!(settings.headers()[CACHE_CONTROL], "no-store");
    let settings: Value = serde_json::from_str(&text(settings).await).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    let expected = json!({"read_only": false, "command": ["tickover"], "metrics": true, "refresh_ms": 2000, "version": version});
    assert_eq!(settings, expected);
    assert_eq!(answer("POST", "/", None).await.status(), StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(answer("GET", "/dashboard/../Cargo.toml", None).await.status(), StatusCode::NOT_FOUND);
}

#[test]
fn no_file_has_an_address_of_another_host_or_makes_markup_of_text() {
    for asset in ASSETS {
        // The one address is the name of the format of the icon.
        let text = asset.compiled.replace("http://www.w3.org/2000/svg", "");
        for forbidden in [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "//cdn",
            "<style",
            "<script>",
        ] {
            assert!(!text.contains(forbidden), "{}: {forbidden}", asset.route);
        }
        let hosts = text.match_indices("http").filter(|(at, _)| {
            let rest = &text[*at..];
            rest.starts_with("http://") || rest.starts_with("https://")
        });
        assert_eq!(hosts.count(), 0, "{} names another host", asset.route);
    }
}
