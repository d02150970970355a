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

/* failure is NULL if there is an ID. It is also NULL if the call must wait for an ID; in that case, id is 0. */
typedef struct {
  uint64_t id;
  polyflake_go_failure *failure;
} polyflake_go_id;

/* On success, failure is NULL, and count is the number of IDs. If that is less than requested, the call must wait. */
typedef struct {
  size_t count;
  uint64_t pause_ns; /* after a poll that got no IDs: how long to wait before the next */
  polyflake_go_failure *failure;
} polyflake_go_filled;

/* failure is NULL if there is a Snowflake. */
typedef struct {
  polyflake_snowflake *snowflake;
  polyflake_go_failure *failure;
} polyflake_go_snowflake;

/* With a state file, this reads the clock. */
polyflake_go_snowflake polyflake_go_new(const polyflake_options *options);

/* These do not wait, except inside a Go clock. */
polyflake_go_id polyflake_go_next_id(uintptr_t snowflake);
uint64_t polyflake_go_next_id_or_zero(uintptr_t snowflake); /* only for a built-in clock; also returns 0 on an error */
polyflake_go_filled polyflake_go_fill(uintptr_t snowflake, size_t n, uint64_t *ids);

polyflake_go_id polyflake_go_try_next_id(uintptr_t snowflake);

/* For waiting calls: see wait.go. */
polyflake_waiting *polyflake_go_waiting_new(uintptr_t snowflake);
polyflake_go_filled polyflake_go_waiting_poll(
    const polyflake_waiting *waiting, uint64_t waited_ns, size_t n, uint64_t *ids);

/* Called when a Go clock on this thread has ended its goroutine instead of returning. */
void polyflake_go_clock_has_gone(void);

/* Returns NULL on success. */
polyflake_go_failure *polyflake_go_stats(uintptr_t snowflake, polyflake_stats *stats);

polyflake_status polyflake_go_lease(uintptr_t snowflake, polyflake_lease *lease);
polyflake_status polyflake_go_node(uintptr_t snowflake, uint64_t *node, polyflake_detail *detail);
void polyflake_go_close(uintptr_t snowflake); /* waits for the store of a lease */

/* Counters, also by address. These do not wait. */
uint64_t polyflake_go_counter_in_hand_or_zero(uintptr_t counter);
/* Writes up to n of the numbers in hand, and returns how many it wrote. */
size_t polyflake_go_counter_fill_in_hand(uintptr_t counter, size_t n, uint64_t *numbers);
polyflake_go_id polyflake_go_counter_try_next_id(uintptr_t counter);

/* Sequences, also by address. A key's value is the integer, or the length of the string. */
polyflake_go_id polyflake_go_sequences_next_id(uintptr_t sequences, int kind, uint64_t value, const char *text);
polyflake_go_id polyflake_go_sequences_try_next_id(uintptr_t sequences, int kind, uint64_t value, const char *text);
/* Takes keys of one kind, with their strings concatenated. Returns NULL on success. */
polyflake_go_failure *polyflake_go_sequences_next_ids(
    uintptr_t sequences, int kind, size_t n, const uint64_t *values, const char *texts, uint64_t *numbers);

/* Makes the library call polyflakeLeaseEvent with the events of leases, counters and sequences. */
void polyflake_go_listen(void);

/* Sets the options' clock to the Go clock behind a cgo.Handle. */
polyflake_status polyflake_go_set_clock(polyflake_options *options, uintptr_t clock, polyflake_detail *detail);

#endif
