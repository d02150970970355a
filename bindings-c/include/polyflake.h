/* Polyflake: 64-bit, time-ordered, unique IDs (Snowflakes).
 *
 *   polyflake_options *o = polyflake_options_new();
 *   polyflake_options_set(o, "node", "7", NULL);
 *   polyflake_snowflake *ids;
 *   polyflake_status s = polyflake_snowflake_new(o, &ids, NULL);
 *   uint64_t id;
 *   if (s == POLYFLAKE_OK) s = polyflake_next_id(ids, &id, NULL);
 *
 * Every call that can fail returns a status, POLYFLAKE_OK (0) or one of the permanent numbers below, and takes its
 * arguments in one order: the object, the inputs, the outputs, and last a polyflake_detail for what is wrong, with its
 * size set, or NULL for none. Outputs are written only where it returns POLYFLAKE_OK. Every pointer is checked: one
 * that is NULL and may not be gives POLYFLAKE_INVALID_OPTION.
 *
 * Texts are UTF-8 and end in a NUL; they are read during the call and never kept. What a _new or _parse
 * function gives is the caller's, who gives it back to the _free function of its kind, once; NULL is fine
 * there. A polyflake_snowflake and a polyflake_layout may be used from many threads at once, a
 * polyflake_options from one at a time. Nothing is kept for a thread, and no error outlives its call.
 *
 * Times are Unix milliseconds: since 1970-01-01T00:00Z, leap seconds not counted.
 *
 * Made by cbindgen from bindings-c/src: do not edit. */


#ifndef POLYFLAKE_H
#define POLYFLAKE_H

#include <stddef.h>
#include <stdint.h>

/**
 * The version of the ABI that this header describes. It goes up when a program must be compiled anew.
 */
#define POLYFLAKE_ABI_VERSION 0

/**
 * The version of the library that this header came with, as polyflake_version gives it at run time.
 */
#define POLYFLAKE_VERSION_MAJOR 0

/**
 * See POLYFLAKE_VERSION_MAJOR.
 */
#define POLYFLAKE_VERSION_MINOR 1

/**
 * See POLYFLAKE_VERSION_MAJOR.
 */
#define POLYFLAKE_VERSION_PATCH 0

/**
 * Room for a field's name and its NUL.
 */
#define POLYFLAKE_NAME_SIZE 25

/**
 * Room for the longest layout's text and its NUL.
 */
#define POLYFLAKE_LAYOUT_TEXT_SIZE 352

/**
 * The most node fields of a layout.
 */
#define POLYFLAKE_MAX_NODE_FIELDS 8

/**
 * The most IDs that a language whose call makes the array itself gives at once; see polyflake_check_batch.
 */
#define POLYFLAKE_MAX_BATCH 16777216

/**
 * Room for the longest text of an ID and its NUL.
 */
#define POLYFLAKE_ID_TEXT_SIZE 21

/**
 * What the bits of an ID mean. It never changes, and any thread may read it.
 */
typedef struct polyflake_layout polyflake_layout;

/**
 * What a Snowflake is made from. One thread at a time may use it.
 */
typedef struct polyflake_options polyflake_options;

/**
 * A generator of unique, time-ordered 64-bit IDs. Any number of threads may use it at once.
 */
typedef struct polyflake_snowflake polyflake_snowflake;

/**
 * POLYFLAKE_OK or the permanent number of an error, the same in every language.
 */
typedef int32_t polyflake_status;

/**
 * What stands behind a status other than POLYFLAKE_OK. Set size to sizeof(polyflake_detail) before a call;
 * the rest is written only where the call does not return POLYFLAKE_OK.
 */
typedef struct polyflake_detail {
  /**
   * sizeof(polyflake_detail), set by the caller.
   */
  size_t size;
  /**
   * By how many ms the clock stands behind the last ID, with POLYFLAKE_CLOCK_MOVED_BACKWARDS; else 0.
   */
  uint64_t behind_ms;
  /**
   * After how many ms of the clock the next ID can come, with POLYFLAKE_CLOCK_MOVED_BACKWARDS and
   * POLYFLAKE_SEQUENCE_EXHAUSTED; else 0.
   */
  uint64_t retry_after_ms;
  /**
   * What is wrong and what would fit, ending in a NUL.
   */
  char message[496];
} polyflake_detail;

