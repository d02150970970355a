//! The configuration file, and positions within it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::{Spanned, Value};

use super::{ReadyWhen, Wanted};
use crate::failure::Failure;
use crate::serve::error::Error;
use crate::serve::logs::Style;

pub(super) type Text = Spanned<String>;

/// The contents of a file.
#[allow(clippy::struct_field_names, reason = "as the flag")]
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) http: Option<Text>,
    pub(super) resp: Option<Text>,
    pub(super) admin: Option<Text>,
    pub(super) host: Option<Vec<String>>,
    pub(super) only_instance: Option<bool>,
    pub(super) lease: Option<Text>,
    pub(super) token_file: Option<PathBuf>,
    pub(super) tls: Option<Tls>,
    pub(super) limits: Option<Limits>,
    pub(super) log: Option<Style>,
    pub(super) ready_when: Option<ReadyWhen>,
    #[serde(default)]
    generators: BTreeMap<String, Spanned<BTreeMap<String, Spanned<Value>>>>,
    #[serde(skip)]
    name: String,
    #[serde(skip)]
    text: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tls {
    pub(super) cert: PathBuf,
    pub(super) key: PathBuf,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Limits {
    pub(super) max_n: Option<u64>,
    pub(super) max_connections: Option<u64>,
    pub(super) max_per_address: Option<u64>,
    pub(super) max_frame: Option<u64>,
    pub(super) max_output: Option<u64>,
    pub(super) idle: Option<u64>,
    pub(super) lame_duck: Option<u64>,
}

/// Where a value was given: in a flag, or in a line and key of the file.
#[derive(Debug, Clone)]
pub(super) struct Place(String);

impl Place {
    pub(super) fn flag(flag: &str) -> Self {
        Self(flag.into())
    }

    pub(super) fn failure(&self, error: &Error) -> Failure {
        Failure::new(error.code(), format!("{}: {}", self.0, error.message()))
    }
}

impl File {
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| Failure::io(&name, &error))?;
        match toml::from_str(&text) {
            Ok(file) => Ok(Self { name, text, ..file }),
            Err(error) => Err(Failure::option(complaint(&name, &text, &error))),
        }
    }

    /// The position of a key's value.
    pub(super) fn place<T>(&self, key: &str, value: &Spanned<T>) -> Place {
        self.at(key, value.span())
    }

    fn at(&self, key: &str, span: Range<usize>) -> Place {
        Place(format!("{}: line {}: {key}", self.name, line_of(&self.text, span.start)))
    }

    /// The tables `generators.name`.
    pub(super) fn generators(&self) -> Result<BTreeMap<String, Wanted>, Failure> {
        let mut all = BTreeMap::new();
        for (name, table) in &self.generators {
            let key = format!("generators.{name}");
            let whole = self.place(&key, table);
            let mut wanted = Wanted::of("", whole.clone());
            for (option, value) in table.get_ref() {
                let place = self.place(&format!("{key}.{option}"), value);
                let values = texts(value.get_ref()).ok_or_else(|| {
                    place.failure(&Error::invalid(
                        "it takes a string, a number, true or false, or a list of strings",
                    ))
                })?;
                if option == "kind" {
                    wanted.kind = values.into_iter().next().unwrap_or_default();
                } else {
                    wanted.values.insert(option.clone(), values);
                }
                wanted.places.insert(option.clone(), place);
            }
            if wanted.kind.is_empty() {
                return Err(whole
                    .failure(&Error::invalid("kind is missing: it takes snowflake, counter or the like")));
            }
            all.insert(name.clone(), wanted);
        }
        Ok(all)
    }
}

/// Returns an option's values as strings, the form that options have in every language.
fn texts(value: &Value) -> Option<Vec<String>> {
    let one = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Integer(number) => Some(number.to_string()),
        Value::Boolean(is) => Some(is.to_string()),
        _ => None,
    };
    match value {
        Value::Array(values) => values.iter().map(one).collect(),
        _ => one(value).map(|text| vec![text]),
    }
}

/// Describes the error in the file without quoting the file, which may contain a password.
fn complaint(name: &str, text: &str, error: &toml::de::Error) -> String {
    let said = error.message().lines().next().unwrap_or_default();
    // serde's message would quote the value itself.
    let what = match said.split_once(", expected ") {
        Some((found, expected)) if found.starts_with("invalid ") => format!("it takes {expected}"),
        _ => said.to_owned(),
    };
    let Some(span) = error.span() else { return format!("{name}: {what}") };
    let line = text.get(..span.start).map_or(0, |before| before.matches('\n').count());
    let key = text.lines().nth(line).and_then(|line| line.split_once('=')).map(|(key, _)| key.trim());
    let key = key.filter(|key| key.chars().all(|c| c.is_alphanumeric() || "-_.\"'".contains(c)));
    let key = key.map_or_else(String::new, |key| format!("{key}: "));
    format!("{name}: line {}: {key}{what}", line + 1)
}

fn line_of(text: &str, at: usize) -> usize {
    text.get(..at).map_or(0, |before| before.matches('\n').count()) + 1
}
