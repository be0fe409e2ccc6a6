//! A client that a generator makes of the `OpenAPI` document. `cargo xtask workers` generates and compiles it.

use tickover_tests::process::Process;

use crate::scene::generated_client;

#[tokio::test]
async fn a_generated_client_makes_ten_calls() {
    let server = Process::tickover(&["dev", "--listen", "127.0.0.1:0"]).expect("a server");
    let endpoint = server.address().await.expect("an address");
    let client = Process::from_command(generated_client().arg(endpoint)).expect("node");
    let ended = client.ended().await.expect("its end");
    assert!(ended.status.success(), "{}{}", ended.stdout, ended.stderr);
    assert_eq!(ended.stdout.trim(), "ten calls");
}
