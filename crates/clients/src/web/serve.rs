//! Taking connections: each is a task, and speaks HTTP/1.1 or HTTP/2.

use super::door::Door;
use super::guard::{self, Guard};
use axum::Router;
use axum::middleware;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use std::io;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// Serves `routes` on all doors to whom the guard lets in, until it is dropped.
pub async fn serve(doors: Vec<Door>, guard: Guard, routes: Router) -> io::Result<()> {
    let routes = routes.layer(middleware::from_fn_with_state(Arc::new(guard), guard::check));
    let mut open = JoinSet::new();
    for door in doors {
        open.spawn(accept(TcpListener::from_std(door.listener)?, routes.clone()));
    }
    open.join_all().await;
    Ok(())
}

async fn accept(listener: TcpListener, routes: Router) {
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        // An event is sent when it is whole: nothing is gained by waiting for more.
        let _ = stream.set_nodelay(true);
        let service = TowerToHyperService::new(routes.clone());
        tokio::spawn(async move {
            let server = auto::Builder::new(TokioExecutor::new());
            // A client that leaves or speaks nonsense is its own concern.
            let _ = server.serve_connection_with_upgrades(TokioIo::new(stream), service).await;
        });
    }
}
