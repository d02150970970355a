/* Calls that may run a Go clock: they give their result by value, since no pointer into a Go stack may be held while
 * a clock runs (it can move the stack), and so that an ID costs no allocation. They take a Snowflake's address as a
 * number, since cgo examines a pointer at every call, for some ns. */
#ifndef POLYFLAKE_GO_SHIM_H
#define POLYFLAKE_GO_SHIM_H

#include <polyflake.h>

/* Made by malloc, for the caller to free. */
typedef struct {
  polyflake_status status;
  polyflake_detail detail;
  uintptr_t clock_failure; /* a cgo.Handle to what the Go clock failed with, or 0 */
} polyflake_go_failure;

/* failure is NULL where there is an ID. */
typedef struct {
  uint64_t id;
  polyflake_go_failure *failure;
} polyflake_go_id;

/* failure is NULL where there is a Snowflake. */
typedef struct {
  polyflake_snowflake *snowflake;
  polyflake_go_failure *failure;
} polyflake_go_snowflake;

/* With a state file this reads the clock. */
polyflake_go_snowflake polyflake_go_new(const polyflake_options *options);

polyflake_go_id polyflake_go_next_id(uintptr_t snowflake);
uint64_t polyflake_go_next_id_or_zero(uintptr_t snowflake); /* for a built-in clock alone */
polyflake_go_id polyflake_go_try_next_id(uintptr_t snowflake);

/* NULL where it worked. */
polyflake_go_failure *polyflake_go_fill(uintptr_t snowflake, size_t n, uint64_t *ids);
polyflake_go_failure *polyflake_go_stats(uintptr_t snowflake, polyflake_stats *stats);

void polyflake_go_close(uintptr_t snowflake);

/* Makes the Go clock behind a cgo.Handle the options' clock. */
polyflake_status polyflake_go_set_clock(polyflake_options *options, uintptr_t clock, polyflake_detail *detail);

#endif
