//! Batches of IDs: new lists, and buffers passed by the caller.

use polyflake::ThisProcess;
use pyo3::buffer::PyUntypedBuffer;
use pyo3::prelude::*;

use crate::convert;
use crate::errors::OrRaise;
use crate::wait::{Raised, ReleasesGil};

/// The number of IDs to issue before letting other threads take the GIL. Issuing them takes about 20 us.
const PART: usize = 16 * 1024;

/// Checks a batch's `n`.
pub(crate) fn size(n: &Bound<'_, PyAny>) -> PyResult<usize> {
    polyflake::batch_size(convert::number(n, "n")?).or_raise()
}

/// Returns a list of `n` IDs. `fill_part` fills the part passed to it.
pub(crate) fn list(
    py: Python<'_>,
    n: &Bound<'_, PyAny>,
    mut fill_part: impl FnMut(&mut [u64], &mut ReleasesGil<'_>) -> Result<(), Raised>,
) -> PyResult<Vec<u64>> {
    let mut ids = vec![0; size(n)?];
    in_one_process(|| fill_slice(py, &mut ids, &mut fill_part))?;
    Ok(ids)
}

/// Fills a writable, contiguous buffer of 8-byte integers. `fill_part` fills the part passed to it. If `all_bits` is
/// set, the IDs may use the top bit.
pub(crate) fn fill(
    py: Python<'_>,
    buffer: &Bound<'_, PyAny>,
    all_bits: bool,
    mut fill_part: impl FnMut(&mut [u64], &mut ReleasesGil<'_>) -> Result<(), Raised>,
) -> PyResult<()> {
    let buffer = check(buffer, all_bits)?;
    in_one_process(|| fill_checked(py, &buffer, &mut fill_part))
}

/// Starts a batch over in the child if a signal handler forked while the batch waited. The parent returns the IDs taken
/// before the fork.
fn in_one_process(mut batch: impl FnMut() -> PyResult<()>) -> PyResult<()> {
    loop {
        let process = ThisProcess::now();
        batch()?;
        if process.is_alive() {
            return Ok(());
        }
    }
}

fn fill_checked(
    py: Python<'_>,
    buffer: &PyUntypedBuffer,
    fill_part: &mut impl FnMut(&mut [u64], &mut ReleasesGil<'_>) -> Result<(), Raised>,
) -> PyResult<()> {
    let count = buffer.item_count();
    let first = buffer.buf_ptr().cast::<u64>();
    if count == 0 {
        // The pointer may be null. The core checks whether the generator was closed, or inherited in a fork.
        fill_slice(py, &mut [], fill_part)
    } else if first.is_aligned() {
        // SAFETY: the exporter keeps `count` writable, contiguous 8-byte integers at `first` for as long as `buffer` is
        // held, and every bit pattern is a valid u64. The caller must make sure that nothing else writes to them during
        // the call, as with every call that fills a buffer without the GIL (`readinto`).
        let ids = unsafe { std::slice::from_raw_parts_mut(first, count) };
        fill_slice(py, ids, fill_part)
    } else {
        // The view is not aligned to 8 bytes.
        let mut ids = [0; 512];
        (0..count).step_by(ids.len()).try_for_each(|start| {
            let part = &mut ids[..(count - start).min(512)];
            fill_slice(py, part, fill_part)?;
            // SAFETY: as above. Bytes need no alignment, and `start + part.len() <= count`.
            unsafe {
                let target = first.cast::<u8>().add(start * size_of::<u64>());
                target.copy_from_nonoverlapping(part.as_ptr().cast(), size_of_val(part));
            }
            Ok(())
        })
    }
}

/// Fills a slice in parts. Other threads can take the GIL between parts, and while this function waits.
fn fill_slice(
    py: Python<'_>,
    ids: &mut [u64],
    fill_part: &mut impl FnMut(&mut [u64], &mut ReleasesGil<'_>) -> Result<(), Raised>,
) -> PyResult<()> {
    let wait = &mut ReleasesGil::new(py);
    let mut parts = ids.chunks_mut(PART);
    let first = parts.next().unwrap_or_default();
    fill_part(first, wait)?;
    parts.try_for_each(|part| {
        py.detach(|| ());
        Ok(fill_part(part, wait)?)
    })
}

/// Checks that `fill` can write to this buffer, and returns it.
fn check(buffer: &Bound<'_, PyAny>, all_bits: bool) -> PyResult<PyUntypedBuffer> {
    let takes = "fill takes a writable, contiguous buffer of 8-byte integers (format Q or q)";
    let (buffer, signed) = convert::buffer(buffer, takes)?;
    if buffer.readonly() {
        return Err(convert::unfit(takes, "is read-only"));
    }
    if signed && all_bits {
        return Err(convert::unfit(takes, "is signed, and the layout's IDs take all 64 bits"));
    }
    Ok(buffer)
}
