#define FFI_SCOPE "Polyflake"
#define FFI_LIB "libpolyflake.so.0"

/* The functions of libpolyflake that this package calls, from ../../include/polyflake.h, which documents them. PHP's
 * FFI cannot parse preprocessor lines, so array sizes are numbers here, and other macros an enum. tests/HeaderTest.php
 * checks that both headers match. polyflake_next_id_or_zero and polyflake_counter_try_next_id_or_zero take the address as a
 * number here, for which FFI does less than for a pointer: at every ID.
 *
 * The two lines above are for ffi.preload, which loads this file: see README.md. */

typedef struct polyflake_counter polyflake_counter;
typedef struct polyflake_layout polyflake_layout;
typedef struct polyflake_options polyflake_options;
typedef struct polyflake_public_ids polyflake_public_ids;
typedef struct polyflake_snowflake polyflake_snowflake;
typedef int32_t polyflake_status;

enum {
  POLYFLAKE_OK = 0,
  POLYFLAKE_TIME_OUT_OF_RANGE = 6,
  POLYFLAKE_CLOSED = 14,
  POLYFLAKE_LEASE_STATE_NONE = 0,
  POLYFLAKE_LAYOUT_TEXT_SIZE = 352,
  POLYFLAKE_ID_TEXT_SIZE = 37,
  POLYFLAKE_PUBLIC_ID_SIZE = 49,
  POLYFLAKE_PUBLIC_KEY_SIZE = 28
};

typedef struct polyflake_detail {
  size_t size;
  uint64_t behind_ms;
  uint64_t retry_after_ms;
  char message[496];
} polyflake_detail;

typedef struct polyflake_counter_counts {
  size_t size;
  uint64_t in_hand;
  uint64_t step;
  uint64_t segments;
  uint64_t skipped;
  uint64_t waits;
} polyflake_counter_counts;

typedef struct polyflake_layout_info {
  size_t size;
  uint64_t epoch_ms;
  uint64_t tick_ms;
  uint64_t ends_at_ms;
  uint64_t ids_per_tick;
  uint64_t nodes;
  unsigned int total_bits;
  unsigned int timestamp_bits;
  unsigned int timestamp_shift;
  unsigned int sequence_bits;
  unsigned int sequence_shift;
  unsigned int node_bits;
  unsigned int field_count;
} polyflake_layout_info;

typedef struct polyflake_field {
  size_t size;
  uint64_t mask;
  unsigned int bits;
  unsigned int shift;
  unsigned int is_node;
  char name[25];
} polyflake_field;

typedef struct polyflake_decoded {
  size_t size;
  uint64_t id;
  uint64_t timestamp_ms;
  uint64_t ticks;
  uint64_t node;
  uint64_t sequence;
  uint64_t field_count;
  uint64_t fields[8];
} polyflake_decoded;

typedef int (*polyflake_clock)(void *user, int64_t *unix_ms);

typedef struct polyflake_stats {
  size_t size;
  uint64_t waits;
  uint64_t rollbacks;
  uint64_t lead_ms;
  int64_t last_issued_ms;
  uint64_t lease_losses;
} polyflake_stats;

typedef struct polyflake_lease {
  size_t size;
  uint64_t node;
  uint64_t bound_ms;
  uint64_t left_ms;
  int state;
  char store[256];
} polyflake_lease;

typedef struct polyflake_lease_record {
  size_t size;
  uint64_t node;
  int has_node;
  int is_warning;
  char kind[32];
  char store[256];
  char message[496];
} polyflake_lease_record;

unsigned int polyflake_abi_version(void);
const char *polyflake_copies_warning(void);
polyflake_status polyflake_counter_open(
    const struct polyflake_options *options, struct polyflake_counter **counter,
    struct polyflake_detail *detail);
void polyflake_counter_close(const struct polyflake_counter *counter);
void polyflake_counter_free(struct polyflake_counter *counter);
polyflake_status polyflake_counter_next_id(
    const struct polyflake_counter *counter, uint64_t *number, struct polyflake_detail *detail);
polyflake_status polyflake_counter_try_next_id(
    const struct polyflake_counter *counter, uint64_t *number, struct polyflake_detail *detail);
uint64_t polyflake_counter_try_next_id_or_zero(uintptr_t counter);
polyflake_status polyflake_counter_fill(
    const struct polyflake_counter *counter, size_t n, uint64_t *numbers, struct polyflake_detail *detail);
polyflake_status polyflake_counter_next_block(
    const struct polyflake_counter *counter, int64_t n, uint64_t *first, struct polyflake_detail *detail);
polyflake_status polyflake_counter_peek(
    const struct polyflake_counter *counter, uint64_t *number, struct polyflake_detail *detail);
polyflake_status polyflake_counter_raise(
    const struct polyflake_counter *counter, uint64_t number, struct polyflake_detail *detail);
polyflake_status polyflake_counter_remove(
    const struct polyflake_counter *counter, int *existed, struct polyflake_detail *detail);
polyflake_status polyflake_counter_stats(
    const struct polyflake_counter *counter, struct polyflake_counter_counts *counts, struct polyflake_detail *detail);
