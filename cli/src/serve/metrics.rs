//! What an operator may want to graph, in Prometheus' text.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::generators::Generator;
use crate::reading::shown;

/// What the text is.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

type Labels = Vec<(&'static str, String)>;
type Counters = Family<Labels, Counter>;
type Gauges = Family<Labels, Gauge<f64, AtomicU64>>;

#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    issued: Counters,
    errors: Counters,
    refused: Counter,
    facts: Gauges,
    ready: Family<Labels, Gauge>,
    http: Open,
    resp: Open,
}

/// The connections of a protocol.
#[derive(Debug, Clone, Default)]
pub(crate) struct Open {
    now: Gauge,
    ever: Counter,
    requests: Counter,
}

/// A connection that is open as long as this is there.
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
}

impl Drop for OneOpen {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl Metrics {
    pub(crate) fn new() -> Arc<Self> {
        let mut registry = Registry::with_prefix("polyflake");
        let (issued, errors, facts) = (Counters::default(), Counters::default(), Gauges::default());
        let (ready, refused) = (Family::<Labels, Gauge>::default(), Counter::default());
        registry.register("ids", "IDs that were given out", issued.clone());
        registry.register("errors", "Requests for IDs that got an error", errors.clone());
        registry.register("refused", "Requests without the token", refused.clone());
        registry.register("ready", "Whether a generator gives IDs", ready.clone());
        registry.register("generator", "How a generator stands", facts.clone());
        let mut open = |protocol: &str| {
            let open = Open::default();
            let registry = registry.sub_registry_with_prefix(protocol);
            registry.register("connections", "Connections that are open", open.now.clone());
            registry.register("accepted", "Connections that were opened", open.ever.clone());
            registry.register("requests", "Requests and commands", open.requests.clone());
            open
        };
        let (http, resp) = (open("http"), open("resp"));
        Arc::new(Self { registry, issued, errors, refused, facts, ready, http, resp })
    }

    pub(crate) const fn http(&self) -> &Open {
        &self.http
    }

    pub(crate) const fn resp(&self) -> &Open {
        &self.resp
    }

    /// The counter of a generator's IDs.
    pub(crate) fn issued(&self, generator: &str) -> Counter {
        self.issued.get_or_create_owned(&vec![("name", shown(generator))])
    }

    pub(crate) fn failed(&self, generator: &str, error: &str) {
        let labels = vec![("name", shown(generator)), ("error", shown(error))];
        self.errors.get_or_create(&labels).inc();
    }

    pub(crate) fn refuse(&self) {
        self.refused.inc();
    }

    /// The text, as things stand.
    pub(crate) fn text<'a>(
        &self,
        generators: impl Iterator<Item = (&'a str, &'a dyn Generator)>,
        is_ready: bool,
    ) -> String {
        for (name, generator) in generators {
            let is_ready = is_ready && generator.trouble().is_none();
            self.ready.get_or_create(&vec![("generator", shown(name))]).set(is_ready.into());
            for (fact, value) in generator.facts() {
                let labels = vec![("name", shown(name)), ("fact", fact.to_owned())];
                self.facts.get_or_create(&labels).set(value);
            }
        }
        let mut text = String::new();
        // Only a full memory could fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}
