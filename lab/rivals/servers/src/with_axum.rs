//! Axum: a router with one route, served as its manual says.

use std::net;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use axum::serve::ListenerExt;
use common::fail;
use common::programs::dialogue::{Dialogue, GREETING, GREETING_TYPE};
use tokio::net::TcpListener;

pub(crate) fn serve(dialogue: Dialogue, listener: net::TcpListener, workers: usize) -> ! {
    if dialogue != Dialogue::Hello {
        fail("Axum speaks HTTP only: measure tokio.");
    }
    crate::on_tokio(listener, workers, accept)
}

/// Serves boards instead.
pub(crate) fn serve_boards(listener: net::TcpListener, workers: usize) -> ! {
    crate::on_tokio(listener, workers, crate::board_of_axum::accept)
}

async fn accept(listener: TcpListener) {
    let hello = || async { ([(CONTENT_TYPE, GREETING_TYPE)], GREETING) };
    let router = Router::new().route("/", get(hello));
    let listener = listener.tap_io(|stream| {
        // It fails only if the client is gone.
        let _gone = stream.set_nodelay(true);
    });
    // It never ends on its own.
    let _never = axum::serve(listener, router).await;
}
