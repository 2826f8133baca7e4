//! The same server over HTTP/1.1 and HTTP/2 without TLS, for `kubectl` and other programs.

use std::io;
use std::sync::Arc;

use http::{Request, Response};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::faults::ConnectionLost;
use crate::server::ApiServer;
use crate::service::{ApiBody, MAX_BODY};

impl ApiServer {
    /// Serves connections of `listener` until `shutdown`. Requests carry the first word of their User-Agent as
    /// identity (`kubectl`).
    pub async fn serve(self, listener: TcpListener, shutdown: CancellationToken) -> io::Result<()> {
        loop {
            let stream = tokio::select! {
                biased;
                () = shutdown.cancelled() => return Ok(()),
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => stream,
                    Err(error) => {
                        // A connection that died before it was accepted says nothing about the listener.
                        tracing::debug!(%error, "accept failed");
                        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
                        continue;
                    }
                },
            };
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "TCP_NODELAY not set");
            }
            let server = self.clone();
            let shutdown = shutdown.clone();
            tokio::spawn(async move {
                let service = service_fn(move |request| handle(server.clone(), request));
                let builder = Builder::new(TokioExecutor::new());
                let connection = builder.serve_connection(TokioIo::new(stream), service);
                tokio::select! {
                    biased;
                    () = shutdown.cancelled() => {}
                    ended = connection => {
                        if let Err(error) = ended {
                            tracing::debug!(error, "connection ended");
                        }
                    }
                }
            });
        }
    }
}

async fn handle(
    server: ApiServer,
    request: Request<Incoming>,
) -> Result<Response<ApiBody>, ConnectionLost> {
    let (parts, body) = request.into_parts();
    let identity: Arc<str> = parts
        .headers
        .get(http::header::USER_AGENT)
        .and_then(|agent| agent.to_str().ok())
        .and_then(|agent| agent.split(['/', ' ']).next())
        .filter(|word| !word.is_empty())
        .map_or_else(|| Arc::from("http"), Arc::from);
    // One byte more than allowed is enough to know that it is too much.
    let body = match Limited::new(body, MAX_BODY + 1).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => {
            bytes::Bytes::from(vec![b' '; MAX_BODY + 1])
        }
        Err(_) => return Err(ConnectionLost),
    };
    server.respond(identity, &parts, body).await
}

/// A kubeconfig for a server at `url` (`http://127.0.0.1:8001`).
#[must_use]
pub fn kubeconfig(url: &str) -> String {
    format!(
        "apiVersion: v1\n\
         kind: Config\n\
         clusters:\n\
         - name: tephra\n\
         \x20 cluster: {{server: \"{url}\"}}\n\
         contexts:\n\
         - name: tephra\n\
         \x20 context: {{cluster: tephra, user: tephra, namespace: default}}\n\
         users:\n\
         - name: tephra\n\
         \x20 user: {{}}\n\
         current-context: tephra\n"
    )
}
