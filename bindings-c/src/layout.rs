//! Layouts, and decoding and composing IDs.

use core::ffi::{c_char, c_uint};

use polyflake::{Error, Layout, MAX_NODE_FIELDS, UnixTime};

use crate::status::{
    Failure, copy_text, given, given_text, guard, length_with, output, polyflake_detail, polyflake_status,
    write_sized,
};
use crate::text::{POLYFLAKE_NAME_SIZE, write_text};

/// The meaning of an ID's bits. Immutable, and safe to use from any thread.
#[derive(Debug)]
pub struct polyflake_layout(pub(crate) Layout);

/// Enough bytes for any layout's text and its NUL.
pub const POLYFLAKE_LAYOUT_TEXT_SIZE: usize = 352;
/// The largest number of node fields in a layout.
pub const POLYFLAKE_MAX_NODE_FIELDS: usize = 8;

const _: () = assert!(POLYFLAKE_MAX_NODE_FIELDS == MAX_NODE_FIELDS);

/// The properties of a layout, filled in by polyflake_layout_properties.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct polyflake_layout_info {
    /// sizeof(polyflake_layout_info), set by the caller.
    pub size: usize,
    /// The start of tick 0, in Unix ms.
    pub epoch_ms: u64,
    /// The length of a tick, in ms.
    pub tick_ms: u64,
    /// The layout's last instant, in Unix ms.
    pub ends_at_ms: u64,
    /// How many IDs one node can issue in a tick.
    pub ids_per_tick: u64,
    /// How many different nodes the layout allows.
    pub nodes: u64,
    /// The width of all fields together, in bits.
    pub total_bits: c_uint,
    /// The width of the timestamp, in bits.
    pub timestamp_bits: c_uint,
    /// The number of bits below the timestamp.
    pub timestamp_shift: c_uint,
    /// The width of the sequence, in bits.
    pub sequence_bits: c_uint,
    /// The number of bits below the sequence.
    pub sequence_shift: c_uint,
    /// The width of all node fields together, in bits.
    pub node_bits: c_uint,
    /// The number of fields, including the timestamp and the sequence.
    pub field_count: c_uint,
}

/// A field of a layout, filled in by polyflake_layout_field.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct polyflake_field {
    /// sizeof(polyflake_field), set by the caller.
    pub size: usize,
    /// A mask of the field's bits within the ID.
    pub mask: u64,
    /// The width of the field, in bits.
    pub bits: c_uint,
    /// The number of bits below the field.
    pub shift: c_uint,
    /// 1 for a node field, 0 for the timestamp and the sequence.
    pub is_node: c_uint,
    /// The name of the field, NUL-terminated.
    pub name: [c_char; POLYFLAKE_NAME_SIZE],
}

/// The parts of an ID, filled in by polyflake_layout_decode.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct polyflake_decoded {
    /// sizeof(polyflake_decoded), set by the caller.
    pub size: usize,
    /// The ID.
    pub id: u64,
    /// The start of the ID's tick, in Unix ms.
    pub timestamp_ms: u64,
    /// The number of ticks since the epoch.
    pub ticks: u64,
    /// The value of all node bits together, highest field first.
    pub node: u64,
    /// The sequence number within the tick.
    pub sequence: u64,
    /// The number of entries used in fields.
    pub field_count: u64,
    /// The values of the node fields, highest first.
    pub fields: [u64; POLYFLAKE_MAX_NODE_FIELDS],
}

/// Parses a layout: the name of a preset, or a string such as "timestamp:41|worker:10|sequence:12@1288834974657/1ms"
/// (the epoch in Unix ms, the tick as Nms or Ns). Free the result with polyflake_layout_free.
///
/// Returns POLYFLAKE_INVALID_LAYOUT for an invalid layout, or POLYFLAKE_UNKNOWN_LAYOUT if no preset has this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_layout_parse(
    text: *const c_char,
    layout: *mut *mut polyflake_layout,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header requires.
        let (text, layout) =
            unsafe { (given_text(text, "text is NULL")?, output(layout, "layout is NULL")?) };
        layout.write(Box::into_raw(Box::new(polyflake_layout(Layout::parse(&text)?))));
        Ok(())
    })
}

/// Frees a layout from polyflake_layout_parse. Does nothing for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_layout_free(layout: *mut polyflake_layout) {
    if !layout.is_null() {
        // SAFETY: the pointer came from polyflake_layout_parse and is freed only once.
        drop(unsafe { Box::from_raw(layout) });
    }
}

/// Writes the layout as text, with a NUL, to the buffer of capacity bytes at text. POLYFLAKE_LAYOUT_TEXT_SIZE bytes are
/// always enough. polyflake_layout_parse reads it back.
///
/// Returns POLYFLAKE_INVALID_OPTION if capacity is too small.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_layout_text(
    layout: *const polyflake_layout,
    text: *mut c_char,
    capacity: usize,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header requires.
        unsafe { write_text(&given(layout, "layout is NULL")?.0.to_string(), text, capacity) }
    })
}

