//! Tests list requests that depend on timing, which a recording cannot cover.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use harness::server::ApiServer;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::client::{CONFIG_MAPS, check, config_map, delete, get, post, server};

/// Makes more changes than the server's watch history keeps.
async fn change_often(server: &ApiServer) {
    for _ in 0..2_100 {
        assert_eq!(post(server, CONFIG_MAPS, &config_map("z")).await.0, 201);
        assert_eq!(delete(server, &format!("{CONFIG_MAPS}/z"), None).await.0, 200);
    }
}

fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().into_iter().flatten();
    items.map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}

/// Rule: LST-08.
#[tokio::test]
async fn expired_continue_token_returns_a_new_one() {
    let server = server();
    for name in ["a", "b", "c"] {
        assert_eq!(post(&server, CONFIG_MAPS, &config_map(name)).await.0, 201);
    }
    let (_, first) = get(&server, &format!("{CONFIG_MAPS}?limit=1")).await;
    let version = first["metadata"]["resourceVersion"].as_str().unwrap();
    assert_eq!((names(&first), &first["metadata"]["remainingItemCount"]), (vec!["a"], &json!(2)));
    assert_eq!(delete(&server, &format!("{CONFIG_MAPS}/b"), None).await.0, 200);
    change_often(&server).await;

    let token = first["metadata"]["continue"].as_str().unwrap();
    let (code, expired) = get(&server, &format!("{CONFIG_MAPS}?limit=1&continue={token}")).await;
    assert_eq!((code, &expired["reason"]), (410, &json!("Expired")));
    let token = expired["metadata"]["continue"].as_str().unwrap();
    let decoded: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(token).unwrap()).unwrap();
    assert_eq!(decoded, json!({"v": "meta.k8s.io/v1", "rv": -1, "start": "a\0"}));
    let (_, rest) = get(&server, &format!("{CONFIG_MAPS}?continue={token}")).await;
    assert_eq!(names(&rest), ["c"]);

    let former = format!("{CONFIG_MAPS}?resourceVersion={version}&resourceVersionMatch=Exact");
    check(
        get(&server, &former).await,
        410,
        "Expired",
        "The resourceVersion for the provided list is too old.",
    );
}

/// Rule: LST-06.
#[tokio::test(start_paused = true)]
async fn read_waits_up_to_three_seconds_for_a_version() {
    let server = server();
    let (_, now) = get(&server, CONFIG_MAPS).await;
    let version: u64 = now["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
    let path = format!("{CONFIG_MAPS}?resourceVersion={}", version + 1);
    let object = config_map("a");
    let ((code, list), (created, _)) = tokio::join!(get(&server, &path), post(&server, CONFIG_MAPS, &object));
    assert_eq!((code, names(&list), created), (200, vec!["a"], 201));

    let started = Instant::now();
    let (code, status) = get(&server, &format!("{CONFIG_MAPS}?resourceVersion={}", version + 2)).await;
    let message = format!("Timeout: Too large resource version: {}, current: {}", version + 2, version + 1);
    assert_eq!((code, status["message"].as_str().unwrap()), (504, message.as_str()));
    assert_eq!(started.elapsed(), Duration::from_secs(3));
}
