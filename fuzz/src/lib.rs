//! The fuzz targets. Each accepts arbitrary bytes and panics if Polyflake breaks a promise.

mod frames;
mod id_text;
mod layout;
mod options;
mod public_ids;
mod state_file;

pub use frames::frames;
pub use id_text::id_text;
pub use layout::layout;
pub use options::options;
pub use public_ids::public_ids;
pub use state_file::state_file;

use polyflake::{Error, ErrorCode};

/// Checks that the error has one of these codes, and that its message starts with the code's name.
fn check_error(error: &Error, codes: &[ErrorCode]) {
    let message = error.to_string();
    assert!(codes.contains(&error.code()), "{message}");
    assert!(
        message.strip_prefix(error.code().name()).is_some_and(|rest| rest.starts_with(": ")),
        "{message}"
    );
    assert!(!message.chars().any(char::is_control), "{message:?}");
    assert!(error.camel_case().to_string().starts_with(error.code().name()));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(name: &str, target: fn(&[u8])) {
        let folder = format!("{}/corpus/{name}", env!("CARGO_MANIFEST_DIR"));
        let files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
        assert!(!files.is_empty());
        for file in files {
            // Printed only if the test fails.
            println!("{}", file.display());
            target(&std::fs::read(file).unwrap());
        }
    }

    #[test]
    fn frames_of_the_corpus() {
        run("frames", frames);
    }

    #[test]
    fn layouts_of_the_corpus() {
        run("layout", layout);
    }

    #[test]
    fn id_texts_of_the_corpus() {
        run("id_text", id_text);
    }

    #[test]
    fn options_of_the_corpus() {
        run("options", options);
    }

    #[test]
    fn public_ids_of_the_corpus() {
        run("public_ids", public_ids);
    }

    #[test]
    fn state_files_of_the_corpus() {
        run("state_file", state_file);
    }
}
