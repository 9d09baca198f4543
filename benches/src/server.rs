//! Measures requests to the in-process API server.
#![expect(clippy::cast_precision_loss, reason = "no figure is as large as 2^52")]

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Body;
use kubernetes_admission::attributes::UserInfo;
use kubernetes_api_server::{ApiServer, Options};
use serde_json::{Value, json};

use crate::meter::Meter;
use crate::results::Measured;

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const LISTED: usize = 10_000;
const STORED: u32 = 100_000;
const WATCHES: u32 = 500;

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": {
        "text": "x".repeat(800),
    }})
}

async fn ask(server: &ApiServer, method: Method, path: &str, body: Option<&Value>) -> StatusCode {
    let response = respond(server, method, path, body).await;
    let status = response.status();
    response.into_body().collect().await.unwrap();
    status
}

async fn respond(
    server: &ApiServer,
    method: Method,
    path: &str,
    body: Option<&Value>,
) -> http::Response<impl Body<Data = Bytes, Error: std::fmt::Debug> + use<>> {
    let body = body.map_or_else(Bytes::new, |body| Bytes::from(body.to_string()));
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .header("accept", "application/json")
        .body(body)
        .unwrap();
    let user = UserInfo { username: "admin".to_owned(), ..UserInfo::default() };
    server.exchange(request, user).await.0
}

pub(crate) fn run(meter: &mut Meter) {
    if !meter.wants("server/") && !meter.wants("memory/") {
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
    fan_out(meter);
    memory(meter);
}

/// Measures the cost of an event for each watch that receives it. The cost includes the creation of the object.
fn fan_out(meter: &mut Meter) {
    let name = format!("server/watch fan-out to {WATCHES}");
    if !meter.is_wanted(&name) {
        return;
    }
    let server = ApiServer::new(Options::default());
    let path = format!("{CONFIG_MAPS}?watch=true");
    let mut watches = Vec::new();
    for _ in 0..WATCHES {
        let response = meter.runtime().block_on(respond(&server, Method::GET, &path, None));
        assert_eq!(response.status(), StatusCode::OK);
        watches.push(Box::pin(response.into_body()));
    }
    let mut created = 0;
    let prepare = || {
        created += 1;
        config_map(&format!("watched-{created}"))
    };
    meter.measure_several(&name, WATCHES, prepare, async |object| {
        assert_eq!(ask(&server, Method::POST, CONFIG_MAPS, Some(object)).await, StatusCode::CREATED);
        for watch in &mut watches {
            let event = watch.frame().await.unwrap().unwrap().into_data().unwrap();
            assert!(event.starts_with(br#"{"type":"ADDED""#));
        }
    });
}

/// Measures the time to store an object, once, and the allocations and bytes that a stored object uses.
fn memory(meter: &mut Meter) {
    let name = format!("memory/{STORED} objects, each");
    if !meter.is_wanted(&name) {
        return;
    }
    let mut server = None;
    let mut json = 0;
    let started = std::time::Instant::now();
    let held = allocation_counter::measure(|| {
        let server = server.insert(ApiServer::new(Options::default()));
        for index in 0..STORED {
            json += server.put(config_map(&format!("stored-{index}"))).unwrap().to_string().len();
        }
    });
    let each = |total: f64| total / f64::from(STORED);
    let wall = each(started.elapsed().as_secs_f64() * 1e9);
    let bytes = each(held.bytes_current as f64);
    meter.record(
        &name,
        Measured {
            samples: 1,
            wall_p50: wall,
            wall_p99: wall,
            allocations: each(held.count_current as f64),
            bytes,
            ..Measured::default()
        },
    );
    println!("  {:.2} times their JSON, of {:.0} bytes each", bytes / each(json as f64), each(json as f64));
}
