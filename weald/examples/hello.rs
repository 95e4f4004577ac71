//! A web server: an axum router on Weald alone. Ctrl-C lets the requests in flight finish, and then ends the program.
//!
//! `cargo run -p weald --example hello`, and `curl localhost:3000/world`

use std::time::Duration;

use axum::{Router, extract::Path, routing::get};
use weald::{http, net::TcpListener, signal};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    weald::block_on(async {
        let router: Router = Router::new()
            .route("/", get(|| async { "hello\n" }))
            .route("/{name}", get(greet))
            .route("/slow", get(slow));
        let listener = TcpListener::bind("127.0.0.1:3000".parse()?)?;
        println!("http://{}", listener.local_addr()?);
        let mut interrupt = signal::interrupt()?;
        let drained = http::serve(listener, router)
            .until(async move { interrupt.came().await })
            .drain_for(Duration::from_secs(5))
            .await?;
        for request in drained.not_stopped {
            println!("stopped: {request}");
        }
        Ok(())
    })
}

async fn greet(Path(name): Path<String>) -> String {
    format!("hello, {name}\n")
}

/// Slow enough to press Ctrl-C meanwhile.
async fn slow() -> &'static str {
    weald::sleep(Duration::from_secs(3)).await;
    "at last\n"
}
