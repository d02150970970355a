//! HTTP requests.

use std::io::Write as _;
use std::process::{Command, Stdio};

use super::super::servers::redis::Redis;
use super::super::{has, json};
use super::{Server, eventually, http};

fn ids(text: &str) -> Vec<String> {
    let found = json(text);
    found["ids"].as_array().unwrap().iter().map(|id| id.as_str().unwrap().to_owned()).collect()
}

#[test]
fn ids_in_each_form() {
    let folder = tempfile::tempdir().unwrap();
    let all = ["--counter", "orders", "--uuid", "random=4", "--uuid", "sorted=7", "--object-id", "object"];
    let server = Server::in_folder(folder.path(), &[&all[..], &["--sequences", "inbox"]].concat());

    // Snowflakes, which wait for the clock if one tick has too few.
    let first = ids(&server.ok("/v1/ids/snowflake"));
    let more = server.ids("/v1/ids/snowflake?n=10000&format=text");
    assert_eq!((first.len(), more.len()), (1, 10_000));
    assert!(more.is_sorted_by(|a, b| a < b) && first[0].parse::<u64>().unwrap() < more[0]);
    let decoded = json(&server.ok(&format!("/v1/decode/{}", first[0])));
    let printed = super::super::prints(&["decode", "--json", &first[0]]);
    assert_eq!(decoded, json(&printed));
    let with_layout = json(&server.ok("/v1/decode/175928847299117063?layout=discord"));
    assert_eq!(with_layout["time"], "2016-04-30T11:18:25.796Z");

    // Counters, in every format.
    assert_eq!(ids(&server.ok("/v1/ids/orders?n=3")), ["1", "2", "3"]);
    let accept = |accept: &str| {
        let mut response =
            http().get(server.url("/v1/ids/orders?n=2")).header("Accept", accept).call().unwrap();
        let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
        let (kind, cache) = (header("content-type"), header("cache-control"));
        assert_eq!(cache, "no-store");
        (kind, response.body_mut().read_to_vec().unwrap())
    };
    assert_eq!(accept("text/plain"), ("text/plain; charset=utf-8".into(), b"4\n5\n".to_vec()));
    let bytes = [0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0, 7].to_vec();
    assert_eq!(accept("application/octet-stream"), ("application/octet-stream".into(), bytes));
    assert_eq!(accept("application/json, */*").1, b"{\"ids\":[\"8\",\"9\"]}\n");

    // Keys.
    for (key, number) in [("alice", "1"), ("alice", "2"), ("bob", "1"), ("%C3%BC%20%26", "1")] {
        assert_eq!(ids(&server.ok(&format!("/v1/ids/inbox?key={key}"))), [number], "{key}");
    }

    // IDs that are not numbers.
    for (name, version) in [("random", '4'), ("sorted", '7')] {
        let found = ids(&server.ok(&format!("/v1/ids/{name}?n=100")));
        let are_new = |(a, b): (&String, &String)| a != b && (version == '4' || a < b);
        assert!(found.iter().zip(&found[1..]).all(are_new), "{found:?}");
        assert!(found.iter().all(|id| id.len() == 36 && id.chars().nth(14) == Some(version)), "{found:?}");
    }
    let objects = ids(&server.ok("/v1/ids/object?n=2"));
    has(&super::super::prints(&["inspect", &objects[0]]), &["ObjectId"]);
    let mut bytes = http().get(server.url("/v1/ids/object?n=3&format=bytes")).call().unwrap();
    assert_eq!(bytes.body_mut().read_to_vec().unwrap().len(), 36);
}

