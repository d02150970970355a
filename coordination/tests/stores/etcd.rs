//! etcd.

mod records;

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread;

use polyflake_coordination::stores::EtcdStore;
use polyflake_coordination::{Address, StoreError};

use super::records::look;
use super::servers::etcd::Etcd;
use super::servers::{certificates, folder};

fn read(url: &str) -> Result<(), StoreError> {
    look(EtcdStore::new(&Address::parse(url).unwrap())?).map(drop)
}

#[test]
fn tls_with_an_authority_of_its_own() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name).display().to_string();
    certificates::make(folder.path());
    let [ca, cert, key] = ["authority.pem", "server.pem", "server.key"].map(path);
    let [mine, my_key] = ["client.pem", "client.key"].map(path);
    let options = ["--cert-file", &cert, "--key-file", &key, "--trusted-ca-file", &ca];
    let etcd = Etcd::with("https", &options);
    let url = format!("etcds://localhost:{}", etcd.port());
    let error = read(&url).unwrap_err();
    assert!(matches!(&error, StoreError::Refused(said) if said.contains("certificate")), "{error:?}");
    let whole = format!("{url}?cacert={ca}&cert={mine}&key={my_key}");
    read(&whole).unwrap();
    let plain = format!("etcd://localhost:{}", etcd.port());
    read(&plain).unwrap_err();
}

/// Trying again would not help.
#[test]
fn a_server_that_does_not_speak_tls_is_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("etcds://127.0.0.1:{}", listener.local_addr().unwrap().port());
    let other = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 8192]).unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
    });
    let error = read(&url).unwrap_err();
    assert!(matches!(error, StoreError::Refused(_)), "{error:?}");
    other.join().unwrap();
}

/// Something other than etcd answers, and its answer never ends.
#[test]
fn an_answer_that_is_too_long() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("etcd://127.0.0.1:{}", listener.local_addr().unwrap().port());
    let other = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 8192]).unwrap();
        let megabytes = 64;
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", megabytes << 20);
        stream.write_all(head.as_bytes()).unwrap();
        (0..megabytes).all(|_| stream.write_all(&vec![b' '; 1 << 20]).is_ok())
    });
    let error = read(&url).unwrap_err();
    assert!(error.text().contains("longer than"), "{error:?}");
    assert!(!other.join().unwrap(), "all of it was read");
}
