//! The tests' own certificate authority, and the certificates it has signed.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::OnceLock;

use super::{give, run, unprivileged, write};

/// Writes `authority.pem`, and `server` and `client` (`.pem` and `.key`). The server's name is `localhost`, and the
/// client's is `polyflake`. `other.pem` is an authority that has signed nothing. Each process generates these files
/// only once.
pub fn make(folder: &Path) {
    static MADE: OnceLock<Vec<(OsString, Vec<u8>)>> = OnceLock::new();
    let made = MADE.get_or_init(|| {
        let made = super::folder();
        make_others(made.path());
        let all = fs::read_dir(made.path()).unwrap().map(|entry| entry.unwrap().file_name());
        all.map(|name| (name.clone(), fs::read(made.path().join(&name)).unwrap())).collect()
    });
    for (name, content) in made {
        let path = folder.join(name);
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        give(&path);
    }
}

/// Generates the same files, signed by a new authority each time.
pub fn make_others(folder: &Path) {
    for authority in ["authority", "other"] {
        let (key, certificate) = (format!("{authority}.key"), format!("{authority}.pem"));
        let subject = format!("/CN=Polyflake test {authority}");
        let mut request = key_command(folder, &key, &certificate, &subject);
        request.args(["-x509", "-days", "3650"]);
        run(request);
    }
    write(&folder.join("names"), "subjectAltName=DNS:localhost\n");
    for (name, subject) in [("server", "/CN=localhost"), ("client", "/CN=polyflake")] {
        let (key, certificate) = (format!("{name}.key"), format!("{name}.pem"));
        run(key_command(folder, &key, "request", subject));
        if name == "client" {
            // mysql_async 0.36 accepts only RSA keys in the older format.
            let mut key = unprivileged("openssl", folder);
            key.args(["genrsa", "-traditional", "-out", "client.key", "2048"]);
            run(key);
            let mut request = unprivileged("openssl", folder);
            request.args(["req", "-new", "-key", "client.key", "-out", "request", "-subj", subject]);
            run(request);
        }
        let mut sign = unprivileged("openssl", folder);
        sign.args(["x509", "-req", "-in", "request", "-CA", "authority.pem", "-CAkey", "authority.key"]);
        sign.args(["-CAcreateserial", "-days", "3650", "-extfile", "names", "-out", &certificate]);
        run(sign);
    }
}

fn key_command(folder: &Path, key: &str, out: &str, subject: &str) -> std::process::Command {
    let mut request = unprivileged("openssl", folder);
    request.args(["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]);
    request.args(["-keyout", key, "-out", out, "-subj", subject]);
    request
}
