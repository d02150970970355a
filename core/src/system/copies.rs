//! Detects other copies of this library in the process. Each copy has its own cursors.
//!
//! Every program and library that Polyflake is linked into contains an ELF note. The loader keeps the note in
//! memory, and the note survives stripping, so it identifies a copy no matter what the file is called.

use core::ffi::{CStr, c_int, c_void};
use core::ptr;

use std::borrow::ToOwned;
use std::format;
use std::string::String;
use std::vec::Vec;

/// A note without a description: <https://refspecs.linuxfoundation.org/elf/gabi4+/ch5.pheader.html#note_section>.
#[repr(C, align(4))]
#[derive(PartialEq, Eq)]
struct Note {
    name_size: u32,
    description_size: u32,
    kind: u32,
    name: [u8; 12],
}

#[used]
#[unsafe(link_section = ".note.polyflake")]
#[allow(unsafe_code, reason = "the section holds only notes")]
static NOTE: Note = Note { name_size: 10, description_size: 0, kind: 1, name: *b"Polyflake\0\0\0" };

/// Returns a warning if this process has loaded other copies of Polyflake.
#[doc(hidden)]
pub fn copies_warning() -> Option<String> {
    let mut copies = Copies::default();
    // SAFETY: the callback receives the pointer passed here, and the loader's list does not change during the
    // call.
    #[allow(unsafe_code)]
    unsafe {
        libc::dl_iterate_phdr(Some(look), ptr::from_mut(&mut copies).cast::<c_void>());
    }
    let own = copies.own.unwrap_or_else(|| "this program".to_owned());
    (!copies.others.is_empty()).then(|| {
        format!(
            "this process has loaded Polyflake more than once, from {own} and from {}: each copy has its own cursors, so \
             Snowflakes on the same node repeat IDs; load one copy, give each copy its own nodes, or give all Snowflakes \
             on a node the same state file",
            copies.others.join(" and from ")
        )
    })
}

#[derive(Default)]
struct Copies {
    own: Option<String>,
    others: Vec<String>,
}

/// Looks for the note in a loaded file.
#[allow(unsafe_code)]
unsafe extern "C" fn look(info: *mut libc::dl_phdr_info, _: libc::size_t, copies: *mut c_void) -> c_int {
    // SAFETY: the loader describes a loaded file, and `copies_warning` passed the other pointer.
    let (info, copies) = unsafe { (&*info, &mut *copies.cast::<Copies>()) };
    if info.dlpi_phdr.is_null() {
        return 0;
    }
    // SAFETY: the loader provides the headers and their number.
    let headers = unsafe { core::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    for header in headers.iter().filter(|header| header.p_type == libc::PT_NOTE) {
        let Ok(offset) = usize::try_from(header.p_vaddr) else { continue };
        let Ok(size) = usize::try_from(header.p_memsz) else { continue };
        let Ok(base) = usize::try_from(info.dlpi_addr) else { continue };
        let start = ptr::with_exposed_provenance::<u8>(base.wrapping_add(offset));
        // SAFETY: the segment is loaded as long as the file is.
        let notes = unsafe { core::slice::from_raw_parts(start, size) };
        if holds_note(notes) {
            // SAFETY: the loader provides this string; it is empty for the program.
            let name = unsafe { CStr::from_ptr(info.dlpi_name) }.to_string_lossy();
            let name = if name.is_empty() { "the program".to_owned() } else { name.into_owned() };
            if notes.as_ptr_range().contains(&ptr::from_ref(&NOTE).cast()) {
                copies.own = Some(name);
            } else {
                copies.others.push(name);
            }
        }
    }
    0
}

/// Returns true if one of a file's notes is this library's. A note consists of three words, a name and a
/// description, padded to words.
fn holds_note(mut notes: &[u8]) -> bool {
    let word = |bytes: &[u8], at: usize| {
        let word = bytes.get(at..at + 4)?.try_into().ok()?;
        usize::try_from(u32::from_ne_bytes(word)).ok()
    };
    while let (Some(name_size), Some(description_size)) = (word(notes, 0), word(notes, 4)) {
        if notes.get(12..).and_then(|rest| rest.get(..name_size)) == Some(b"Polyflake\0") {
            return true;
        }
        let padded = |size: usize| size.checked_next_multiple_of(4);
        let length = padded(name_size)
            .zip(padded(description_size))
            .and_then(|(a, b)| a.checked_add(b)?.checked_add(12));
        notes = length.and_then(|length| notes.get(length..)).unwrap_or_default();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_one_copy_is_not_warned() {
        assert_eq!(copies_warning(), None);
    }

    #[test]
    fn this_program_has_the_note() {
        let mut copies = Copies::default();
        // SAFETY: as in `copies_warning`.
        #[allow(unsafe_code)]
        unsafe {
            libc::dl_iterate_phdr(Some(look), ptr::from_mut(&mut copies).cast::<c_void>());
        }
        assert!(copies.own.is_some(), "the linker left the note out");
    }

    #[test]
    fn a_note_is_found_behind_others_and_what_is_cut_off_is_none() {
        let note = |name: &[u8], description: &[u8]| {
            let mut bytes = Vec::new();
            for word in [name.len(), description.len(), 1] {
                bytes.extend(u32::try_from(word).unwrap().to_ne_bytes());
            }
            for text in [name, description] {
                bytes.extend(text);
                bytes.resize(bytes.len().next_multiple_of(4), 0);
            }
            bytes
        };
        let (ours, other) = (note(b"Polyflake\0", b""), note(b"GNU\0", &[7; 21]));
        assert!(holds_note(&ours) && !holds_note(&other));
        let all = [other.clone(), ours].concat();
        assert!(holds_note(&all));
        for end in 0..all.len() - 2 {
            assert!(!holds_note(&all[..end]), "{end} of {} bytes", all.len());
        }
        assert!(!holds_note(&[255; 40]));
    }
}
