//! A stand-in for `copies` on systems that do not use ELF files or on which it is untested.

/// Does not look for other copies.
#[doc(hidden)]
pub const fn copies_warning() -> Option<std::string::String> {
    None
}
