/* Calls that may run a Go clock. They return their result by value, because a clock can move the Go stack and so
 * invalidate pointers into it, and because an ID should not cost an allocation. They take a Snowflake's address as a
 * number, because cgo checks pointers on every call, which takes a few ns. */
#ifndef POLYFLAKE_GO_SHIM_H
#define POLYFLAKE_GO_SHIM_H

#include <polyflake.h>

/* Allocated with malloc; the caller frees it. */
typedef struct {
  polyflake_status status;
  polyflake_detail detail;
  uintptr_t clock_failure; /* a cgo.Handle of the Go clock's failure, or 0 */
} polyflake_go_failure;

/* failure is NULL if there is an ID. */
typedef struct {
  uint64_t id;
  polyflake_go_failure *failure;
} polyflake_go_id;

/* failure is NULL if there is a Snowflake. */
typedef struct {
  polyflake_snowflake *snowflake;
  polyflake_go_failure *failure;
} polyflake_go_snowflake;

/* With a state file, this reads the clock. */
polyflake_go_snowflake polyflake_go_new(const polyflake_options *options);

polyflake_go_id polyflake_go_next_id(uintptr_t snowflake);
uint64_t polyflake_go_next_id_or_zero(uintptr_t snowflake); /* only for a built-in clock */
polyflake_go_id polyflake_go_try_next_id(uintptr_t snowflake);

/* These return NULL on success. */
polyflake_go_failure *polyflake_go_fill(uintptr_t snowflake, size_t n, uint64_t *ids);
polyflake_go_failure *polyflake_go_stats(uintptr_t snowflake, polyflake_stats *stats);

polyflake_status polyflake_go_lease(uintptr_t snowflake, polyflake_lease *lease);
polyflake_status polyflake_go_node(uintptr_t snowflake, uint64_t *node, polyflake_detail *detail);
void polyflake_go_close(uintptr_t snowflake); /* waits for the store of a lease */

/* Counters, by address too. */
polyflake_go_id polyflake_go_counter_next_id(uintptr_t counter);
polyflake_go_id polyflake_go_counter_try_next_id(uintptr_t counter);

/* Sequences, by address too. A key's value is the integer, or the length of the text. */
polyflake_go_id polyflake_go_sequences_next_id(uintptr_t sequences, int kind, uint64_t value, const char *text);
polyflake_go_id polyflake_go_sequences_try_next_id(uintptr_t sequences, int kind, uint64_t value, const char *text);
/* Keys of one kind, whose texts are one after the other. Returns NULL on success. */
polyflake_go_failure *polyflake_go_sequences_next_ids(
    uintptr_t sequences, int kind, size_t n, const uint64_t *values, const char *texts, uint64_t *numbers);

/* Has polyflakeLeaseEvent called with what happens to leases, counters and sequences. */
void polyflake_go_listen(void);

/* Sets the Go clock behind a cgo.Handle as the clock of the options. */
polyflake_status polyflake_go_set_clock(polyflake_options *options, uintptr_t clock, polyflake_detail *detail);

#endif
