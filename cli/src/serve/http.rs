//! HTTP: IDs as JSON, text or bytes, and the pages for operators and browsers.

mod inspector;

use std::net::IpAddr;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes, HttpBody as _};
use axum::extract::{Path, Query, Request, State};
use axum::http::header::{
    ACCEPT, ALLOW, AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HOST, ORIGIN, RETRY_AFTER,
    WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodRouter, get};
use bytes::BytesMut;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use polyflake::{ErrorCode, Format, Layout, Number};
use serde::Serialize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use super::clients::{Client, SMALL};
use super::error::{Error, NOT_READY, UNKNOWN_GENERATOR};
use super::generators::{Ids, SNOWFLAKE};
use super::listen::{Protocol, Stream};
use super::memory::{Output, Room};
use super::metrics;
use super::service::Service;
use super::shutdown::Ending;
use crate::output;
use crate::parts::Printer;
use crate::reading::{read_id, shortened};

type Shared = State<Arc<Service>>;

/// How long a request may take to arrive once the server is shutting down.
const AT_ONCE: Duration = Duration::from_secs(1);

/// Serves HTTP connections.
#[derive(Clone)]
pub(crate) struct Http {
    service: Arc<Service>,
    router: Router,
}

impl Http {
    pub(crate) fn new(service: Arc<Service>) -> Self {
        let guarded = Router::new()
            .route("/v1/ids/{generator}", spending(get(ids).post(ids)))
            .route("/v1/decode/{id}", get(decode))
            .route("/api/snowflake/get/{key}", spending(get(leaf_snowflake)))
            .route("/api/segment/get/{key}", spending(get(leaf_segment)))
            .route("/metrics", get(metrics_text))
            .layer(from_fn_with_state(Arc::clone(&service), guard))
            .layer(from_fn_with_state(Arc::clone(&service), from_this_site));
        let router = Router::new()
            .route("/healthz", get(|| async { "ok\n" }))
            .route("/readyz", get(ready))
            .route("/readyz/{generator}", get(ready_of))
            .route("/openapi.json", get(description))
            .route("/", get(|| async { inspector::file("") }))
            .route("/{file}", get(|Path(file): Path<String>| async move { inspector::file(&file) }))
            .merge(guarded)
            .fallback(|| async { Answer::NotFound.into_response() })
            .layer(from_fn_with_state(Arc::clone(&service), bounds))
            .with_state(Arc::clone(&service));
        Self { service, router }
    }

    /// The pages for operators, without a token. They have their own listener, so that clients cannot block them.
    pub(crate) fn admin(service: Arc<Service>) -> Self {
        let router = Router::new()
            .route("/healthz", get(|| async { "ok\n" }))
            .route("/readyz", get(ready))
            .route("/readyz/{generator}", get(ready_of))
            .route("/metrics", get(metrics_text))
            .fallback(|| async { Answer::NotFound.into_response() })
            .layer(from_fn_with_state(Arc::clone(&service), bounds))
            .with_state(Arc::clone(&service));
        Self { service, router }
    }
}

impl Protocol for Http {
    const NAME: &'static str = "http";

