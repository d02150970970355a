//! Metrics for operators, in Prometheus' text format.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::text::encode_registry;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use super::generators::Generator;
use crate::reading::shown;

/// The content type of the text.
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

type Labels = Vec<(&'static str, String)>;
type Counters = Family<Labels, Counter>;

#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    issued: Counters,
    errors: Counters,
    refused: Counter,
    ready: Family<Labels, Gauge>,
    http: Open,
    resp: Open,
}

/// The connections of each protocol.
#[derive(Debug, Clone)]
pub(crate) struct Open {
    now: Gauge,
    ever: Counter,
    requests: Counter,
    took: Histogram,
    /// HTTP answers, by status.
    answers: Family<[(&'static str, u32); 1], Counter>,
}

/// Counts a connection as open for as long as this value exists.
#[derive(Debug)]
pub(crate) struct OneOpen(Gauge);

impl Open {
    pub(crate) fn begin(&self) -> OneOpen {
        self.ever.inc();
        self.now.inc();
        OneOpen(self.now.clone())
    }

    pub(crate) fn request(&self) {
        self.requests.inc();
    }

    pub(crate) fn took(&self, time: Duration) {
        self.took.observe(time.as_secs_f64());
    }

    pub(crate) fn answer(&self, status: u16) {
        self.answers.get_or_create(&[("code", status.into())]).inc();
    }
}

impl Drop for OneOpen {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl Metrics {
    pub(crate) fn new() -> Arc<Self> {
        let mut registry = Registry::with_prefix("polyflake");
        let (issued, errors) = (Counters::default(), Counters::default());
        let (ready, refused) = (Family::<Labels, Gauge>::default(), Counter::default());
        registry.register("ids", "IDs given out", issued.clone());
        registry.register("errors", "Requests for IDs that failed", errors.clone());
        registry.register("refused", "Requests without the token", refused.clone());
        registry.register("ready", "Whether a generator gives IDs", ready.clone());
        let build = Family::<Labels, Gauge>::default();
        build.get_or_create(&vec![("version", env!("CARGO_PKG_VERSION").to_owned())]).set(1);
        registry.register("build_info", "Version of the server", build);
        let mut open = |protocol: &str| {
            let open = Open {
                now: Gauge::default(),
                ever: Counter::default(),
                requests: Counter::default(),
                // From 0.1 ms to 13 s.
                took: Histogram::new(exponential_buckets(0.0001, 2.0, 18)),
                answers: Family::default(),
            };
            let registry = registry.sub_registry_with_prefix(protocol);
            registry.register("connections", "Open connections", open.now.clone());
            registry.register("accepted", "Connections opened", open.ever.clone());
            registry.register("requests", "Requests and commands", open.requests.clone());
            if protocol == "http" {
                registry.register("responses", "Responses by status", open.answers.clone());
                registry.register("request_duration_seconds", "Duration of requests", open.took.clone());
            } else {
                let help = "Duration of commands, except each INCR that did not wait";
                registry.register("command_duration_seconds", help, open.took.clone());
            }
            open
        };
        let (http, resp) = (open("http"), open("resp"));
        Arc::new(Self { registry, issued, errors, refused, ready, http, resp })
    }

    pub(crate) const fn http(&self) -> &Open {
        &self.http
    }

    pub(crate) const fn resp(&self) -> &Open {
        &self.resp
    }

    /// The counter of a generator's IDs.
    pub(crate) fn issued(&self, generator: &str) -> Counter {
        self.issued.get_or_create_owned(&vec![("generator", shown(generator))])
    }

    pub(crate) fn failed(&self, generator: &str, error: &str) {
        let labels = vec![("generator", shown(generator)), ("error", shown(error))];
        self.errors.get_or_create(&labels).inc();
    }

    pub(crate) fn refuse(&self) {
        self.refused.inc();
    }

    pub(crate) fn refused(&self) -> u64 {
        self.refused.get()
    }

    /// The text, with the current values.
    pub(crate) fn text<'a>(
        &self,
        generators: impl Iterator<Item = (&'a str, &'a dyn Generator)>,
        is_ready: bool,
    ) -> String {
        let mut facts: BTreeMap<_, Family<Labels, Gauge<f64, AtomicU64>>> = BTreeMap::new();
        let mut counts: BTreeMap<_, Family<Labels, Counter<f64, AtomicU64>>> = BTreeMap::new();
        for (name, generator) in generators {
            let is_ready = is_ready && generator.trouble().is_none();
            self.ready.get_or_create(&vec![("generator", shown(name))]).set(is_ready.into());
            for (fact, value) in generator.facts() {
                let labels = vec![("generator", shown(name))];
                if let Some(count) = fact.strip_suffix("_total") {
                    counts.entry(count).or_default().get_or_create(&labels).inc_by(value);
                } else {
                    facts.entry(fact).or_default().get_or_create(&labels).set(value);
                }
            }
        }
        let mut now = Registry::with_prefix("polyflake_generator");
        for (fact, family) in facts {
            now.register(fact, "State of a generator", family);
        }
        for (count, family) in counts {
            now.register(count, "Counts of a generator", family);
        }
        let mut text = String::new();
        // This can only fail if memory runs out.
        let _ = encode_registry(&mut text, &self.registry).and_then(|()| encode_registry(&mut text, &now));
        classic(&text)
    }
}

/// Converts the text to Prometheus' older format, which every version reads, and which describes a counter by
/// its full name.
fn classic(text: &str) -> String {
    let mut classic = String::with_capacity(text.len());
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        // The line that describes a metric comes before the line with its type.
        let is_counter = |line: &str| line.starts_with("# TYPE ") && line.ends_with(" counter");
        let describes_counter = is_counter(line) || lines.peek().is_some_and(|next| is_counter(next));
        let mut words = line.splitn(4, ' ');
        match (line.starts_with("# "), words.next(), words.next(), words.next(), words.next()) {
            (true, Some(mark), Some(what), Some(name), Some(rest)) if describes_counter => {
                let _ = writeln!(classic, "{mark} {what} {name}_total {rest}");
            }
            _ => {
                classic.push_str(line);
                classic.push('\n');
            }
        }
    }
    classic
}
