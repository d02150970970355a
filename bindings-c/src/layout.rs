//! Layouts, and IDs taken apart and put together.

use core::ffi::{c_char, c_uint};

use polyflake::{Layout, MAX_NODE_FIELDS, UnixTime};

use crate::status::{
    Failure, copy_text, given, given_text, guard, length_with, output, polyflake_detail, polyflake_status,
    write_sized,
};
use crate::text::write_text;

/// What the bits of an ID mean. It never changes, and any thread may read it.
#[derive(Debug)]
pub struct polyflake_layout(pub(crate) Layout);

/// Room for a field's name and its NUL.
pub const POLYFLAKE_NAME_SIZE: usize = 25;
/// Room for the longest layout's text and its NUL.
pub const POLYFLAKE_LAYOUT_TEXT_SIZE: usize = 352;
/// The most node fields of a layout.
pub const POLYFLAKE_MAX_NODE_FIELDS: usize = 8;

const _: () = assert!(POLYFLAKE_MAX_NODE_FIELDS == MAX_NODE_FIELDS);

/// A layout's properties, from polyflake_layout_properties.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct polyflake_layout_info {
    /// sizeof(polyflake_layout_info), set by the caller.
    pub size: usize,
    /// The instant of tick 0, in Unix ms.
    pub epoch_ms: u64,
    /// How long a tick lasts, in ms.
    pub tick_ms: u64,
    /// The layout's last instant, in Unix ms.
    pub ends_at_ms: u64,
    /// How many IDs one node can issue in a tick.
    pub ids_per_tick: u64,
    /// How many nodes the layout tells apart.
    pub nodes: u64,
    /// The width of all fields together.
    pub total_bits: c_uint,
    /// The width of the timestamp.
    pub timestamp_bits: c_uint,
    /// How many bits stand below the timestamp.
    pub timestamp_shift: c_uint,
    /// The width of the sequence.
    pub sequence_bits: c_uint,
    /// How many bits stand below the sequence.
    pub sequence_shift: c_uint,
    /// The width of all node fields together.
    pub node_bits: c_uint,
    /// How many fields there are, the timestamp and the sequence among them.
    pub field_count: c_uint,
}

/// A field of a layout, from polyflake_layout_field.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct polyflake_field {
    /// sizeof(polyflake_field), set by the caller.
    pub size: usize,
    /// The field's bits, in their place in the ID.
    pub mask: u64,
    /// The field's width.
    pub bits: c_uint,
    /// How many bits stand below the field.
    pub shift: c_uint,
    /// 1 for a node field, 0 for the timestamp and the sequence.
    pub is_node: c_uint,
    /// The field's name, ending in a NUL.
    pub name: [c_char; POLYFLAKE_NAME_SIZE],
}

/// An ID taken apart, from polyflake_layout_decode.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct polyflake_decoded {
    /// sizeof(polyflake_decoded), set by the caller.
    pub size: usize,
    /// The ID.
    pub id: u64,
    /// The start of the ID's tick, in Unix ms.
    pub timestamp_ms: u64,
    /// How many ticks after the epoch.
    pub ticks: u64,
    /// All node fields joined, from the highest to the lowest.
    pub node: u64,
    /// The number within the tick.
    pub sequence: u64,
    /// How many of fields are used.
    pub field_count: u64,
    /// The node fields' values, from the highest down.
    pub fields: [u64; POLYFLAKE_MAX_NODE_FIELDS],
}

/// A layout from a preset's name or a layout's text, such as
/// "timestamp:41|worker:10|sequence:12@1288834974657/1ms" (the epoch in Unix ms, the tick as Nms or Ns). Free it
/// with polyflake_layout_free.
///
/// POLYFLAKE_INVALID_LAYOUT or POLYFLAKE_UNKNOWN_LAYOUT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_layout_parse(
    text: *const c_char,
    layout: *mut *mut polyflake_layout,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header asks.
        let (text, layout) =
            unsafe { (given_text(text, "text is NULL")?, output(layout, "layout is NULL")?) };
        layout.write(Box::into_raw(Box::new(polyflake_layout(Layout::parse(&text)?))));
        Ok(())
    })
}