/**
 * A layout's properties, from polyflake_layout_properties.
 */
typedef struct polyflake_layout_info {
  /**
   * sizeof(polyflake_layout_info), set by the caller.
   */
  size_t size;
  /**
   * The instant of tick 0, in Unix ms.
   */
  uint64_t epoch_ms;
  /**
   * How long a tick lasts, in ms.
   */
  uint64_t tick_ms;
  /**
   * The layout's last instant, in Unix ms.
   */
  uint64_t ends_at_ms;
  /**
   * How many IDs one node can issue in a tick.
   */
  uint64_t ids_per_tick;
  /**
   * How many nodes the layout tells apart.
   */
  uint64_t nodes;
  /**
   * The width of all fields together.
   */
  unsigned int total_bits;
  /**
   * The width of the timestamp.
   */
  unsigned int timestamp_bits;
  /**
   * How many bits stand below the timestamp.
   */
  unsigned int timestamp_shift;
  /**
   * The width of the sequence.
   */
  unsigned int sequence_bits;
  /**
   * How many bits stand below the sequence.
   */
  unsigned int sequence_shift;
  /**
   * The width of all node fields together.
   */
  unsigned int node_bits;
  /**
   * How many fields there are, the timestamp and the sequence among them.
   */
  unsigned int field_count;
} polyflake_layout_info;

/**
 * A field of a layout, from polyflake_layout_field.
 */
typedef struct polyflake_field {
  /**
   * sizeof(polyflake_field), set by the caller.
   */
  size_t size;
  /**
   * The field's bits, in their place in the ID.
   */
  uint64_t mask;
  /**
   * The field's width.
   */
  unsigned int bits;
  /**
   * How many bits stand below the field.
   */
  unsigned int shift;
  /**
   * 1 for a node field, 0 for the timestamp and the sequence.
   */
  unsigned int is_node;
  /**
   * The field's name, ending in a NUL.
   */
  char name[POLYFLAKE_NAME_SIZE];
} polyflake_field;

/**
 * An ID taken apart, from polyflake_layout_decode.
 */
typedef struct polyflake_decoded {
  /**
   * sizeof(polyflake_decoded), set by the caller.
   */
  size_t size;
  /**
   * The ID.
   */
  uint64_t id;
  /**
   * The start of the ID's tick, in Unix ms.
   */
  uint64_t timestamp_ms;
  /**
   * How many ticks after the epoch.
   */
  uint64_t ticks;
  /**
   * All node fields joined, from the highest to the lowest.
   */
  uint64_t node;
  /**
   * The number within the tick.
   */
  uint64_t sequence;
  /**
   * How many of fields are used.
   */
  uint64_t field_count;
  /**
   * The node fields' values, from the highest down.
   */
  uint64_t fields[POLYFLAKE_MAX_NODE_FIELDS];
} polyflake_decoded;

/**
 * A caller's clock: writes Unix ms to *unix_ms and returns 0, or returns anything else for
 * POLYFLAKE_CLOCK_FAILED. user is the pointer given with it. It may be called from any thread that uses the
 * Snowflake, from several at once, and must neither throw nor longjmp out.
 */
typedef int (*polyflake_clock)(void *user, int64_t *unix_ms);

/**
 * What an operator may want to graph, counted since the cursor was made, on slow paths only.
 */
typedef struct polyflake_stats {
  /**
   * sizeof(polyflake_stats), set by the caller.
   */
  size_t size;
  /**
   * How often a call found no free slot and waited or gave up.
   */
  uint64_t waits;
  /**
   * How many steps back of the clock were seen, tolerated or refused.
   */
  uint64_t rollbacks;
  /**
   * By how many ms the last tick taken lies ahead of the clock; 0 where it does not.
   */
  uint64_t lead_ms;
  /**
   * The start of the last ID's tick, in Unix ms; -1 before the first ID.
   */
  int64_t last_issued_ms;
} polyflake_stats;

/**
 * It worked; the outputs are written.
 */
#define POLYFLAKE_OK 0

/**
 * A layout that cannot work.
 */
#define POLYFLAKE_INVALID_LAYOUT 1

/**
 * No preset of that name.
 */
