//! Clients of the API server. Two are built from one configuration: one for the lease (and reads), and one for
//! all other writes, whose sockets refuse to send once the [`Fence`] is closed. That check matters when the
//! process is stopped between asking the fence and sending: the bytes never leave.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Request, Uri};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioExecutor;
use kube::Client;
use kube::client::{Body, ConfigExt};
use kube::config::Config;
use tower::{BoxError, Service, ServiceBuilder};

use crate::fence::Fence;

/// A client for reads and for the lease.
///
/// # Errors
/// When certificates or credentials of the configuration cannot be used.
pub fn unfenced(config: Config) -> anyhow::Result<Client> {
    build(config, Fence::open())
}

/// A client whose sockets send nothing while the fence is closed. It never retries by itself: only the binder
/// knows whether a request may be repeated.
///
/// # Errors
/// When certificates or credentials of the configuration cannot be used.
pub fn fenced(config: Config, fence: Fence) -> anyhow::Result<Client> {
    build(config, fence)
}

/// The same client, which asks the fence before each request that could change something: for programs that
/// write through kube's own calls.
pub fn guarded(client: Client, fence: Fence) -> Client {
    let namespace = client.default_namespace().to_owned();
    let send = move |request: Request<Body>| {
        let refused = if request.method().is_safe() { Ok(()) } else { fence.may_write() };
        let client = client.clone();
        async move {
            refused?;
            Ok::<_, BoxError>(client.send(request).await?)
        }
    };
    Client::new(tower::service_fn(send), namespace)
}

/// What a process uses that works through one client and may lose the right to write.
#[derive(Clone)]
pub struct Clients {
    /// For the lease: passes no fence.
    pub lease: Client,
    /// For everything else: writes nothing while the fence is closed.
    pub work: Client,
    /// The fence of `work`, to be moved by the keeper of the lease.
    pub fence: Fence,
}

impl std::fmt::Debug for Clients {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Clients").field("fence", &self.fence).finish_non_exhaustive()
    }
}

impl Clients {
    /// Clients over sockets, which are fenced, too.
    ///
    /// # Errors
    /// When certificates or credentials of the configuration cannot be used.
    pub fn connect(config: Config) -> anyhow::Result<Self> {
        let fence = Fence::closed();
        let work = guarded(fenced(config.clone(), fence.clone())?, fence.clone());
        Ok(Self { lease: unfenced(config)?, work, fence })
    }

    /// Clients that share `client`, which has no sockets that could be fenced (simulation).
    pub fn sharing(client: Client) -> Self {
        let fence = Fence::closed();
        Self { work: guarded(client.clone(), fence.clone()), lease: client, fence }
    }
}

fn build(config: Config, fence: Fence) -> anyhow::Result<Client> {
    if let Some(proxy) = &config.proxy_url {
        anyhow::bail!("the configured proxy {proxy} is not supported");
    }
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_nodelay(true);
    http.set_connect_timeout(config.connect_timeout);
    let connector =
        config.rustls_https_connector_with_connector(FencedConnector { http, fence })?;
    let transport: hyper_util::client::legacy::Client<_, Body> =
        hyper_util::client::legacy::Client::builder(TokioExecutor::new()).build(connector);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(transport);
    Ok(Client::new(service, config.default_namespace))
}

/// Connects over TCP; what it returns checks the fence before each write.
#[derive(Clone, Debug)]
struct FencedConnector {
    http: HttpConnector,
    fence: Fence,
}

type TcpIo = <HttpConnector as Service<Uri>>::Response;

impl Service<Uri> for FencedConnector {
    type Response = FencedIo<TcpIo>;
    type Error = <HttpConnector as Service<Uri>>::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.http.poll_ready(cx)
    }

    fn call(&mut self, target: Uri) -> Self::Future {
        let connecting = self.http.call(target);
        let fence = self.fence.clone();
        Box::pin(async move { Ok(FencedIo { io: connecting.await?, fence }) })
    }
}

/// A stream that refuses to send while the fence is closed.
#[derive(Debug)]
struct FencedIo<T> {
    io: T,
    fence: Fence,
}

impl<T> FencedIo<T> {
    fn check(&self) -> io::Result<()> {
        self.fence
            .may_write()
            .map_err(|fenced| io::Error::new(io::ErrorKind::PermissionDenied, fenced))
    }
}

impl<T: Connection> Connection for FencedIo<T> {
    fn connected(&self) -> Connected {
        self.io.connected()
    }
}

impl<T: Read + Unpin> Read for FencedIo<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl<T: Write + Unpin> Write for FencedIo<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check()?;
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.check()?;
        Pin::new(&mut self.io).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests;
