//! The stand-in for `copies` where files are not ELF, or this has not been tried.

/// Other copies are not looked for.
#[doc(hidden)]
pub const fn copies_warning() -> Option<std::string::String> {
    None
}