/// Gets the properties of a layout. Set info->size first.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_layout_properties(
    layout: *const polyflake_layout,
    info: *mut polyflake_layout_info,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header requires.
        let layout = unsafe { &given(layout, "layout is NULL")?.0 };
        let properties = polyflake_layout_info {
            size: 0,
            epoch_ms: layout.epoch_ms(),
            tick_ms: layout.tick_ms(),
            ends_at_ms: layout.ends_at_ms(),
            ids_per_tick: layout.ids_per_tick(),
            nodes: layout.nodes(),
            total_bits: layout.total_bits(),
            timestamp_bits: layout.timestamp_bits(),
            timestamp_shift: layout.timestamp_shift(),
            sequence_bits: layout.sequence_bits(),
            sequence_shift: layout.sequence_shift(),
            node_bits: layout.node_bits(),
            field_count: c_uint::try_from(layout.fields().len()).unwrap_or(0),
        };
        // SAFETY: as the header requires.
        unsafe { write_sized(info, length_with!(polyflake_layout_info, field_count: c_uint), &properties) }
    })
}

/// Gets the field at index, where 0 is the highest field. Set field->size first.
///
/// Returns POLYFLAKE_INVALID_OPTION if index is past the last field.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_layout_field(
    layout: *const polyflake_layout,
    index: usize,
    field: *mut polyflake_field,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header requires.
        let layout = unsafe { &given(layout, "layout is NULL")?.0 };
        let found = layout.fields().get(index).ok_or(Failure::Misuse("index is past the last field"))?;
        let mut name = [0; POLYFLAKE_NAME_SIZE];
        copy_text(found.name(), &mut name);
        let value = polyflake_field {
            size: 0,
            mask: found.mask(),
            bits: found.bits(),
            shift: found.shift(),
            is_node: found.is_node().into(),
            name,
        };
        // SAFETY: as the header requires.
        unsafe {
            write_sized(field, length_with!(polyflake_field, name: [c_char; POLYFLAKE_NAME_SIZE]), &value)
        }
    })
}

/// Decodes an ID. Set decoded->size first.
///
/// Returns POLYFLAKE_INVALID_ID if the ID has bits outside the layout.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_layout_decode(
    layout: *const polyflake_layout,
    id: u64,
    decoded: *mut polyflake_decoded,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header requires.
        let parts = unsafe { &given(layout, "layout is NULL")?.0 }.decode(id)?;
        let mut fields = [0; POLYFLAKE_MAX_NODE_FIELDS];
        for (to, (_, value)) in fields.iter_mut().zip(parts.fields()) {
            *to = value;
        }
        let value = polyflake_decoded {
            size: 0,
            id,
            timestamp_ms: parts.timestamp_ms(),
            ticks: parts.ticks(),
            node: parts.node(),
            sequence: parts.sequence(),
            field_count: parts.fields().count() as u64,
            fields,
        };
        let first = length_with!(polyflake_decoded, fields: [u64; POLYFLAKE_MAX_NODE_FIELDS]);
        // SAFETY: as the header requires.
        unsafe { write_sized(decoded, first, &value) }
    })
}

/// Gets the value of one node field of an ID, by the field's name.
///
/// Returns POLYFLAKE_INVALID_ID if the ID has bits outside the layout, or POLYFLAKE_INVALID_OPTION if the layout has no
/// node field of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_layout_decode_field(
    layout: *const polyflake_layout,
    id: u64,
    name: *const c_char,
    value: *mut u64,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header requires.
        let (layout, name, value) = unsafe {
            (
                &given(layout, "layout is NULL")?.0,
                given_text(name, "name is NULL")?,
                output(value, "value is NULL")?,
            )
        };
        let decoded = layout.decode(id)?;
        let field =
            decoded.field(&name).ok_or(Failure::Misuse("the layout has no node field of this name"))?;
        value.write(field);
        Ok(())
    })
}

/// Gets the lowest ID at or after an instant, given as Unix ms plus nanoseconds (0 to 999999; larger values carry
/// over).
///
/// Returns POLYFLAKE_TIME_OUT_OF_RANGE if the layout has no ID for that instant, or POLYFLAKE_INVALID_LAYOUT if a node
/// field is above the timestamp.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_layout_min_id(
    layout: *const polyflake_layout,
    unix_ms: i64,
    nanoseconds: u32,
    id: *mut u64,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header requires.
        unsafe { write_bound(layout, id, |layout| layout.min_id(UnixTime::from_ms_ns(unix_ms, nanoseconds))) }
    })
}

/// Gets the highest ID at or before an instant, given as Unix ms plus nanoseconds (0 to 999999; larger values carry
/// over).
///
/// Returns POLYFLAKE_TIME_OUT_OF_RANGE if the layout has no ID for that instant, or POLYFLAKE_INVALID_LAYOUT if a node
/// field is above the timestamp.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_layout_max_id(
    layout: *const polyflake_layout,
    unix_ms: i64,
    nanoseconds: u32,
    id: *mut u64,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header requires.
        unsafe { write_bound(layout, id, |layout| layout.max_id(UnixTime::from_ms_ns(unix_ms, nanoseconds))) }
    })
}

/// # Safety
/// As the header requires of `polyflake_layout_min_id`.
unsafe fn write_bound(
    layout: *const polyflake_layout,
    id: *mut u64,
    bound: impl FnOnce(&Layout) -> Result<u64, Error>,
) -> Result<(), Failure> {
    // SAFETY: as the caller promises.
    let (layout, id) = unsafe { (&given(layout, "layout is NULL")?.0, output(id, "id is NULL")?) };
    id.write(bound(layout)?);
    Ok(())
}
