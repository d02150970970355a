/* What an ID costs in C, next to what reading the clock alone costs. The layout has room for 4,194,304 IDs a
 * ms, so that nothing is used up; core/benches/full_load.rs measures the same in Rust. */
#include <polyflake.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 9, IDS = 4000000, BATCH = 1024 };

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void must(polyflake_status status) {
  if (status != POLYFLAKE_OK) {
    fprintf(stderr, "%s\n", polyflake_status_message(status));
    exit(EXIT_FAILURE);
  }
}

static int by_value(const void *a, const void *b) {
  double left = *(const double *)a, right = *(const double *)b;
  return (left > right) - (left < right);
}

static double median(double *values) {
  qsort(values, ROUNDS, sizeof *values, by_value);
  return values[ROUNDS / 2];
}

/* Each gives ns an ID. */

static double floor_of_clock(void) {
  /* The sum keeps the reading from being thought useless. */
  static volatile int64_t sum;
  uint64_t start = now_ns();
  for (int n = 0; n < IDS; n++) {
    struct timespec wall;
    clock_gettime(CLOCK_REALTIME, &wall);
    sum += wall.tv_nsec;
  }
  return (double)(now_ns() - start) / IDS;
}

static double singles(const polyflake_snowflake *ids) {
  uint64_t id;
  uint64_t start = now_ns();
  for (int n = 0; n < IDS; n++) {
    must(polyflake_next_id(ids, &id));
  }
  return (double)(now_ns() - start) / IDS;
}

static double batches(const polyflake_snowflake *ids) {
  static uint64_t array[BATCH];
  uint64_t start = now_ns();
  for (int n = 0; n < IDS / BATCH; n++) {
    must(polyflake_next_ids(ids, BATCH, NULL, array));
  }
  return (double)(now_ns() - start) / (IDS / BATCH * BATCH);
}

int main(void) {
  double floor_ns[ROUNDS], single_ns[ROUNDS], batch_ns[ROUNDS];
  polyflake_options *options = polyflake_options_new();
  polyflake_snowflake *ids;
  must(polyflake_options_set(options, "layout", "timestamp:40|worker:2|sequence:22@1735689600000/1ms"));
  must(polyflake_options_set(options, "node", "1"));
  must(polyflake_snowflake_new(options, &ids));
  polyflake_options_free(options);
  for (int round = 0; round < ROUNDS; round++) {
    floor_ns[round] = floor_of_clock();
    single_ns[round] = singles(ids);
    batch_ns[round] = batches(ids);
  }
  polyflake_snowflake_free(ids);
  printf("C, medians of %d interleaved rounds\n", ROUNDS);
  printf("  clock_gettime alone                %8.2f ns\n", median(floor_ns));
  printf("  polyflake_next_id, 22-bit sequence %8.2f ns an ID\n", median(single_ns));
  printf("  polyflake_next_ids of %d         %8.2f ns an ID\n", BATCH, median(batch_ns));
  return EXIT_SUCCESS;
}
