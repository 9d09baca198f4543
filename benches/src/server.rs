//! Requests to the API server, in process.

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use kubernetes_admission::attributes::UserInfo;
use kubernetes_api_server::{ApiServer, Options};
use serde_json::{Value, json};

use crate::meter::Meter;

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const LISTED: usize = 10_000;

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": {
        "text": "x".repeat(800),
    }})
}

async fn ask(server: &ApiServer, method: Method, path: &str, body: Option<&Value>) -> StatusCode {
    let body = body.map_or_else(Bytes::new, |body| Bytes::from(body.to_string()));
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .header("accept", "application/json")
        .body(body)
        .unwrap();
    let user = UserInfo { username: "admin".to_owned(), ..UserInfo::default() };
    let (response, _) = server.exchange(request, user).await;
    let status = response.status();
    http_body_util::BodyExt::collect(response.into_body()).await.unwrap();
    status
}

pub(crate) fn run(meter: &mut Meter) {
    if !meter.wants("server/") {
        return;
    }
    let server = ApiServer::new(Options::default());
    let mut created = 0;
    let prepare = || {
        created += 1;
        config_map(&format!("created-{created}"))
    };
    meter.measure("server/create", prepare, async |object| {
        assert_eq!(ask(&server, Method::POST, CONFIG_MAPS, Some(object)).await, StatusCode::CREATED);
    });

    let server = ApiServer::new(Options::default());
    for index in 0..LISTED {
        server.put(config_map(&format!("listed-{index}"))).unwrap();
    }
    let path = format!("{CONFIG_MAPS}/listed-77");
    meter.measure(
        "server/get",
        || (),
        async |()| {
            assert_eq!(ask(&server, Method::GET, &path, None).await, StatusCode::OK);
        },
    );
    meter.measure(
        "server/list of 10000",
        || (),
        async |()| {
            assert_eq!(ask(&server, Method::GET, CONFIG_MAPS, None).await, StatusCode::OK);
        },
    );
}