#define POLYFLAKE_UNKNOWN_LAYOUT 2

/**
 * A node field missing, unknown or out of range.
 */
#define POLYFLAKE_INVALID_NODE 3

/**
 * Any other option's value or name, and a pointer that may not be NULL.
 */
#define POLYFLAKE_INVALID_OPTION 4

/**
 * An ID outside its layout, or a text that is no ID.
 */
#define POLYFLAKE_INVALID_ID 5

/**
 * Before the epoch or past the layout's end.
 */
#define POLYFLAKE_TIME_OUT_OF_RANGE 6

/**
 * The clock stands further back than max_backward_ms allows.
 */
#define POLYFLAKE_CLOCK_MOVED_BACKWARDS 7

/**
 * No ID came free within the time the call may wait.
 */
#define POLYFLAKE_SEQUENCE_EXHAUSTED 8

/**
 * Used in a child of the process that made it.
 */
#define POLYFLAKE_FORKED 9

/**
 * The caller's clock returned other than 0.
 */
#define POLYFLAKE_CLOCK_FAILED 10

/**
 * The state file cannot be opened, or belongs to another layout or node.
 */
#define POLYFLAKE_STATE_FILE 11

/**
 * No free worker, or the store cannot be reached.
 */
#define POLYFLAKE_LEASE_UNAVAILABLE 12

/**
 * The lease ran out; nothing more is issued on it.
 */
#define POLYFLAKE_LEASE_LOST 13

/**
 * Used after polyflake_snowflake_close.
 */
#define POLYFLAKE_CLOSED 14

/**
 * A caught panic: a bug in Polyflake.
 */
#define POLYFLAKE_INTERNAL 99

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The ABI version of the library at run time; to be compared with POLYFLAKE_ABI_VERSION.
 */
unsigned int polyflake_abi_version(void);

/**
 * The library's version, such as "0.1.0". Static.
 */
const char *polyflake_version(void);

/**
 * A layout from a preset's name or a layout's text, such as
 * "timestamp:41|worker:10|sequence:12@1288834974657/1ms" (the epoch in Unix ms, the tick as Nms or Ns). Free it
 * with polyflake_layout_free.
 *
 * POLYFLAKE_INVALID_LAYOUT or POLYFLAKE_UNKNOWN_LAYOUT.
 */
polyflake_status polyflake_layout_parse(const char *text,
                                        struct polyflake_layout **layout,
                                        struct polyflake_detail *detail);

/**
 * Frees what polyflake_layout_parse gave. NULL is fine.
 */
void polyflake_layout_free(struct polyflake_layout *layout);

/**
 * Writes the layout's text, which parses back, with its NUL into the capacity bytes at text;
 * POLYFLAKE_LAYOUT_TEXT_SIZE are always enough. Too few: POLYFLAKE_INVALID_OPTION.
 */
polyflake_status polyflake_layout_text(const struct polyflake_layout *layout,
                                       char *text,
                                       size_t capacity,
                                       struct polyflake_detail *detail);

/**
 * The layout's properties; set info->size first.
 */
polyflake_status polyflake_layout_properties(const struct polyflake_layout *layout,
                                             struct polyflake_layout_info *info,
                                             struct polyflake_detail *detail);

/**
 * The field number index, counted from 0 at the highest bit; set field->size first. Past the last field:
 * POLYFLAKE_INVALID_OPTION.
 */
polyflake_status polyflake_layout_field(const struct polyflake_layout *layout,
                                        size_t index,
                                        struct polyflake_field *field,
                                        struct polyflake_detail *detail);

/**
 * Takes an ID apart; set decoded->size first. POLYFLAKE_INVALID_ID for one with bits above the layout's.
 */
polyflake_status polyflake_layout_decode(const struct polyflake_layout *layout,
                                         uint64_t id,
                                         struct polyflake_decoded *decoded,
                                         struct polyflake_detail *detail);

/**
 * The value of the node field of that name in an ID. POLYFLAKE_INVALID_ID for an ID outside the layout,
 * POLYFLAKE_INVALID_OPTION where the layout has no such node field.
 */
polyflake_status polyflake_layout_decode_field(const struct polyflake_layout *layout,
                                               uint64_t id,
                                               const char *name,
                                               uint64_t *value,
                                               struct polyflake_detail *detail);

