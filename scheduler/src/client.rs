//! Clients of the API server. Two are built from one configuration: one for reads and the lease, and one for
//! all other writes, whose sockets refuse to send once the [`Fence`] is closed. The second check matters when
//! the process is stopped between asking the fence and sending: the bytes never leave.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};

use anyhow::Context as _;
use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioExecutor;
use kube::Client;
use kube::client::ConfigExt;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use tower::{BoxError, Service, ServiceBuilder};

use crate::fence::Fence;

/// Where the API server is and who we are: `--kubeconfig`, then `$KUBECONFIG`, then the service account of the
/// pod we run in, then `~/.kube/config`. `--master` replaces the address.
///
/// # Errors
/// When none of them yields a configuration, or the one named cannot be read.
pub async fn config(kubeconfig: Option<&Path>, master: Option<&str>) -> anyhow::Result<Config> {
    let mut config = match kubeconfig {
        Some(path) => {
            let file = Kubeconfig::read_from(path)
                .with_context(|| format!("reading kubeconfig {}", path.display()))?;
            from_file(file).await.with_context(|| format!("kubeconfig {}", path.display()))?
        }
        None => inferred(master).await?,
    };
    if let Some(master) = master {
        config.cluster_url = master.parse().with_context(|| format!("--master {master}"))?;
    }
    config.headers.push((http::header::USER_AGENT, user_agent()?));
    Ok(config)
}

async fn inferred(master: Option<&str>) -> anyhow::Result<Config> {
    if let Some(file) = Kubeconfig::from_env().context("reading $KUBECONFIG")? {
        return from_file(file).await.context("$KUBECONFIG");
    }
    if let Ok(config) = Config::incluster() {
        return Ok(config);
    }
    match Kubeconfig::read() {
        Ok(file) => from_file(file).await.context("~/.kube/config"),
        Err(_) if master.is_some() => Ok(Config::new(Uri::from_static("http://localhost"))),
        Err(error) => Err(error).context(
            "no API server: give --kubeconfig or --master, set $KUBECONFIG, or run inside a cluster",
        ),
    }
}

async fn from_file(file: Kubeconfig) -> anyhow::Result<Config> {
    Ok(Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?)
}

fn user_agent() -> anyhow::Result<http::HeaderValue> {
    let agent = format!(
        "tephra-scheduler/{} ({}/{})",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::OS,
        std::env::consts::ARCH
    );
    agent.parse().context("user agent")
}

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
    let transport: hyper_util::client::legacy::Client<_, kube::client::Body> =
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
