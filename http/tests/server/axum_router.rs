//! An axum router, without Tokio's runtime.

use axum::{
    Json, Router,
    extract::{Path, Query, State},
    routing::{get, post},
};
use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};
use weald_kernel::yield_now;

use super::{Client, run, start};

async fn greet(Path(name): Path<String>, Query(query): Query<HashMap<String, String>>) -> String {
    yield_now().await;
    format!(
        "{} {name}!",
        query.get("greeting").map_or("hello", String::as_str)
    )
}

async fn add(State(sum): State<Arc<AtomicU32>>, Json(numbers): Json<Vec<u32>>) -> Json<u32> {
    let more = numbers.iter().sum();
    Json(sum.fetch_add(more, Ordering::Relaxed) + more)
}

#[test]
fn a_router_serves() {
    run(2, async {
        let router = Router::new()
            .route("/greet/{name}", get(greet))
            .route("/sum", post(add))
            .with_state(Arc::new(AtomicU32::new(0)));
        let server = start(router, |server| server);
        let mut client = Client::connect(server.address).await;
        client
            .send("GET /greet/you?greeting=welcome HTTP/1.1\r\nhost: x\r\n\r\n")
            .await;
        assert!(
            client
                .until("welcome you!")
                .await
                .starts_with("HTTP/1.1 200")
        );
        for sum in ["6", "12"] {
            client
                .send(
                    "POST /sum HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n\
                     content-length: 7\r\n\r\n[1,2,3]",
                )
                .await;
            client.until("\r\n\r\n").await;
            client.until(sum).await;
        }
        client
            .send("GET /nothing HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            .await;
        assert!(client.rest().await.starts_with("HTTP/1.1 404"));
        assert!(server.end().await.not_stopped.is_empty());
    });
}