/**
 * The lowest ID at or after an instant: Unix ms, and the nanoseconds after them (0 to 999999; more carry over).
 *
 * POLYFLAKE_TIME_OUT_OF_RANGE, or POLYFLAKE_INVALID_LAYOUT where a node field stands above the timestamp.
 */
polyflake_status polyflake_layout_min_id(const struct polyflake_layout *layout,
                                         int64_t unix_ms,
                                         uint32_t nanoseconds,
                                         uint64_t *id,
                                         struct polyflake_detail *detail);

/**
 * The highest ID at or before an instant: Unix ms, and the nanoseconds after them (0 to 999999; more carry over).
 *
 * POLYFLAKE_TIME_OUT_OF_RANGE, or POLYFLAKE_INVALID_LAYOUT where a node field stands above the timestamp.
 */
polyflake_status polyflake_layout_max_id(const struct polyflake_layout *layout,
                                         int64_t unix_ms,
                                         uint32_t nanoseconds,
                                         uint64_t *id,
                                         struct polyflake_detail *detail);

/**
 * New options, at their defaults; only the node has none. Free them with polyflake_options_free. Never NULL.
 */
struct polyflake_options *polyflake_options_new(void);

/**
 * Frees options. Snowflakes made from them live on. NULL is fine.
 */
void polyflake_options_free(struct polyflake_options *options);

/**
 * Sets an option from its name and its value's text. Setting it again replaces its value.
 *
 * layout           a preset's name or a layout's text; "twitter" by default
 * node             "7", or "datacenter=1,worker=7"; required unless the layout has no node field
 * max_backward_ms  how many ms the clock may step back and IDs still be issued; "1000" by default
 * max_ahead_ms     how many ms IDs may run ahead of the clock to serve a burst; "0" by default
 * max_wait_ms      the longest that polyflake_next_id waits, and a batch between two of its runs, in ms of real
 *                  time; a tick + 1000 by default, "0" never waits
 * sequence_start   "spread" (the default) or "zero": the first sequence number of a fresh tick
 * clock            "system" (the default) or "steady", in place of what polyflake_options_set_clock gave
 * state            the path of a file through which all processes of this host share the node, in any bytes;
 *                  none by default
 *
 * Those in ms take 0 to 4294967295.
 *
 * POLYFLAKE_INVALID_LAYOUT, POLYFLAKE_UNKNOWN_LAYOUT or POLYFLAKE_INVALID_OPTION leaves the options as they
 * were; a node is checked when the Snowflake is made.
 */
polyflake_status polyflake_options_set(struct polyflake_options *options,
                                       const char *name,
                                       const char *value,
                                       struct polyflake_detail *detail);

/**
 * polyflake_options_set with a value of length bytes, for languages whose texts may hold a NUL: one in a value is
 * refused, and does not end it.
 */
polyflake_status polyflake_options_set_bytes(struct polyflake_options *options,
                                             const char *name,
                                             const char *value,
                                             size_t length,
                                             struct polyflake_detail *detail);

/**
 * Sets one field of the node, such as "worker" to "7", for callers that hold the fields apart: no text has to be
 * put together. A whole node set before goes. The node is checked when the Snowflake is made, and a field that was
 * set twice refused then.
 */
polyflake_status polyflake_options_set_node_field(struct polyflake_options *options,
                                                  const char *field,
                                                  const char *value,
                                                  struct polyflake_detail *detail);

/**
 * Sets the layout to one that is parsed already, which is copied.
 */
polyflake_status polyflake_options_set_layout(struct polyflake_options *options,
                                              const struct polyflake_layout *layout,
                                              struct polyflake_detail *detail);

/**
 * Gives the Snowflake the caller's own clock, in place of a built-in one; it then has a cursor of its own, or that
 * of a state file. user must stay valid as long as any Snowflake made from these options. A NULL clock goes back to
 * the built-in one.
 */
polyflake_status polyflake_options_set_clock(struct polyflake_options *options,
                                             polyflake_clock clock,
                                             void *user,
                                             struct polyflake_detail *detail);