#[test]
fn what_operators_browsers_and_clients_of_leaf_ask() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::in_folder(folder.path(), &["--counter", "leaf-segment-test"]);
    assert_eq!(server.ok("/healthz"), "ok\n");
    assert_eq!(server.ok("/readyz"), "ready\n");
    assert!(server.ok("/").starts_with("<!"));
    assert_eq!(server.ok("/api/segment/get/leaf-segment-test"), "1");
    let ids: Vec<u64> = (0..2).map(|_| server.ok("/api/snowflake/get/any").parse().unwrap()).collect();
    assert!(ids[0] < ids[1]);
    let metrics = server.ok("/metrics");
    for line in [
        "polyflake_ids_total{generator=\"snowflake\"} 2",
        "polyflake_ids_total{generator=\"leaf-segment-test\"} 1",
        "polyflake_generator_lease_held{generator=\"snowflake\"} 1.0",
        "polyflake_generator_in_hand{generator=\"leaf-segment-test\"}",
        "polyflake_ready{generator=\"snowflake\"} 1",
        "polyflake_generator_waits_total{generator=\"leaf-segment-test\"}",
        "polyflake_http_responses_total{code=\"200\"}",
        "polyflake_http_request_duration_seconds_bucket{le=",
        "polyflake_build_info{version=",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    // Prometheus' own parser accepts the metrics.
    let mut promtool = Command::new("promtool");
    promtool.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut promtool = promtool.spawn().unwrap();
    promtool.stdin.take().unwrap().write_all(server.of_admin("/metrics").1.as_bytes()).unwrap();
    let said = promtool.wait_with_output().unwrap();
    let text = super::super::stdout(&said) + &super::super::stderr(&said);
    assert!(said.status.success() && text.is_empty(), "{text}");
    // Headers for browsers.
    let page = http().get(server.url("/")).call().unwrap();
    assert_eq!(page.headers()["x-content-type-options"], "nosniff");
    has(
        page.headers()["content-security-policy"].to_str().unwrap(),
        &["default-src 'none'", "frame-ancestors"],
    );
}

/// In cli/tests/clients/openapi.py, a fuzzer checks the server against the description.
#[test]
fn the_description_has_the_paths_of_the_page() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::in_folder(folder.path(), &["--uuid", "ids=7", "--counter", "orders"]);
    let description = json(&server.ok("/openapi.json"));
    assert_eq!(description["info"]["version"], env!("CARGO_PKG_VERSION"));
    let paths = description["paths"].as_object().unwrap();
    let page = super::super::guide::read("../docs/service.md");
    assert!(paths.len() > 8);
    for path in paths.keys() {
        let with = |generator, key, id| {
            path.replace("{generator}", generator).replace("{key}", key).replace("{id}", id)
        };
        server.ok(&with("ids", "orders", "1"));
        has(&page, &[&format!("`{}", with("NAME", "KEY", "ID"))]);
    }
}

/// This includes errors from the underlying libraries.
#[test]
fn every_error_is_json_with_its_name() {
    let server = Server::new(&["--uuid", "ids=7"]);
    for (path, status, error, part) in [
        (
            "/v1/ids/ids?count=5",
            400,
            "invalid_option",
            "no parameter `count`; this path takes n, format, key",
        ),
        ("/v1/ids/ids?n=1&n=2", 400, "invalid_option", "n is given twice"),
        // Otherwise, these two would be the same key.
        ("/v1/ids/ids?key=%ff", 400, "invalid_request", "percent-encoded"),
        ("/v1/ids/ids?key=%fe", 400, "invalid_request", "percent-encoded"),
        ("/v1/ids/ids?key=%zz", 400, "invalid_request", "percent-encoded"),
        ("/v1/ids/ids?key=%C3%A9", 400, "invalid_option", "this generator takes no key"),
        ("/api/segment/get/ids?n=5", 400, "invalid_option", "no parameter `n`; this path takes none"),
        ("/api/snowflake/get/ids?n=5", 400, "invalid_option", "no parameter `n`; this path takes none"),
        ("/v1/ids/%ff", 400, "invalid_request", "percent-encoded"),
        ("/v1/decode/1?n=1", 400, "invalid_option", "this path takes layout, text"),
        ("/readyz/other", 404, "unknown_generator", "this server has ids"),
        ("/a/b/c", 404, "not_found", ""),
    ] {
        let (found, body) = server.get(path);
        assert_eq!((found, json(&body)["error"].as_str()), (status, Some(error)), "{path}");
        assert!(json(&body)["message"].as_str().unwrap().contains(part), "{body}");
    }
    let mut put = http().put(server.url("/v1/ids/ids")).send_empty().unwrap();
    assert_eq!((put.status().as_u16(), put.headers().contains_key("allow")), (405, true));
    assert_eq!(json(&put.body_mut().read_to_string().unwrap())["error"], "method_not_allowed");
    let many = format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: y\r\n".repeat(100));
    for (bytes, status, error, part) in [
        ("\u{16}\u{3}\u{1}", 400, "invalid_request", "not an HTTP/1 request: "),
        ("GET / HTTP/9.1\r\n\r\n", 400, "invalid_request", "invalid HTTP version"),
        ("GET /\u{7f} HTTP/1.1\r\n\r\n", 400, "invalid_request", ""),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, "invalid_request", "invalid HTTP version"),
        (&many, 431, "request_header_fields_too_large", "at most 100 headers"),
    ] {
        let answer = String::from_utf8(Server::raw(server.http.unwrap(), bytes.as_bytes())).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{bytes}: {answer}");
        assert_eq!(json(body)["error"], error, "{bytes}");
        has(json(body)["message"].as_str().unwrap(), &[part]);
    }
    let long = [b"GET / HTTP/1.1\r\nX: ".to_vec(), vec![b'x'; 70_000]].concat();
    let answer = String::from_utf8(Server::raw(server.http.unwrap(), &long)).unwrap();
    // If the server did not read everything, the system may have discarded the answer.
    assert!(answer.is_empty() || answer.contains("\"request_header_fields_too_large\""), "{answer}");
}

