//go:build cgo

#include "shim.h"

#include <stdlib.h>

#include "_cgo_export.h"

/* The failure of the last Go clock on this thread. A call and the clock that it runs share a thread, so each call finds
 * its own failure, no matter how many goroutines use one Snowflake. */
static _Thread_local uintptr_t clock_failure;

/* How many Go clocks are running on this thread, each inside a call that the previous one made. A call from inside a
 * clock blocks its thread, which Go has locked to the clock's goroutine anyway. In a Go queue, it might wait for the
 * very call that reads the clock. */
static _Thread_local int clocks_running;

static int read_go_clock(void *clock, int64_t *unix_ms) {
  clocks_running++;
  uintptr_t failure = polyflakeReadGoClock((uintptr_t)clock, unix_ms);
  clocks_running--;
  if (failure == 0) {
    return 0;
  }
  clock_failure = failure;
  return 1;
}

/* Does not clear the whole message, which would cost time for every ID. The library writes the message when needed. */
static void begin(polyflake_detail *detail) {
  detail->size = sizeof *detail;
  detail->behind_ms = 0;
  detail->retry_after_ms = 0;
  detail->message[0] = 0;
}

static polyflake_go_failure *end(polyflake_status status, const polyflake_detail *detail) {
  if (status == POLYFLAKE_OK) {
    return NULL;
  }
  polyflake_go_failure *failure = malloc(sizeof *failure);
  if (failure == NULL) {
    abort(); /* as Go does when memory runs out */
  }
  failure->status = status;
  failure->detail = *detail;
  failure->clock_failure = clock_failure;
  clock_failure = 0;
  return failure;
}

polyflake_go_snowflake polyflake_go_new(const polyflake_options *options) {
  polyflake_detail detail;
  begin(&detail);
  polyflake_go_snowflake result = {NULL, NULL};
  result.failure = end(polyflake_snowflake_new(options, &result.snowflake, &detail), &detail);
  return result;
}

void polyflake_go_clock_has_gone(void) {
  clocks_running--;
}

polyflake_go_id polyflake_go_next_id(uintptr_t snowflake) {
  const polyflake_snowflake *ids = (const polyflake_snowflake *)snowflake;
  polyflake_detail detail;
  begin(&detail);
  polyflake_go_id result = {0, NULL};
  polyflake_status status = clocks_running == 0 ? polyflake_next_id_now(ids, &result.id, &detail)
                                                : polyflake_next_id(ids, &result.id, &detail);
  result.failure = end(status, &detail);
  return result;
}

uint64_t polyflake_go_next_id_or_zero(uintptr_t snowflake) {
  const polyflake_snowflake *ids = (const polyflake_snowflake *)snowflake;
  return clocks_running == 0 ? polyflake_next_id_now_or_zero(ids) : polyflake_next_id_or_zero(ids);
}

polyflake_go_id polyflake_go_try_next_id(uintptr_t snowflake) {
  polyflake_detail detail;
  begin(&detail);
  polyflake_go_id result = {0, NULL};
  result.failure = end(polyflake_try_next_id((const polyflake_snowflake *)snowflake, &result.id, &detail), &detail);
  return result;
}

polyflake_go_filled polyflake_go_fill(uintptr_t snowflake, size_t n, uint64_t *ids) {
  const polyflake_snowflake *from = (const polyflake_snowflake *)snowflake;
  polyflake_detail detail;
  begin(&detail);
  polyflake_go_filled result = {n, 0, NULL};
  polyflake_status status = clocks_running == 0 ? polyflake_fill_now(from, n, ids, &result.count, &detail)
                                                : polyflake_fill(from, n, ids, &detail);
  result.failure = end(status, &detail);
  return result;
}

polyflake_waiting *polyflake_go_waiting_new(uintptr_t snowflake) {
  polyflake_waiting *waiting = NULL;
  if (polyflake_waiting_new((const polyflake_snowflake *)snowflake, &waiting, NULL) != POLYFLAKE_OK) {
    abort(); /* as Go does when memory runs out: nothing else can fail here */
  }
  return waiting;
}

polyflake_go_filled polyflake_go_waiting_poll(
    const polyflake_waiting *waiting, uint64_t waited_ns, size_t n, uint64_t *ids) {
  polyflake_detail detail;
  begin(&detail);
  polyflake_go_filled result = {0, 0, NULL};
  polyflake_status status =
      polyflake_waiting_poll(waiting, waited_ns, n, ids, &result.count, &result.pause_ns, &detail);
  result.failure = end(status, &detail);
  return result;
}