/**
 * The ID of an instant (Unix ms, rounded down to its tick) and a sequence number by the layout and the node of these
 * options; their other options do not count. For moving rows into an ID space, and for tests: nothing keeps it from
 * repeating an ID that was issued.
 *
 * POLYFLAKE_TIME_OUT_OF_RANGE, POLYFLAKE_INVALID_NODE, or POLYFLAKE_INVALID_OPTION for a sequence number that the
 * layout has no room for.
 */
polyflake_status polyflake_options_compose(const struct polyflake_options *options,
                                           int64_t unix_ms,
                                           uint64_t sequence,
                                           uint64_t *id,
                                           struct polyflake_detail *detail);

/**
 * Sets a state file's cursor back to the system clock, where it stands ahead of it: the way out when a clock that was
 * wrong has moved a cursor far into the future. Stop the processes that use the file first: those that go on are
 * refused with POLYFLAKE_STATE_FILE until they restart. The risk: IDs that were issued ahead of the clock are issued
 * again when the clock gets there. A file whose cursor is not ahead of the clock is left as it is.
 *
 * path has length bytes, which need not be UTF-8. POLYFLAKE_STATE_FILE, also where there is no such file.
 */
polyflake_status polyflake_reset_state(const char *path,
                                       size_t length,
                                       struct polyflake_detail *detail);

/**
 * A Snowflake from options, which are copied. Free it with polyflake_snowflake_free.
 *
 * On a built-in clock, the Snowflakes of a process share one cursor, so that none repeats another's IDs, where their
 * epoch, their tick, the places and widths of timestamp and sequence, and their node's bits in their place are the
 * same, whatever the layouts are called. The first ID of a new cursor may wait for the next tick. Layouts that split
 * the bits in other ways are as two systems: nothing keeps their IDs apart.
 *
 * With a state file, the cursor is the file's, for all processes that name it. A new file takes about a second, for it
 * starts above all that a holder of an older one may still issue; so does one after a reboot within a second. With a
 * clock of the caller's that clock must have moved on by as much before there are IDs.
 *
 * POLYFLAKE_INVALID_NODE, or POLYFLAKE_INVALID_OPTION (also where max_ahead_ms or max_backward_ms differ from
 * those that a shared cursor was made with, or that cursor stands in another state file, or in none),
 * POLYFLAKE_FORKED for a node that the parent had before a fork without a state file, POLYFLAKE_STATE_FILE, or
 * POLYFLAKE_CLOCK_FAILED from the caller's clock, which a state file has it read.
 */
polyflake_status polyflake_snowflake_new(const struct polyflake_options *options,
                                         struct polyflake_snowflake **snowflake,
                                         struct polyflake_detail *detail);

/**
 * Ends a Snowflake: from here on every call for an ID or its stats is POLYFLAKE_CLOSED, calls that wait in other
 * threads end with it, and a call that has its IDs already returns them. Others on the same cursor go on. Closing
 * again does nothing. NULL is fine. It frees nothing: call polyflake_snowflake_free when no thread is in a call any
 * more.
 */
void polyflake_snowflake_close(const struct polyflake_snowflake *snowflake);

/**
 * Frees a Snowflake that no thread uses any more, closed or not. Its cursor stays with the process, with its state
 * file if it has one. NULL is fine.
 */
void polyflake_snowflake_free(struct polyflake_snowflake *snowflake);

/**
 * The next ID. Waits, for at most max_wait_ms of real time, where the tick's sequence is used up.
 *
 * POLYFLAKE_SEQUENCE_EXHAUSTED or POLYFLAKE_CLOCK_MOVED_BACKWARDS where that was not enough (a step back past
 * max_backward_ms does not wait), POLYFLAKE_TIME_OUT_OF_RANGE, POLYFLAKE_CLOCK_FAILED, POLYFLAKE_FORKED in a child of
 * the process that made it without a state file, POLYFLAKE_STATE_FILE, or POLYFLAKE_CLOSED.
 */
polyflake_status polyflake_next_id(const struct polyflake_snowflake *snowflake,
                                   uint64_t *id,
                                   struct polyflake_detail *detail);

/**
 * The next ID itself, for languages to which an output is dear: as polyflake_next_id, but 0, which is never an ID, in
 * place of a status. Then ask polyflake_next_id why; or polyflake_try_next_id, which does not wait a second time.
 * Either may also give an ID, if there is one meanwhile.
 */
