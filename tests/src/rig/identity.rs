//! Who speaks to the API server: one token and one kubeconfig for each identity, so that the audit log tells the
//! writers apart. Our programs are the service accounts of the chart and have its rights, no others.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context as _;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Client;
use kube::api::{Api, PostParams};
use serde_json::json;

use super::component::Layout;
use super::manifests::SYSTEM_NAMESPACE;

/// A user of the control plane: one of its table of tokens, or a service account of the chart, which gets its token from
/// the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// User name, as the audit log shows it.
    pub user: &'static str,
    group: &'static str,
    /// Name of the service account in [`SYSTEM_NAMESPACE`].
    account: Option<&'static str>,
}

/// Release under which the chart is installed.
pub const RELEASE: &str = "tephra";
/// Release of the second scheduler's rights.
pub const RIVAL_RELEASE: &str = "tephra-b";
/// How long a service account's token holds: longer than any suite.
const SECONDS: i64 = 24 * 3600;

impl Identity {
    /// May do everything; plays the users.
    pub const ADMIN: Self = Self { user: "admin", group: "system:masters", account: None };
    /// kube-controller-manager.
    pub const CONTROLLER_MANAGER: Self =
        Self { user: "system:kube-controller-manager", group: "", account: None };
    /// The scheduler.
    pub const SCHEDULER: Self = Self {
        user: "system:serviceaccount:volcano-system:tephra-scheduler",
        group: "",
        account: Some("tephra-scheduler"),
    };
    /// A second scheduler with the same rights, told apart from the first in the audit log.
    pub const RIVAL: Self = Self {
        user: "system:serviceaccount:volcano-system:tephra-b-scheduler",
        group: "",
        account: Some("tephra-b-scheduler"),
    };
    /// The controller.
    pub const CONTROLLER: Self = Self {
        user: "system:serviceaccount:volcano-system:tephra-controllers",
        group: "",
        account: Some("tephra-controllers"),
    };

    /// Volcano's controller manager, where its chart is installed as release `volcano`.
    pub const VOLCANO: Self = Self {
        user: "system:serviceaccount:volcano-system:volcano-controllers",
        group: "",
        account: Some("volcano-controllers"),
    };

    /// Whether a user name is that of a program of ours.
    pub fn is_ours(user: &str) -> bool {
        OURS.iter().any(|identity| identity.user == user)
    }

    fn token(self) -> String {
        format!("rig-{}", self.user.replace(':', "-"))
    }

    /// Writes the kubeconfig of a user of the table.
    pub(crate) fn write_kubeconfig(self, layout: &Layout) -> anyhow::Result<()> {
        self.write_with(layout, &self.token())
    }

    /// Asks the server for the service account's token and writes its kubeconfig.
    pub(crate) async fn log_in(self, client: &Client, layout: &Layout) -> anyhow::Result<()> {
        let Some(account) = self.account else { return Ok(()) };
        let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), SYSTEM_NAMESPACE);
        let spec = TokenRequestSpec { expiration_seconds: Some(SECONDS), ..Default::default() };
        let request = TokenRequest { spec, ..TokenRequest::default() };
        let answer = accounts
            .create_token_request(account, &PostParams::default(), &request)
            .await
            .with_context(|| format!("a token for {account}"))?;
        self.write_with(layout, &answer.status.context("no token")?.token)
    }

    fn write_with(self, layout: &Layout, token: &str) -> anyhow::Result<()> {
        let content = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "rig",
            "clusters": [{"name": "rig", "cluster": {
                "server": layout.server(), "certificate-authority": layout.pki().join("ca.crt")}}],
            "users": [{"name": "rig", "user": {"token": token}}],
            "contexts": [{"name": "rig", "context": {"cluster": "rig", "user": "rig"}}],
        });
        let path = layout.kubeconfig(self);
        std::fs::write(&path, content.to_string())
            .with_context(|| format!("writing {}", path.display()))
    }
}

/// Users of the table of tokens.
pub(crate) const TABLE: [Identity; 2] = [Identity::ADMIN, Identity::CONTROLLER_MANAGER];
/// Our programs.
pub const OURS: [Identity; 3] = [Identity::SCHEDULER, Identity::RIVAL, Identity::CONTROLLER];

/// Writes the API server's table of tokens.
pub(crate) fn write_tokens(path: &Path) -> anyhow::Result<()> {
    let mut lines = String::new();
    for (uid, identity) in TABLE.iter().enumerate() {
        let (token, user, group) = (identity.token(), identity.user, identity.group);
        writeln!(lines, "{token},{user},{uid},\"{group}\"")?;
    }
    std::fs::write(path, lines).with_context(|| format!("writing {}", path.display()))
}
