/* Uses a custom clock. This one is set by hand, as in a test, and can fail. */
#include <inttypes.h>
#include <polyflake.h>
#include <stdio.h>
#include <stdlib.h>

struct hand_clock {
  int64_t unix_ms;
  int broken;
};

static int read_hand_clock(void *user, int64_t *unix_ms) {
  const struct hand_clock *clock = user;
  *unix_ms = clock->unix_ms;
  return clock->broken;
}

static void show(const polyflake_snowflake *ids) {
  polyflake_detail detail;
  uint64_t id;
  detail.size = sizeof detail;
  polyflake_status status = polyflake_next_id(ids, &id, &detail);
  if (status == POLYFLAKE_OK) {
    printf("%" PRIu64 "\n", id);
  } else {
    printf("%s, retry after %" PRIu64 " ms\n", polyflake_status_name(status), detail.retry_after_ms);
    fprintf(stderr, "%s\n", detail.message);
  }
}

int main(void) {
  struct hand_clock clock = {INT64_C(1656432460105), 0};
  polyflake_options *options = polyflake_options_new();
  polyflake_snowflake *ids = NULL;
  if (polyflake_options_set(options, "node", "378", NULL) != POLYFLAKE_OK ||
      polyflake_options_set(options, "sequence_start", "zero", NULL) != POLYFLAKE_OK ||
      polyflake_options_set_clock(options, read_hand_clock, &clock, NULL) != POLYFLAKE_OK ||
      polyflake_snowflake_new(options, &ids, NULL) != POLYFLAKE_OK) {
    return EXIT_FAILURE;
  }
  polyflake_options_free(options);

  show(ids); /* 1541815603606036480 */
  show(ids); /* 1541815603606036481: the next ID in the same tick */
  clock.unix_ms -= 5;
  show(ids); /* 1541815603606036482: a small step back is tolerated */
  clock.unix_ms -= 60000;
  show(ids); /* clock_moved_backwards: a large step back is not */
  clock.broken = 1;
  show(ids); /* clock_failed */

  polyflake_snowflake_free(ids);
  return EXIT_SUCCESS;
}
