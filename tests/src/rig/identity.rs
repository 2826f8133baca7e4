//! Who speaks to the API server: one token and one kubeconfig for each identity, so that the audit log tells the
//! writers apart.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context as _;
use serde_json::json;

use super::component::Layout;

/// A user of the control plane; its token is derived from its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// User name, as the audit log shows it.
    pub user: &'static str,
    group: &'static str,
}

/// Group of our programs, bound to rights in [`super::manifests`].
pub(crate) const GROUP: &str = "tephra";

impl Identity {
    /// May do everything; plays the users.
    pub const ADMIN: Self = Self { user: "admin", group: "system:masters" };
    /// kube-controller-manager.
    pub const CONTROLLER_MANAGER: Self = Self { user: "system:kube-controller-manager", group: "" };
    /// The scheduler.
    pub const SCHEDULER: Self = Self { user: "tephra-scheduler", group: GROUP };
    /// A second scheduler, told apart from the first in the audit log.
    pub const RIVAL: Self = Self { user: "tephra-scheduler-b", group: GROUP };
    /// The controller.
    pub const CONTROLLER: Self = Self { user: "tephra-controller", group: GROUP };

    fn token(self) -> String {
        format!("rig-{}", self.user.replace(':', "-"))
    }

    pub(crate) fn write_kubeconfig(self, layout: &Layout) -> anyhow::Result<()> {
        let content = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "rig",
            "clusters": [{"name": "rig", "cluster": {
                "server": layout.server(), "certificate-authority": layout.pki().join("ca.crt")}}],
            "users": [{"name": "rig", "user": {"token": self.token()}}],
            "contexts": [{"name": "rig", "context": {"cluster": "rig", "user": "rig"}}],
        });
        let path = layout.kubeconfig(self);
        std::fs::write(&path, content.to_string())
            .with_context(|| format!("writing {}", path.display()))
    }
}

/// Every identity of the rig.
pub const ALL: [Identity; 5] = [
    Identity::ADMIN,
    Identity::CONTROLLER_MANAGER,
    Identity::SCHEDULER,
    Identity::RIVAL,
    Identity::CONTROLLER,
];

/// Writes the API server's table of tokens.
pub(crate) fn write_tokens(path: &Path) -> anyhow::Result<()> {
    let mut lines = String::new();
    for (uid, identity) in ALL.iter().enumerate() {
        let (token, user, group) = (identity.token(), identity.user, identity.group);
        writeln!(lines, "{token},{user},{uid},\"{group}\"")?;
    }
    std::fs::write(path, lines).with_context(|| format!("writing {}", path.display()))
}
