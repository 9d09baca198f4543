//! Checks that the OpenAPI documents of admit equal those of kube-apiserver.

use crate::machine;

#[tokio::test]
async fn both_servers_publish_the_same_documents() {
    if !machine::has_kube_apiserver() {
        return;
    }
    let (compared, differences) = tests::openapi::compare().await.unwrap();
    assert_eq!(differences, Vec::<String>::new());
    assert!(compared > 100, "{compared}");
}