polyflake_go_failure *polyflake_go_stats(uintptr_t snowflake, polyflake_stats *stats) {
  polyflake_detail detail;
  begin(&detail);
  return end(polyflake_snowflake_stats((const polyflake_snowflake *)snowflake, stats, &detail), &detail);
}

polyflake_status polyflake_go_lease(uintptr_t snowflake, polyflake_lease *lease) {
  return polyflake_snowflake_lease((const polyflake_snowflake *)snowflake, lease, NULL);
}

polyflake_status polyflake_go_node(uintptr_t snowflake, uint64_t *node, polyflake_detail *detail) {
  return polyflake_snowflake_node((const polyflake_snowflake *)snowflake, node, detail);
}

uint64_t polyflake_go_counter_in_hand_or_zero(uintptr_t counter) {
  return polyflake_counter_try_next_id_or_zero((const polyflake_counter *)counter);
}

size_t polyflake_go_counter_fill_in_hand(uintptr_t counter, size_t n, uint64_t *numbers) {
  for (size_t i = 0; i < n; i++) {
    numbers[i] = polyflake_counter_try_next_id_or_zero((const polyflake_counter *)counter);
    if (numbers[i] == 0) {
      return i;
    }
  }
  return n;
}

polyflake_go_id polyflake_go_counter_try_next_id(uintptr_t counter) {
  polyflake_detail detail;
  begin(&detail);
  polyflake_go_id result = {0, NULL};
  result.failure =
      end(polyflake_counter_try_next_id((const polyflake_counter *)counter, &result.id, &detail), &detail);
  return result;
}

static polyflake_key key_of(int kind, uint64_t value, const char *text) {
  polyflake_key key = {kind, value, NULL, 0};
  if (kind == POLYFLAKE_KEY_TEXT) {
    /* Go may pass NULL for an empty string. */
    key.text = text == NULL ? "" : text;
    key.length = (size_t)value;
  }
  return key;
}

polyflake_go_id polyflake_go_sequences_next_id(uintptr_t sequences, int kind, uint64_t value, const char *text) {
  polyflake_detail detail;
  begin(&detail);
  polyflake_go_id result = {0, NULL};
  const polyflake_key key = key_of(kind, value, text);
  result.failure =
      end(polyflake_sequences_next_id((const polyflake_sequences *)sequences, &key, &result.id, &detail), &detail);
  return result;
}

polyflake_go_id polyflake_go_sequences_try_next_id(uintptr_t sequences, int kind, uint64_t value, const char *text) {
  polyflake_detail detail;
  begin(&detail);
  polyflake_go_id result = {0, NULL};
  const polyflake_key key = key_of(kind, value, text);
  result.failure =
      end(polyflake_sequences_try_next_id((const polyflake_sequences *)sequences, &key, &result.id, &detail), &detail);
  return result;
}

polyflake_go_failure *polyflake_go_sequences_next_ids(
    uintptr_t sequences, int kind, size_t n, const uint64_t *values, const char *texts, uint64_t *numbers) {
  polyflake_detail detail;
  begin(&detail);
  polyflake_key *keys = calloc(n > 0 ? n : 1, sizeof *keys);
  if (keys == NULL) {
    abort(); /* as Go does when memory runs out */
  }
  for (size_t i = 0, at = 0; i < n; i++) {
    keys[i] = key_of(kind, values[i], texts == NULL ? NULL : texts + at);
    at += keys[i].length;
  }
  polyflake_status status =
      polyflake_sequences_next_ids((const polyflake_sequences *)sequences, keys, n, numbers, &detail);
  free(keys);
  return end(status, &detail);
}

static void tell_go(void *user, const polyflake_lease_event *event) {
  (void)user;
  polyflakeLeaseEvent((polyflake_lease_event *)event);
}

void polyflake_go_listen(void) {
  polyflake_set_lease_listener(tell_go, NULL, NULL);
}

void polyflake_go_close(uintptr_t snowflake) {
  polyflake_snowflake_close((const polyflake_snowflake *)snowflake);
}

polyflake_status polyflake_go_set_clock(polyflake_options *options, uintptr_t clock, polyflake_detail *detail) {
  return polyflake_options_set_clock(options, read_go_clock, (void *)clock, detail);
}