uint64_t polyflake_next_id_or_zero(const struct polyflake_snowflake *snowflake);

/**
 * The next ID, or the status of polyflake_next_id at once where there is none yet.
 */
polyflake_status polyflake_try_next_id(const struct polyflake_snowflake *snowflake,
                                       uint64_t *id,
                                       struct polyflake_detail *detail);

/**
 * The next n IDs into the array at ids, each greater than the one before: many times faster an ID than single calls.
 * Any n, 0 too, for which ids may be NULL. Waits for at most max_wait_ms of real time between two runs of them. Where
 * it does not return POLYFLAKE_OK, the array's content means nothing, and IDs may be lost but never come again.
 *
 * As polyflake_next_id, and POLYFLAKE_INVALID_OPTION for an array of more than SIZE_MAX / 2 bytes.
 */
polyflake_status polyflake_fill(const struct polyflake_snowflake *snowflake,
                                size_t n,
                                uint64_t *ids,
                                struct polyflake_detail *detail);

/**
 * Whether a batch may have n IDs: for a language whose call makes the array itself, to ask before it takes the memory.
 *
 * POLYFLAKE_INVALID_OPTION for an n that is not 1 to POLYFLAKE_MAX_BATCH.
 */
polyflake_status polyflake_check_batch(int64_t n,
                                       struct polyflake_detail *detail);

/**
 * The layout, which lives as long as the Snowflake and is not to be freed; NULL for NULL.
 */
const struct polyflake_layout *polyflake_snowflake_layout(const struct polyflake_snowflake *snowflake);

/**
 * All node fields joined, from the highest to the lowest. A closed Snowflake has it too.
 */
polyflake_status polyflake_snowflake_node(const struct polyflake_snowflake *snowflake,
                                          uint64_t *node,
                                          struct polyflake_detail *detail);

/**
 * Waits, lead and rollbacks, for an operator's graphs; set stats->size first. Reads the clock once.
 *
 * POLYFLAKE_CLOCK_FAILED, POLYFLAKE_FORKED or POLYFLAKE_CLOSED.
 */
polyflake_status polyflake_snowflake_stats(const struct polyflake_snowflake *snowflake,
                                           struct polyflake_stats *stats,
                                           struct polyflake_detail *detail);

/**
 * The permanent name of a status, such as "invalid_layout"; "ok" for POLYFLAKE_OK, "unknown" for a number
 * that is none. Static.
 */
const char *polyflake_status_name(polyflake_status status);

/**
 * What a status means, in one sentence that names no value. Static.
 */
const char *polyflake_status_message(polyflake_status status);

/**
 * Writes an ID, with its NUL, into the capacity bytes at text; POLYFLAKE_ID_TEXT_SIZE are always enough. format
 * is "decimal", "hex", "base32" (Crockford, 13 digits), "base36", "base58" (Bitcoin's) or "base62" (11 digits);
 * base32 and base62 sort as the IDs do.
 *
 * POLYFLAKE_INVALID_OPTION for another format or too little room.
 */
polyflake_status polyflake_id_write(uint64_t id,
                                    const char *format,
                                    char *text,
                                    size_t capacity,
                                    struct polyflake_detail *detail);

/**
 * Reads an ID that polyflake_id_write or another program wrote; hex, base32 and base36 in both cases.
 *
 * POLYFLAKE_INVALID_ID, whose message names the position, for a foreign character or a number over 64 bits,
 * POLYFLAKE_INVALID_OPTION for another format.
 */
polyflake_status polyflake_id_read(const char *text,
                                   const char *format,
                                   uint64_t *id,
                                   struct polyflake_detail *detail);

/**
 * The ID as a signed integer, as a database's BIGINT and languages without unsigned ones hold it.
 *
 * POLYFLAKE_INVALID_ID for one above 2^63 - 1, which only layouts of 64 bits have, late in their time.
 */
polyflake_status polyflake_id_signed(uint64_t id,
                                     int64_t *number,
                                     struct polyflake_detail *detail);

/**
 * How many presets there are.
 */
size_t polyflake_preset_count(void);

/**
 * The name of the preset number index, counted from 0; NULL past the last. Static.
 */
const char *polyflake_preset_name(size_t index);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* POLYFLAKE_H */
