//! Where the API server is and who we are.

use std::path::Path;

use anyhow::Context as _;
use clap::Args;
use http::Uri;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};

/// Flags that say where the API server is.
#[derive(Clone, Debug, Args)]
pub struct ConnectionFlags {
    /// Address of the API server (overrides the kubeconfig).
    #[arg(long, env = "TEPHRA_MASTER", default_value = "")]
    pub master: String,
    /// Path of a kubeconfig. Without it: $KUBECONFIG, the pod's service account, ~/.kube/config.
    #[arg(long, env = "TEPHRA_KUBECONFIG", default_value = "")]
    pub kubeconfig: String,
}

impl ConnectionFlags {
    /// The configuration that the flags amount to; `program` is how we introduce ourselves.
    ///
    /// # Errors
    /// As [`config`].
    pub async fn config(&self, program: &str) -> anyhow::Result<Config> {
        let given = |text| Some(text).filter(|text: &&str| !text.is_empty());
        config(program, given(&self.kubeconfig).map(Path::new), given(&self.master)).await
    }
}

/// Where the API server is and who we are: `--kubeconfig`, then `$KUBECONFIG`, then the service account of the
/// pod we run in, then `~/.kube/config`. `--master` replaces the address. `program` is how
/// we introduce ourselves.
///
/// # Errors
/// When none of them yields a configuration, or the one named cannot be read.
pub async fn config(
    program: &str,
    kubeconfig: Option<&Path>,
    master: Option<&str>,
) -> anyhow::Result<Config> {
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
    config.headers.push((http::header::USER_AGENT, user_agent(program)?));
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

fn user_agent(program: &str) -> anyhow::Result<http::HeaderValue> {
    let agent = format!(
        "{program}/{} ({}/{})",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::OS,
        std::env::consts::ARCH
    );
    agent.parse().context("user agent")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_address_of_the_server_is_taken_from_the_kubeconfig_and_overridden_by_master() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        let text = "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
            clusters: [{name: k, cluster: {server: \"https://from-file:1\"}}]\n\
            contexts: [{name: c, context: {cluster: k, user: u}}]\n\
            users: [{name: u, user: {token: t}}]\n";
        std::fs::write(&path, text).unwrap();
        let from_file = config("tephra-test", Some(&path), None).await.unwrap();
        assert_eq!(from_file.cluster_url.to_string(), "https://from-file:1/");
        let agent = &from_file.headers.iter().find(|(name, _)| name == "user-agent").unwrap().1;
        assert!(agent.to_str().unwrap().starts_with("tephra-test/"));
        let overridden =
            config("tephra-test", Some(&path), Some("https://master:2")).await.unwrap();
        assert_eq!(overridden.cluster_url.to_string(), "https://master:2/");
        let missing =
            config("tephra-test", Some(Path::new("/nowhere/config")), None).await.unwrap_err();
        assert!(format!("{missing:#}").contains("/nowhere/config"));
    }
}