    async fn serve(&self, mut stream: Stream, client: Arc<Client>, mut ending: Ending) {
        let _open = self.service.metrics.http().begin();
        let idle = stream.idle();
        client.await_head();
        let most = self.service.limits.frame;
        let most = if client.is_admitted() { most } else { most.min(SMALL) };
        let head = {
            let mut head = std::pin::pin!(head(&mut stream, most));
            tokio::select! {
                head = head.as_mut() => head,
                // A client that has just connected sends its request at once.
                () = ending.begins() => timeout(AT_ONCE, head).await.unwrap_or_default(),
            }
        };
        let Some(head) = head else { return };
        stream.put_back(head);
        let router = TowerToHyperService::new(self.router.clone());
        let here = Arc::clone(&self.service);
        let service = service_fn(move |mut request: hyper::Request<Incoming>| {
            client.has_head();
            request.extensions_mut().insert(Arc::clone(&client));
            let (answer, client, here) = (router.call(request), Arc::clone(&client), Arc::clone(&here));
            async move {
                let mut answer = answer.await;
                // While the server is shutting down, a client must not send a request just as its connection is being
                // closed.
                if let (true, Ok(answer)) = (!client.is_admitted() || here.is_ending(), &mut answer) {
                    answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                }
                client.await_head();
                answer
            }
        });
        let served = http1::Builder::new()
            .timer(TokioTimer::new())
            // This timeout also applies between two requests.
            .header_read_timeout(idle)
            .max_buf_size(self.service.limits.frame)
            .serve_connection(TokioIo::new(stream), service);
        // Boxed, so that a stranger that has only begun its request uses no memory for this.
        let mut served = Box::pin(served);
        // If a client misbehaves, only its connection is closed.
        tokio::select! {
            // Polled first, so that the head has been read; otherwise a shutdown would close the connection.
            biased;
            _ = served.as_mut() => return,
            () = ending.begins() => served.as_mut().graceful_shutdown(),
        }
        let _ = served.await;
    }
}

/// Reads the first request head on a connection. hyper would use more memory for it than a stranger is allowed, and
/// would answer a malformed head without a body.
async fn head(stream: &mut Stream, most: usize) -> Option<Bytes> {
    let mut head = BytesMut::with_capacity(256);
    loop {
        let count = stream.read_buf(&mut head).await.ok()?;
        let new = head.get(head.len().saturating_sub(count + 3)..).unwrap_or_default();
        let is_whole =
            new.windows(4).any(|end| end == b"\r\n\r\n") || new.windows(2).any(|end| end == b"\n\n");
        // Not HTTP, but TLS, say. Only the first read is checked: parsing again for each byte would take quadratic
        // time.
        let is_none = head.len() == count && head.first().is_some_and(|first| !first.is_ascii_alphabetic());
        let refusal = if is_whole || is_none {
            fault(&head)
        } else if head.len() >= most {
            Some((TOO_LARGE, format!("a request's head may have at most {most} bytes")))
        } else {
            None
        };
        if let Some((status, why)) = refusal {
            let error =
                if status == TOO_LARGE { "request_header_fields_too_large" } else { "invalid_request" };
            let body = json(&Complaint { error, message: &why });
            let answer = format!(
                "HTTP/1.1 {status}\r\ncontent-type: {JSON}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
            let _ = stream.write_all(answer.as_bytes()).await;
            let _ = stream.shutdown().await;
            return None;
        }
        if is_whole {
            return Some(head.freeze());
        }
        if count == 0 {
            return None;
        }
    }
}

/// The reason hyper would reject this head; `None` if it would accept it.
fn fault(head: &[u8]) -> Option<(&'static str, String)> {
    match httparse::Request::new(&mut [httparse::EMPTY_HEADER; MOST_HEADERS]).parse(head) {
        Ok(_) => None,
        Err(httparse::Error::TooManyHeaders) => {
            Some((TOO_LARGE, format!("a request may have at most {MOST_HEADERS} headers")))
        }
        Err(error) => Some(("400 Bad Request", format!("not an HTTP/1 request: {error}"))),
    }
}

/// HEAD would be a GET whose IDs no one receives.
fn spending(route: MethodRouter<Arc<Service>>) -> MethodRouter<Arc<Service>> {
    route.head(|| async { Answer::Head.into_response() })
}

/// A response that is not an ID.
enum Answer {
    NotFound,
    /// HEAD for a path that uses up IDs.
    Head,
    Foreign(String),
    Unauthorized {
        is_wrong: bool,
    },
    HasBody,
    Error(Error),
}

#[derive(Serialize)]
struct Complaint<'a> {
    error: &'a str,
    message: &'a str,
}

