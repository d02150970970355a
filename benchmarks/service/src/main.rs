//! The peer of `polyflake serve`: the same HTTP server, with a handler that returns a constant.
//!
//!     polyflake-service-benchmarks 127.0.0.1:8080 FILE
//!
//! As in `cli/src/serve/http.rs`, two layers surround the handler, which is given the path, the query and the headers.
//! But it generates no IDs, formats no numbers and counts nothing, and connections have no limits.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Bytes, HttpBody as _};
use axum::extract::{Path, Query, Request, State};
use axum::http::header::{AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use serde::Deserialize;
use tokio::net::TcpListener;

type Shared = State<Arc<Bytes>>;

#[derive(Deserialize)]
struct Wanted {
    n: Option<String>,
}

async fn constant(
    State(body): Shared,
    Path(generator): Path<String>,
    Query(wanted): Query<Wanted>,
    headers: HeaderMap,
) -> Response {
    if generator.is_empty() || wanted.n.is_some_and(|n| n.is_empty()) || headers.is_empty() {
        return StatusCode::BAD_REQUEST.into_response();
    }
    ([(CONTENT_TYPE, "application/json")], Bytes::clone(&body)).into_response()
}

async fn guard(State(_): Shared, request: Request, next: Next) -> Response {
    if request.headers().contains_key(AUTHORIZATION) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    next.run(request).await
}

async fn bounds(State(_): Shared, request: Request, next: Next) -> Response {
    let mut response = if request.body().is_end_stream() {
        next.run(request).await
    } else {
        StatusCode::PAYLOAD_TOO_LARGE.into_response()
    };
    response.headers_mut().entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

#[tokio::main]
async fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, file] = &*arguments else {
        return Err(io::Error::other("usage: polyflake-service-benchmarks ADDRESS FILE"));
    };
    let address: SocketAddr = address.parse().map_err(io::Error::other)?;
    let body = Arc::new(Bytes::from(std::fs::read(file)?));
    let router = Router::new()
        .route("/v1/ids/{generator}", get(constant))
        .layer(from_fn_with_state(Arc::clone(&body), guard))
        .layer(from_fn_with_state(Arc::clone(&body), bounds))
        .with_state(body);
    let listener = TcpListener::bind(address).await?;
    println!("{}", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let router = router.clone();
        drop(tokio::spawn(async move {
            let served = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(Duration::from_secs(300))
                .max_buf_size(65_536)
                .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
            let _ = served.await;
        }));
    }
}