/// Frees what polyflake_layout_parse gave. NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_layout_free(layout: *mut polyflake_layout) {
    if !layout.is_null() {
        // SAFETY: the caller gives back what polyflake_layout_parse gave, once.
        drop(unsafe { Box::from_raw(layout) });
    }
}

/// Writes the layout's text, which parses back, with its NUL into the capacity bytes at text;
/// POLYFLAKE_LAYOUT_TEXT_SIZE are always enough. Too few: POLYFLAKE_INVALID_OPTION.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_layout_text(
    layout: *const polyflake_layout,
    text: *mut c_char,
    capacity: usize,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header asks.
        unsafe { write_text(&given(layout, "layout is NULL")?.0.to_string(), text, capacity) }
    })
}

/// The layout's properties; set info->size first.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_layout_properties(
    layout: *const polyflake_layout,
    info: *mut polyflake_layout_info,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header asks.
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
        // SAFETY: as the header asks.
        unsafe { write_sized(info, length_with!(polyflake_layout_info, field_count: c_uint), &properties) }
    })
}

/// The field number index, counted from 0 at the highest bit; set field->size first. Past the last field:
/// POLYFLAKE_INVALID_OPTION.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_layout_field(
    layout: *const polyflake_layout,
    index: usize,
    field: *mut polyflake_field,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header asks.
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
        // SAFETY: as the header asks.
        unsafe {
            write_sized(field, length_with!(polyflake_field, name: [c_char; POLYFLAKE_NAME_SIZE]), &value)
        }
    })
}

/// Takes an ID apart; set decoded->size first. POLYFLAKE_INVALID_ID for one with bits above the layout's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_layout_decode(
    layout: *const polyflake_layout,
    id: u64,
    decoded: *mut polyflake_decoded,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header asks.
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
        // SAFETY: as the header asks.
        unsafe { write_sized(decoded, first, &value) }
    })
}

/// The value of the node field of that name in an ID. POLYFLAKE_INVALID_ID for an ID outside the layout,
/// POLYFLAKE_INVALID_OPTION where the layout has no such node field.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_layout_decode_field(
    layout: *const polyflake_layout,
    id: u64,
    name: *const c_char,
    value: *mut u64,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header asks.
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

/// The lowest ID at or after an instant: Unix ms, and the nanoseconds after them (0 to 999999; more carry over).
///
/// POLYFLAKE_TIME_OUT_OF_RANGE, or POLYFLAKE_INVALID_LAYOUT where a node field stands above the timestamp.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_layout_min_id(
    layout: *const polyflake_layout,
    unix_ms: i64,
    nanoseconds: u32,
    id: *mut u64,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header asks.
        let (layout, id) = unsafe { (&given(layout, "layout is NULL")?.0, output(id, "id is NULL")?) };
        id.write(layout.min_id(UnixTime::from_ms_ns(unix_ms, nanoseconds))?);
        Ok(())
    })
}

/// The highest ID at or before an instant: Unix ms, and the nanoseconds after them (0 to 999999; more carry over).
///
/// POLYFLAKE_TIME_OUT_OF_RANGE, or POLYFLAKE_INVALID_LAYOUT where a node field stands above the timestamp.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_layout_max_id(
    layout: *const polyflake_layout,
    unix_ms: i64,
    nanoseconds: u32,
    id: *mut u64,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header asks.
        let (layout, id) = unsafe { (&given(layout, "layout is NULL")?.0, output(id, "id is NULL")?) };
        id.write(layout.max_id(UnixTime::from_ms_ns(unix_ms, nanoseconds))?);
        Ok(())
    })
}
