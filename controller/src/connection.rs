//! Where the API server is and who we are.

use anyhow::Context as _;
use http::{HeaderValue, Uri, header::USER_AGENT};
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};

/// Connects by, in this order: `--kubeconfig`, `$KUBECONFIG`, the pod's service account, `~/.kube/config`.
/// `master` replaces the server address of whichever was found.
///
/// # Errors
/// When none of them is there or usable.
pub async fn connect(kubeconfig: Option<&str>, master: Option<&str>) -> anyhow::Result<Client> {
    let mut config = match kubeconfig.filter(|path| !path.is_empty()) {
        Some(path) => {
            let file = Kubeconfig::read_from(path).with_context(|| format!("kubeconfig {path}"))?;
            load(file).await.with_context(|| format!("kubeconfig {path}"))?
        }
        None => discovered().await?,
    };
    if let Some(master) = master.filter(|master| !master.is_empty()) {
        config.cluster_url =
            master.parse::<Uri>().with_context(|| format!("--master `{master}`"))?;
    }
    let agent = concat!("tephra-controller/", env!("CARGO_PKG_VERSION"));
    config.headers.push((USER_AGENT, HeaderValue::from_static(agent)));
    Client::try_from(config).context("connecting to the API server")
}

async fn discovered() -> anyhow::Result<Config> {
    if let Some(file) = Kubeconfig::from_env().context("$KUBECONFIG")? {
        return load(file).await.context("$KUBECONFIG");
    }
    match Config::incluster() {
        Ok(config) => Ok(config),
        Err(outside) => {
            let file = Kubeconfig::read().with_context(|| {
                format!("no --kubeconfig, no $KUBECONFIG, no service account ({outside})")
            })?;
            load(file).await.context("~/.kube/config")
        }
    }
}

async fn load(file: Kubeconfig) -> anyhow::Result<Config> {
    Ok(Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?)
}