/// The store's address may contain more than clients should know.
#[test]
fn clients_do_not_learn_where_the_store_is() {
    let (mut store, folder) = (Redis::new(), tempfile::tempdir().unwrap());
    let config = folder.path().join("polyflake.toml");
    let counter = format!("kind = \"counter\"\nstore = \"{}\"\nstep = 1\n", store.url());
    std::fs::write(&config, format!("[generators.asked]\n{counter}")).unwrap();
    let server = Server::new(&["--config", config.to_str().unwrap()]);
    let place = store.url().split_once("://").unwrap().1.split('/').next().unwrap().to_owned();
    store.server.kill();
    eventually(|| server.get("/readyz/asked").0 == 503);
    let answer = Server::raw(server.resp.unwrap(), b"INCR asked\r\nQUIT\r\n");
    let said = [
        server.get("/v1/ids/asked").1,
        server.get("/readyz").1,
        server.get("/readyz/asked").1,
        String::from_utf8(answer).unwrap(),
    ];
    for text in said {
        assert!(text.contains("counter_unavailable"), "{text}");
        assert!(!text.contains(&place) && !text.contains("redis:"), "{text}");
    }
    let (_, log) = server.terminate();
    assert!(log.contains(&place), "{log}");
}

#[test]
fn what_cannot_be() {
    let folder = tempfile::tempdir().unwrap();
    let all = ["--counter", "orders", "--sequences", "inbox", "--uuid", "ids=4"];
    let server = Server::in_folder(folder.path(), &all);
    for (path, status, error, part) in [
        ("/v1/ids/orders?n=0", 400, "invalid_option", "n is 0"),
        ("/v1/ids/orders?n=-1", 400, "invalid_option", "n is -1"),
        ("/v1/ids/orders?n=1152921504606846976", 400, "invalid_option", "n is 1152921504606846976"),
        ("/v1/ids/orders?n=10001", 400, "invalid_option", "from 1 to 10000"),
        ("/v1/ids/ids?n=10001", 400, "invalid_option", "from 1 to 10000"),
        ("/v1/ids/orders?n=", 400, "invalid_option", "n is"),
        ("/v1/ids/orders?n=1e3", 400, "invalid_option", "1e3"),
        ("/v1/ids/orders?format=xml", 400, "invalid_option", "format is `xml`"),
        ("/v1/ids/orders?key=alice", 400, "invalid_option", "takes no key"),
        ("/v1/ids/inbox", 400, "invalid_option", "key"),
        ("/v1/ids/inbox?key=a&n=2", 400, "invalid_option", "leave out n"),
        ("/v1/ids/other", 404, "unknown_generator", "inbox, orders, snowflake"),
        ("/v1/ids/a%22b", 404, "unknown_generator", "`a\"b`"),
        ("/api/segment/get/other", 404, "unknown_generator", "other"),
        ("/v1/decode/x", 400, "invalid_id", "position 1"),
        ("/v1/decode/99999999999999999999", 400, "invalid_id", ""),
        ("/v1/decode/1?layout=none", 400, "unknown_layout", ""),
        ("/other", 404, "not_found", ""),
        ("/v1/ids", 404, "not_found", ""),
        ("/../../etc/passwd", 404, "not_found", ""),
    ] {
        let (found, body) = server.get(path);
        assert_eq!(found, status, "{path}: {body}");
        let said = json(&body);
        assert_eq!(said["error"], error, "{path}");
        assert!(said["message"].as_str().unwrap().contains(part), "{path}: {body}");
    }
    let posted = http().post(server.url("/v1/ids/orders")).send("n=3").unwrap();
    assert_eq!(posted.status(), 413);
    for path in ["/v1/ids/orders?n=1000", "/api/segment/get/orders", "/v1/ids/inbox?key=a"] {
        let asked = http().head(server.url(path)).call().unwrap();
        assert_eq!(asked.status(), 405, "{path}");
        assert!(asked.headers()["allow"].to_str().unwrap().starts_with("GET"));
    }
    // None of these took a number.
    assert_eq!(server.ids("/v1/ids/orders?format=text"), [1]);
    let mut posted = http().post(server.url("/v1/ids/orders?n=2&format=text")).send_empty().unwrap();
    assert_eq!(posted.body_mut().read_to_string().unwrap(), "2\n3\n");
}

