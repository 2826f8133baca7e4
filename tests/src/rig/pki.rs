//! Certificates of the rig, made with the `openssl` program: an authority, the API server's certificate, and the
//! key that signs service account tokens. Clients use tokens.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

const AUTHORITY: &str =
    "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign,cRLSign,digitalSignature\n";
const SERVER: &str = "subjectAltName=IP:127.0.0.1,IP:10.0.0.1,DNS:localhost,DNS:kubernetes,\
DNS:kubernetes.default,DNS:kubernetes.default.svc\nextendedKeyUsage=serverAuth\n";

/// Writes `ca.crt`, `apiserver.{crt,key}`, `sa.{key,pub}` into a new folder.
///
/// # Errors
/// When `openssl` is missing or refuses.
pub(crate) fn write(folder: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join("ca.ext"), AUTHORITY)?;
    std::fs::write(folder.join("apiserver.ext"), SERVER)?;
    for name in ["ca", "apiserver", "sa"] {
        let key = format!("{name}.key");
        // PKCS#8, which is what both Go and rustls read.
        let curve = "ec_paramgen_curve:P-256";
        openssl(folder, &["genpkey", "-algorithm", "EC", "-pkeyopt", curve, "-out", &key])?;
    }
    openssl(folder, &["pkey", "-in", "sa.key", "-pubout", "-out", "sa.pub"])?;
    let request = |name: &str, subject: &str| {
        let (key, csr) = (format!("{name}.key"), format!("{name}.csr"));
        openssl(folder, &["req", "-new", "-key", &key, "-subj", subject, "-out", &csr])
    };
    request("ca", "/CN=rig-ca")?;
    request("apiserver", "/CN=kube-apiserver")?;
    let sign = |name: &str, signer: &[&str]| {
        let (csr, crt, ext) = (format!("{name}.csr"), format!("{name}.crt"), format!("{name}.ext"));
        let mut arguments = vec!["x509", "-req", "-in", &csr, "-out", &crt, "-extfile", &ext];
        arguments.extend(["-days", "30"]);
        arguments.extend(signer);
        openssl(folder, &arguments)
    };
    sign("ca", &["-signkey", "ca.key"])?;
    sign("apiserver", &["-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial"])
}

fn openssl(folder: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    let output = Command::new("openssl")
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .context("running openssl (is it installed?)")?;
    if !output.status.success() {
        bail!("openssl {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}