impl Answer {
    fn into_response(self) -> Response {
        let error = match self {
            Self::NotFound => return complain(StatusCode::NOT_FOUND, "not_found", "there is no such page"),
            Self::Head => {
                let why = "HEAD would use up IDs that nobody gets: use GET or POST";
                let mut response = complain(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", why);
                response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, POST"));
                return response;
            }
            Self::Foreign(why) => return complain(StatusCode::FORBIDDEN, "forbidden", &why),
            Self::Unauthorized { is_wrong } => {
                let fault = if is_wrong { "the token is wrong" } else { "a token is needed" };
                let why = &format!("{fault}: Authorization: Bearer TOKEN");
                let mut response = complain(StatusCode::UNAUTHORIZED, "unauthorized", why);
                response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
                return response;
            }
            Self::HasBody => {
                let mut response = complain(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    "payload_too_large",
                    "requests have no body here",
                );
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                return response;
            }
            Self::Error(error) => error,
        };
        let status = match error.code() {
            _ if error.name() == UNKNOWN_GENERATOR => StatusCode::NOT_FOUND,
            ErrorCode::InvalidOption
            | ErrorCode::InvalidId
            | ErrorCode::InvalidLayout
            | ErrorCode::UnknownLayout => StatusCode::BAD_REQUEST,
            ErrorCode::Internal | ErrorCode::TimeOutOfRange | ErrorCode::Forked => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        let mut response = complain(status, error.name(), error.message());
        if status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

impl From<Error> for Answer {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

impl From<polyflake::Error> for Answer {
    fn from(error: polyflake::Error) -> Self {
        Self::Error(error.into())
    }
}

fn complain(status: StatusCode, error: &str, message: &str) -> Response {
    let body = json(&Complaint { error, message });
    (status, [(CONTENT_TYPE, JSON)], body).into_response()
}

const TOO_LARGE: &str = "431 Request Header Fields Too Large";
/// The most headers that hyper reads.
const MOST_HEADERS: usize = 100;

const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";
const BYTES: &str = "application/octet-stream";

/// Adds a line break at the end, for terminals.
fn json(value: &impl Serialize) -> String {
    // Strings and numbers can always be serialized.
    output::as_json(&serde_json::to_string(value).unwrap_or_default()) + "\n"
}

async fn guard(State(service): Shared, request: Request, next: Next) -> Response {
    let header = request.headers().get(AUTHORIZATION).map(HeaderValue::as_bytes);
    if service.token.admits_header(header) {
        if let Some(client) = request.extensions().get::<Arc<Client>>() {
            client.admit(true);
        }
        return next.run(request).await;
    }
    match (header.is_some(), request.extensions().get::<Arc<Client>>()) {
        (true, Some(client)) => service.refuse(&Arc::clone(client)).await,
        _ => service.metrics.refuse(),
    }
    Answer::Unauthorized { is_wrong: header.is_some() }.into_response()
}

/// A page from another site could send requests from a browser on this network, which would use up IDs. If the page's
/// own host name resolves to this server, it could read them too.
async fn from_this_site(State(service): Shared, request: Request, next: Next) -> Response {
    match is_from_this_site(request.headers(), request.uri(), &service) {
        Ok(()) => next.run(request).await,
        Err(why) => Answer::Foreign(why).into_response(),
    }
}

fn is_from_this_site(headers: &HeaderMap, uri: &Uri, service: &Service) -> Result<(), String> {
    for name in [HOST.as_str(), ORIGIN.as_str(), "sec-fetch-site"] {
        if headers.get_all(name).iter().nth(1).is_some() {
            return Err(format!("{name} is given twice, so the request's origin is unclear"));
        }
    }
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    if let Some(site) = text("sec-fetch-site").filter(|site| !matches!(*site, "same-origin" | "none")) {
        let site = shortened(site);
        return Err(format!(
            "Sec-Fetch-Site is `{site}`: pages of other sites get no IDs, so ask from a program"
        ));
    }
    // A request may name the host in its target instead.
    let host = uri.authority().map(Authority::as_str).or_else(|| text(HOST.as_str())).unwrap_or_default();
    if let Some(origin) = text(ORIGIN.as_str()) {
        let its_host = origin.split_once("://").map_or("", |(_, host)| host);
        if !its_host.eq_ignore_ascii_case(host) || host.is_empty() {
            let (origin, host) = (shortened(origin), shortened(host));
            return Err(format!(
                "Origin is `{origin}` and Host is `{host}`: pages of other sites get no IDs"
            ));
        }
    }
    if service.token.is_wanted() || host.is_empty() {
        return Ok(());
    }
    let port = host.parse::<Authority>().ok().and_then(|authority| authority.port_u16());
    let name = port.map_or(host, |_| host.rsplit_once(':').map_or(host, |(name, _)| name));
    let address = name.trim_start_matches('[').trim_end_matches(']');
    if address.parse::<IpAddr>().is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || service.hosts.iter().any(|host| host.eq_ignore_ascii_case(name))
    {
        return Ok(());
    }
    let name = shortened(name);
    Err(format!(
        "Host is `{name}`: without a token, it must be an IP address, localhost, or a name that the server was given with --host {name}"
    ))
}

/// Applies to all requests: counts them, refuses bodies, keeps answers out of caches, and gives each error a name.
async fn bounds(State(service): Shared, request: Request, next: Next) -> Response {
    let (start, metrics) = (Instant::now(), service.metrics.http());
    metrics.request();
    let mut response = if !request.body().is_end_stream() {
        Answer::HasBody.into_response()
    } else if !is_text(request.uri().query().unwrap_or_default()) {
        StatusCode::BAD_REQUEST.into_response()
    } else {
        next.run(request).await
    };
    let status = response.status();
    if (status.is_client_error() || status.is_server_error()) && !is_ours(&response) {
        let (name, why) = match status {
            StatusCode::METHOD_NOT_ALLOWED => (
                "method_not_allowed",
                "this method is not allowed here: the header Allow lists those that are",
            ),
            StatusCode::NOT_FOUND => ("not_found", "there is no such page"),
            _ => ("invalid_request", "its path or its query cannot be read: they are percent-encoded UTF-8"),
        };
        let allow = response.headers_mut().remove(ALLOW);
        response = complain(status, name, why);
        response.headers_mut().extend(allow.map(|allow| (ALLOW, allow)));
    }
    let headers = response.headers_mut();
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    metrics.answer(status.as_u16());
    metrics.took(start.elapsed());
    response
}

/// Whether the query is percent-encoded UTF-8. If not, two keys could become the same key, with a replacement character
/// for whatever cannot be decoded.
fn is_text(query: &str) -> bool {
    let hex = |digit: Option<&u8>| digit.and_then(|&digit| char::from(digit).to_digit(16));
    let mut bytes = Vec::with_capacity(query.len());
    let mut rest = query.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let (byte, after) = match (byte, hex(after.first()), hex(after.get(1))) {
            (b'%', Some(high), Some(low)) => {
                let byte = u8::try_from(16 * high + low).unwrap_or_default();
                (byte, after.get(2..).unwrap_or_default())
            }
            (b'%', ..) => return false,
            _ => (byte, after),
        };
        bytes.push(byte);
        rest = after;
    }
    std::str::from_utf8(&bytes).is_ok()
}

fn is_ours(response: &Response) -> bool {
    response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == JSON)
}

/// The values of the parameters. Each may appear once, and there may be no others.
fn parameters<const N: usize>(
    query: Vec<(String, String)>,
    names: [&str; N],
) -> Result<[Option<String>; N], Error> {
    let mut values = [const { None }; N];
    for (name, value) in query {
        let Some(place) =
            names.iter().zip(&mut values).find_map(|(it, place)| (*it == name).then_some(place))
        else {
            let (name, names) = (shortened(&name), names.join(", "));
            let names = if names.is_empty() { "none" } else { &names };
            return Err(Error::invalid(format!("there is no parameter `{name}`; this path takes {names}")));
        };
        if place.replace(value).is_some() {
            return Err(Error::invalid(format!("{name} is given twice; give it once")));
        }
    }
    Ok(values)
}

type Parameters = Query<Vec<(String, String)>>;

async fn ids(
    State(service): Shared,
    Path(generator): Path<String>,
    Query(query): Parameters,
    headers: HeaderMap,
) -> Response {
    give(&service, &generator, query, &headers).await.unwrap_or_else(Answer::into_response)
}

async fn give(
    service: &Service,
    generator: &str,
    query: Vec<(String, String)>,
    headers: &HeaderMap,
) -> Result<Response, Answer> {
    let [n, format, key] = parameters(query, ["n", "format", "key"])?;
    let form = Form::of(format.as_deref(), headers)?;
    let (given, room) = match &key {
        Some(_) if n.is_some() => {
            return Err(Error::invalid("a key gives one number at a time; leave out n").into());
        }
        Some(key) => (Ids::Numbers(vec![service.of_key(generator, key).await?]), None),
        None => service.ids(generator, Number::parse(n.as_deref().unwrap_or("1"))).await?,
    };
    Ok(form.write(&given, room))
}

/// The format of an answer.
#[derive(Clone, Copy)]
enum Form {
    Json,
    Text,
    Bytes,
}

impl Form {
    /// The parameter takes precedence over the header.
    fn of(format: Option<&str>, headers: &HeaderMap) -> Result<Self, Error> {
        match format {
            Some("json") => return Ok(Self::Json),
            Some("text") => return Ok(Self::Text),
            Some("bytes") => return Ok(Self::Bytes),
            Some(other) => {
                let other = shortened(other);
                return Err(Error::invalid(format!("format is `{other}`; it takes json, text or bytes")));
            }
            None => {}
        }
        let lines = headers.get_all(ACCEPT).iter().filter_map(|line| line.to_str().ok());
        let ranges: Vec<_> = lines.flat_map(|line| line.split(',')).map(Range::read).collect();
        let mut best = (Self::Json, 0.0, usize::MAX);
        for form in [Self::Json, Self::Text, Self::Bytes] {
            // The most specific range determines a format's weight. Among formats with equal weights, the first one
            // named wins.
            let fit =
                ranges.iter().enumerate().filter_map(|(at, range)| Some((range.fits(form)?, at, range)));
            let Some((_, at, range)) = fit.max_by_key(|(fit, at, _)| (*fit, usize::MAX - at)) else {
                continue;
            };
            if range.weight > best.1 || (range.weight > 0.0 && range.weight >= best.1 && at < best.2) {
                best = (form, range.weight, at);
            }
        }
        Ok(best.0)
    }

    const fn kind(self) -> [&'static str; 2] {
        match self {
            Self::Json => ["application", "json"],
            Self::Text => ["text", "plain"],
            Self::Bytes => ["application", "octet-stream"],
        }
    }

    fn write(self, ids: &Ids, room: Option<Room>) -> Response {
        let (kind, body) = match self {
            Self::Json => (JSON, as_json(ids)),
            Self::Text => (TEXT, as_text(ids)),
            Self::Bytes => (BYTES, as_bytes(ids)),
        };
        let body = match room {
            None => Bytes::from(body),
            Some(mut room) => {
                Output::keep(&mut room, body.capacity());
                Bytes::from_owner(Roomy { body, _room: room })
            }
        };
        ([(CONTENT_TYPE, kind)], body).into_response()
    }
}

/// A part of the Accept header, such as `text/*;q=0.5`.
struct Range {
    kind: [String; 2],
    weight: f32,
}

impl Range {
    fn read(text: &str) -> Self {
        let mut parts = text.split(';').map(|part| part.trim().to_ascii_lowercase());
        let range = parts.next().unwrap_or_default();
        let (kind, subkind) = range.split_once('/').unwrap_or_default();
        let weight = parts.find_map(|part| part.strip_prefix("q=").map(|text| text.parse().unwrap_or(0.0)));
        let weight = weight.filter(|weight| (0.0..=1.0).contains(weight)).unwrap_or(1.0);
        Self { kind: [kind.into(), subkind.into()], weight }
    }

    /// How specifically the range names a format, if it matches.
    fn fits(&self, form: Form) -> Option<usize> {
        let pairs = || self.kind.iter().zip(form.kind());
        pairs()
            .all(|(ours, its)| ours == its || ours == "*")
            .then(|| pairs().filter(|(ours, its)| ours == its).count())
    }
}

/// An answer, which holds its share of the memory until the client has received it.
struct Roomy {
    body: Vec<u8>,
    _room: Room,
}

impl AsRef<[u8]> for Roomy {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

/// Writes IDs as strings, because JavaScript would round numbers.
fn as_json(ids: &Ids) -> Vec<u8> {
    // This is enough room for numbers.
    let mut body = Vec::with_capacity(16 + 23 * ids.len());
    body.extend_from_slice(b"{\"ids\":[");
    match ids {
        Ids::Numbers(numbers) => {
            let mut decimal = itoa::Buffer::new();
            for &number in numbers {
                body.push(b'"');
                body.extend_from_slice(decimal.format(number).as_bytes());
                body.extend_from_slice(b"\",");
            }
        }
        // IDs from a custom generator may contain any characters.
        Ids::Texts(texts) => {
            for id in texts {
                let text = serde_json::to_string(&id.text).unwrap_or_default();
                body.extend_from_slice(output::as_json(&text).as_bytes());
                body.push(b',');
            }
        }
    }
    if !ids.is_empty() {
        body.pop();
    }
    body.extend_from_slice(b"]}\n");
    body
}

fn as_text(ids: &Ids) -> Vec<u8> {
    let mut body = Vec::with_capacity(21 * ids.len());
    let mut line = |id: &str| {
        body.extend_from_slice(id.as_bytes());
        body.push(b'\n');
    };
    match ids {
        Ids::Numbers(numbers) => {
            let mut decimal = itoa::Buffer::new();
            for &number in numbers {
                line(decimal.format(number));
            }
        }
        Ids::Texts(texts) => texts.iter().for_each(|id| line(&id.text)),
    }
    body
}

fn as_bytes(ids: &Ids) -> Vec<u8> {
    match ids {
        Ids::Numbers(numbers) => numbers.iter().flat_map(|number| number.to_be_bytes()).collect(),
        Ids::Texts(texts) => texts.iter().flat_map(|id| id.bytes.iter().copied()).collect(),
    }
}

/// The output of `polyflake decode --json`.
async fn decode(State(service): Shared, Path(id): Path<String>, Query(query): Parameters) -> Response {
    let decoded = || {
        let [layout, text] = parameters(query, ["layout", "text"])?;
        let layout = layout.as_deref().map_or(Ok(service.layout()), Layout::parse)?;
        let format: Format = text.as_deref().map_or(Ok(Format::Decimal), str::parse)?;
        Ok::<_, Error>(layout.decode(read_id(&id, format)?)?)
    };
    match decoded() {
        Ok(decoded) => {
            let mut body = Vec::new();
            Printer::default().json(&decoded, &mut body);
            ([(CONTENT_TYPE, JSON)], body).into_response()
        }
        Err(error) => Answer::from(error).into_response(),
    }
}

/// Leaf's servers have one Snowflake generator, regardless of the key.
async fn leaf_snowflake(
    State(service): Shared,
    Path(key): Path<String>,
    Query(query): Parameters,
) -> Response {
    if let Err(error) = parameters(query, []) {
        return Answer::from(error).into_response();
    }
    leaf(&service, if service.has_snowflakes(&key) { &key } else { SNOWFLAKE }).await
}

async fn leaf_segment(State(service): Shared, Path(key): Path<String>, Query(query): Parameters) -> Response {
    if let Err(error) = parameters(query, []) {
        return Answer::from(error).into_response();
    }
    leaf(&service, &key).await
}

/// Answers with the bare number.
async fn leaf(service: &Service, generator: &str) -> Response {
    match service.block(generator, Number::from(1_u64)).await {
        Ok(id) => ([(CONTENT_TYPE, TEXT)], id.to_string()).into_response(),
        Err(error) => Answer::from(error).into_response(),
    }
}

async fn ready(State(service): Shared) -> Response {
    is_ready(service.trouble())
}

async fn ready_of(State(service): Shared, Path(generator): Path<String>) -> Response {
    service.trouble_of(&generator).map_or_else(|error| Answer::from(error).into_response(), is_ready)
}

fn is_ready(trouble: Option<String>) -> Response {
    match trouble {
        None => "ready\n".into_response(),
        Some(trouble) => {
            let mut response = complain(StatusCode::SERVICE_UNAVAILABLE, NOT_READY, &trouble);
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
            response
        }
    }
}

async fn description() -> Response {
    static TEXT: LazyLock<String> =
        LazyLock::new(|| include_str!("openapi.json").replace("VERSION", env!("CARGO_PKG_VERSION")));
    ([(CONTENT_TYPE, JSON)], TEXT.as_str()).into_response()
}

async fn metrics_text(State(service): Shared) -> Response {
    ([(CONTENT_TYPE, metrics::CONTENT_TYPE)], Body::from(service.metrics_text())).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::generators::TextId;

    #[test]
    fn each_form() {
        let numbers = Ids::Numbers(vec![1, u64::MAX]);
        assert_eq!(as_json(&numbers), b"{\"ids\":[\"1\",\"18446744073709551615\"]}\n");
        assert_eq!(as_text(&numbers), b"1\n18446744073709551615\n");
        assert_eq!(as_bytes(&numbers), [0, 0, 0, 0, 0, 0, 0, 1, 255, 255, 255, 255, 255, 255, 255, 255]);
        let texts = Ids::Texts(vec![TextId { text: "a\"b\n".into(), bytes: vec![1, 2] }]);
        assert_eq!(as_json(&texts), b"{\"ids\":[\"a\\\"b\\n\"]}\n");
        assert_eq!(as_text(&texts), b"a\"b\n\n");
        assert_eq!(as_bytes(&texts), [1, 2]);
        assert_eq!(as_json(&Ids::Numbers(Vec::new())), b"{\"ids\":[]}\n");
    }

    #[test]
    fn the_header_says_which() {
        let with = |accept: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, HeaderValue::from_static(accept));
            match Form::of(None, &headers) {
                Ok(Form::Json) => 'j',
                Ok(Form::Text) => 't',
                Ok(Form::Bytes) => 'b',
                Err(error) => panic!("{error}"),
            }
        };
        for (accept, form) in [
            ("*/*", 'j'),
            ("text/plain", 't'),
            ("Text/Plain;q=0.9, application/json", 'j'),
            ("application/json;q=0.5, text/plain", 't'),
            ("text/plain, application/json", 't'),
            ("text/*; q=1.000, */*;q=0.1", 't'),
            ("text/plain;q=0, application/octet-stream;q=0.1", 'b'),
            ("text/plain;q=0", 'j'),
            ("text/plain;q=much", 'j'),
            ("text/plain;q=0, text/*", 'j'),
            ("*/*, application/json;q=0", 't'),
            ("text/plain;q=0.5, application/json;q=7", 'j'),
            ("application/*;q=0.2, text/plain;q=0.1, application/octet-stream", 'b'),
            ("text", 'j'),
            ("", 'j'),
            ("text/html, application/octet-stream", 'b'),
            ("image/png", 'j'),
        ] {
            assert_eq!(with(accept), form, "{accept}");
        }
        let mut twice = HeaderMap::new();
        twice.append(ACCEPT, HeaderValue::from_static("application/json;q=0.1"));
        twice.append(ACCEPT, HeaderValue::from_static("text/plain"));
        assert!(matches!(Form::of(None, &twice), Ok(Form::Text)));
        assert!(Form::of(Some("xml"), &HeaderMap::new()).is_err());
    }
}