polyflake_status polyflake_layout_parse(
    const char *text, struct polyflake_layout **layout, struct polyflake_detail *detail);
void polyflake_layout_free(struct polyflake_layout *layout);
polyflake_status polyflake_layout_text(
    const struct polyflake_layout *layout, char *text, size_t capacity, struct polyflake_detail *detail);
polyflake_status polyflake_layout_properties(
    const struct polyflake_layout *layout, struct polyflake_layout_info *info, struct polyflake_detail *detail);
polyflake_status polyflake_layout_field(
    const struct polyflake_layout *layout, size_t index, struct polyflake_field *field,
    struct polyflake_detail *detail);
polyflake_status polyflake_layout_decode(
    const struct polyflake_layout *layout, uint64_t id, struct polyflake_decoded *decoded,
    struct polyflake_detail *detail);
polyflake_status polyflake_layout_min_id(
    const struct polyflake_layout *layout, int64_t unix_ms, uint32_t nanoseconds, uint64_t *id,
    struct polyflake_detail *detail);
polyflake_status polyflake_layout_max_id(
    const struct polyflake_layout *layout, int64_t unix_ms, uint32_t nanoseconds, uint64_t *id,
    struct polyflake_detail *detail);
polyflake_status polyflake_snowflake_lease(
    const struct polyflake_snowflake *snowflake, struct polyflake_lease *lease, struct polyflake_detail *detail);
const char *polyflake_lease_state_name(int state);
polyflake_status polyflake_next_lease_event(
    struct polyflake_lease_record *record, struct polyflake_detail *detail);
struct polyflake_options *polyflake_options_new(void);
void polyflake_options_free(struct polyflake_options *options);
polyflake_status polyflake_options_set_bytes(
    struct polyflake_options *options, const char *name, const char *value, size_t length,
    struct polyflake_detail *detail);
polyflake_status polyflake_options_set_node_field(
    struct polyflake_options *options, const char *field, const char *value, struct polyflake_detail *detail);
polyflake_status polyflake_options_set_layout(
    struct polyflake_options *options, const struct polyflake_layout *layout, struct polyflake_detail *detail);
polyflake_status polyflake_options_set_clock(
    struct polyflake_options *options, polyflake_clock clock, void *user, struct polyflake_detail *detail);
polyflake_status polyflake_options_compose(
    const struct polyflake_options *options, int64_t unix_ms, uint64_t sequence, uint64_t *id,
    struct polyflake_detail *detail);
polyflake_status polyflake_reset_state(const char *path, size_t length, struct polyflake_detail *detail);
polyflake_status polyflake_snowflake_new(
    const struct polyflake_options *options, struct polyflake_snowflake **snowflake, struct polyflake_detail *detail);
void polyflake_snowflake_close(const struct polyflake_snowflake *snowflake);
void polyflake_snowflake_free(struct polyflake_snowflake *snowflake);
polyflake_status polyflake_next_id(
    const struct polyflake_snowflake *snowflake, uint64_t *id, struct polyflake_detail *detail);
uint64_t polyflake_next_id_or_zero(uintptr_t snowflake);
polyflake_status polyflake_try_next_id(
    const struct polyflake_snowflake *snowflake, uint64_t *id, struct polyflake_detail *detail);
polyflake_status polyflake_fill(
    const struct polyflake_snowflake *snowflake, size_t n, uint64_t *ids, struct polyflake_detail *detail);
polyflake_status polyflake_check_batch(int64_t n, struct polyflake_detail *detail);
const struct polyflake_layout *polyflake_snowflake_layout(const struct polyflake_snowflake *snowflake);
polyflake_status polyflake_snowflake_node(
    const struct polyflake_snowflake *snowflake, uint64_t *node, struct polyflake_detail *detail);
polyflake_status polyflake_snowflake_stats(
    const struct polyflake_snowflake *snowflake, struct polyflake_stats *stats, struct polyflake_detail *detail);
const char *polyflake_status_name(polyflake_status status);
const char *polyflake_status_message(polyflake_status status);
polyflake_status polyflake_id_write(
    uint64_t id, const char *format, char *text, size_t capacity, struct polyflake_detail *detail);
polyflake_status polyflake_id_read(
    const char *text, const char *format, uint64_t *id, struct polyflake_detail *detail);
polyflake_status polyflake_id_signed(uint64_t id, int64_t *number, struct polyflake_detail *detail);
size_t polyflake_preset_count(void);
const char *polyflake_preset_name(size_t index);
polyflake_status polyflake_public_ids_new(
    const char *keys, const char *prefix, struct polyflake_public_ids **ids, struct polyflake_detail *detail);
void polyflake_public_ids_free(struct polyflake_public_ids *ids);
polyflake_status polyflake_public_ids_encode(
    const struct polyflake_public_ids *ids, uint64_t id, char *text, size_t capacity, struct polyflake_detail *detail);
polyflake_status polyflake_public_ids_decode(
    const struct polyflake_public_ids *ids, const char *text, uint64_t *id, struct polyflake_detail *detail);
polyflake_status polyflake_public_key_generate(
    unsigned int number, char *text, size_t capacity, struct polyflake_detail *detail);
