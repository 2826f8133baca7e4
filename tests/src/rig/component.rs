//! Command lines of the control plane's programs, and where their files and ports are.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;

use super::assets::{self, Assets};
use super::identity::Identity;

/// A program of the control plane, in starting order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Component {
    /// etcd, one member.
    Etcd,
    /// kube-apiserver.
    ApiServer,
    /// kube-controller-manager.
    ControllerManager,
    /// kwok: plays nodes and kubelets.
    Kwok,
}

/// Free ports of 127.0.0.1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ports {
    etcd: u16,
    etcd_peer: u16,
    api_server: u16,
    controller_manager: u16,
    kwok: u16,
}

impl Ports {
    /// Asks the system for free ports. Held together while asking, so they differ.
    pub(crate) fn free() -> std::io::Result<Self> {
        let mut held = Vec::new();
        let mut next = || {
            let listener = TcpListener::bind("127.0.0.1:0")?;
            let port = listener.local_addr()?.port();
            held.push(listener);
            std::io::Result::Ok(port)
        };
        Ok(Self {
            etcd: next()?,
            etcd_peer: next()?,
            api_server: next()?,
            controller_manager: next()?,
            kwok: next()?,
        })
    }
}

/// Files and addresses of one rig.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) folder: PathBuf,
    pub(crate) assets: Assets,
    pub(crate) ports: Ports,
    pub(crate) controller_manager: bool,
}

impl Layout {
    pub(crate) fn pki(&self) -> PathBuf {
        self.folder.join("pki")
    }

    pub(crate) fn tokens(&self) -> PathBuf {
        self.folder.join("tokens.csv")
    }

    pub(crate) fn audit_policy(&self) -> PathBuf {
        self.folder.join("audit-policy.yaml")
    }

    pub(crate) fn audit_log(&self) -> PathBuf {
        self.folder.join("audit.log")
    }

    pub(crate) fn kubeconfig(&self, identity: Identity) -> PathBuf {
        self.folder.join(format!("{}.kubeconfig", identity.user.replace(':', "-")))
    }

    pub(crate) fn server(&self) -> String {
        format!("https://127.0.0.1:{}", self.ports.api_server)
    }
}

impl Component {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
            Self::Kwok => "kwok",
        }
    }

    pub(crate) fn command(self, layout: &Layout) -> anyhow::Result<Command> {
        let mut command = Command::new(layout.assets.program(self.name())?);
        // Collecting rarely halves the CPU of each request; the limit keeps a large run inside the machine.
        command.env("GOGC", "400").env("GOMEMLIMIT", "4GiB");
        command.current_dir(&layout.folder).args(match self {
            Self::Etcd => etcd(layout),
            Self::ApiServer => api_server(layout),
            Self::ControllerManager => controller_manager(layout),
            Self::Kwok => kwok(layout),
        });
        Ok(command)
    }
}

fn etcd(layout: &Layout) -> Vec<String> {
    let client = format!("http://127.0.0.1:{}", layout.ports.etcd);
    let peer = format!("http://127.0.0.1:{}", layout.ports.etcd_peer);
    vec![
        "--name=rig".to_owned(),
        format!("--data-dir={}", layout.folder.join("etcd").display()),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=rig={peer}"),
        // The data does not outlive the suite.
        "--unsafe-no-fsync".to_owned(),
        "--quota-backend-bytes=4294967296".to_owned(),
        "--log-level=warn".to_owned(),
    ]
}

fn api_server(layout: &Layout) -> Vec<String> {
    let pki = |file: &str| layout.pki().join(file).display().to_string();
    // Without a controller manager nobody makes the default service account, nor takes the not-ready taint off.
    let disabled = if layout.controller_manager {
        "TaintNodesByCondition"
    } else {
        "ServiceAccount,TaintNodesByCondition"
    };
    vec![
        format!("--etcd-servers=http://127.0.0.1:{}", layout.ports.etcd),
        "--bind-address=127.0.0.1".to_owned(),
        "--advertise-address=127.0.0.1".to_owned(),
        format!("--secure-port={}", layout.ports.api_server),
        format!("--tls-cert-file={}", pki("apiserver.crt")),
        format!("--tls-private-key-file={}", pki("apiserver.key")),
        format!("--client-ca-file={}", pki("ca.crt")),
        format!("--token-auth-file={}", layout.tokens().display()),
        "--authorization-mode=RBAC".to_owned(),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        format!("--service-account-key-file={}", pki("sa.pub")),
        format!("--service-account-signing-key-file={}", pki("sa.key")),
        "--service-cluster-ip-range=10.0.0.0/16".to_owned(),
        "--endpoint-reconciler-type=none".to_owned(),
        "--allow-privileged=true".to_owned(),
        format!("--disable-admission-plugins={disabled}"),
        format!("--audit-policy-file={}", layout.audit_policy().display()),
        format!("--audit-log-path={}", layout.audit_log().display()),
        "--audit-log-mode=blocking".to_owned(),
        // MiB: never rotated under its reader.
        "--audit-log-maxsize=4096".to_owned(),
        "--v=0".to_owned(),
    ]
}

fn controller_manager(layout: &Layout) -> Vec<String> {
    let pki = |file: &str| layout.pki().join(file).display().to_string();
    let kubeconfig = layout.kubeconfig(Identity::CONTROLLER_MANAGER);
    vec![
        format!("--kubeconfig={}", kubeconfig.display()),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={}", layout.ports.controller_manager),
        "--leader-elect=false".to_owned(),
        // With false its job controller is refused.
        "--use-service-account-credentials=true".to_owned(),
        format!("--service-account-private-key-file={}", pki("sa.key")),
        format!("--root-ca-file={}", pki("ca.crt")),
        "--controllers=*,-nodeipam,-node-route-controller,-service-lb-controller,\
         -cloud-node-lifecycle-controller,-bootstrap-signer-controller,-token-cleaner-controller,\
         -persistentvolume-attach-detach-controller"
            .to_owned(),
        "--kube-api-qps=200".to_owned(),
        "--kube-api-burst=400".to_owned(),
        "--node-monitor-grace-period=300s".to_owned(),
        "--v=0".to_owned(),
    ]
}

fn kwok(layout: &Layout) -> Vec<String> {
    vec![
        format!("--kubeconfig={}", layout.kubeconfig(Identity::ADMIN).display()),
        "--manage-all-nodes=false".to_owned(),
        "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake".to_owned(),
        "--cidr=10.244.0.0/12".to_owned(),
        "--node-ip=127.0.0.1".to_owned(),
        // The default renews each node's lease every ten seconds, which is many writes.
        "--node-lease-duration-seconds=200".to_owned(),
        format!("--config={}", assets::source().join("stages.yaml").display()),
        format!("--server-address=127.0.0.1:{}", layout.ports.kwok),
        "--v=warn".to_owned(),
    ]
}