/// In a browser on this host, a page from another site can neither read IDs nor use them up.
#[test]
fn pages_of_other_sites_get_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--counter", "orders", "--host", "ids.internal"];
    let server = Server::in_folder(folder.path(), &arguments);
    let ask = |headers: &[(&str, &str)]| {
        let mut request = http().get(server.url("/v1/ids/orders?format=text"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut response = request.call().unwrap();
        (response.status().as_u16(), response.body_mut().read_to_string().unwrap())
    };
    let own = server.http.unwrap().to_string();
    let own_origin = format!("http://{own}");
    for (headers, part) in [
        (&[("Sec-Fetch-Site", "cross-site")][..], "Sec-Fetch-Site is `cross-site`"),
        (&[("Sec-Fetch-Site", "same-site")], "Sec-Fetch-Site is `same-site`"),
        (&[("Sec-Fetch-Site", "\u{e9}")], "Sec-Fetch-Site is"),
        (&[("Origin", "http://evil.example")], "Origin is `http://evil.example`"),
        (&[("Origin", "null")], "Origin is `null`"),
        (&[("Host", "evil.example")], "--host evil.example"),
        (&[("Host", "evil.example:8080")], "Host is `evil.example`"),
        (&[("Host", "evil.example"), ("Origin", "http://evil.example")], "Host is `evil.example`"),
        (&[("Host", "127.0.0.1.evil.example")], "Host is"),
        (&[("Sec-Fetch-Site", "none"), ("Sec-Fetch-Site", "cross-site")], "sec-fetch-site is given twice"),
        (&[("Origin", &own_origin), ("Origin", "http://evil.example")], "origin is given twice"),
    ] {
        let (status, body) = ask(headers);
        assert_eq!((status, json(&body)["error"].as_str()), (403, Some("forbidden")), "{headers:?}");
        assert!(json(&body)["message"].as_str().unwrap().contains(part), "{body}");
    }
    for (number, headers) in [
        &[("Sec-Fetch-Site", "same-origin")][..],
        &[("Sec-Fetch-Site", "none")],
        &[("Origin", &own_origin)],
        &[("Host", "localhost")],
        &[("Host", "LocalHost:8080")],
        &[("Host", "[::1]:8080")],
        &[("Host", "10.0.0.7")],
        &[("Host", "IDs.internal:8080")],
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(ask(headers), (200, format!("{}\n", number + 1)), "{headers:?}");
    }
    // Probes and the page are open to everyone.
    for path in ["/healthz", "/readyz", "/"] {
        let asked = http().get(server.url(path)).header("Host", "evil.example").call().unwrap();
        assert_eq!(asked.status(), 200, "{path}");
    }
    // A client with the token cannot be a stranger's page.
    let token = folder.path().join("token");
    std::fs::write(&token, "hunter2").unwrap();
    let server = Server::new(&["--uuid", "ids=7", "--token-file", token.to_str().unwrap()]);
    let asked = http().get(server.url("/v1/ids/ids")).header("Host", "ids.example");
    assert_eq!(asked.header("Authorization", "Bearer hunter2").call().unwrap().status(), 200);
}
