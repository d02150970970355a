/* The cost of an ID in C: Polyflake, the textbook generator under a mutex (there is no package), and the
 * least work that any such call must do, in interleaved rounds of one run. JSON Lines on standard
 * output, progress on standard error.
 *
 *   cc -O2 -pthread bench.c -o bench $(pkg-config --cflags --libs polyflake) && ./bench [--rounds N] */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include <polyflake.h>

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The loops below are inlined into a function for each subject, so that subjects are called directly and not
 * through a pointer. */
#define INLINE static inline __attribute__((always_inline))

enum {
  DEFAULT_ROUNDS = 9,
  MAX_ROUNDS = 1000,
  BURST = 1000, /* calls */
  BURSTS = 20,  /* per round */
  BATCH = 1024,
  FEW_BATCHES = 3, /* per burst: 3,072 IDs, which a fresh tick has at least with `spread` */
  FEW_BATCHES_BURSTS = 40,
  MANY_BATCHES = 1000,
  MANY_BATCHES_BURSTS = 8,
  CAPACITY = 4096,    /* IDs per ms, with 12 sequence bits */
  WARM_UP = 3,        /* ms of full load that are not measured */
  FULL_LOAD_MS = 100, /* per round */
  SHARE = 64,         /* IDs that a thread takes before it checks how many are left */
  CHECKED = 1000000   /* IDs that are checked for repeats */
};
#define TWITTER_EPOCH_MS INT64_C(1288834974657)
#define WIDE_EPOCH_MS INT64_C(1735689600000)
#define WIDE "timestamp:40|worker:2|sequence:22@1735689600000/1ms"
#define WIDER "timestamp:38|worker:1|sequence:25@1735689600000/1ms"

/* Clocks. */

static int64_t nanoseconds(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int64_t unix_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Waits for the wall clock's next millisecond. */
static void wait_for_turn(void) {
  int64_t now = unix_ms();
  while (unix_ms() == now) {
  }
}

/* Make the compiler treat this value, or what this pointer points to, as used. */
INLINE void keep(uint64_t value) {
  __asm__ volatile("" : : "r"(value));
}

INLINE void keep_array(void *array) {
  __asm__ volatile("" : : "r"(array) : "memory");
}

/* The subjects. */

static polyflake_snowflake *twitter, *wide, *wider;

static void must(polyflake_status status) {
  if (status != POLYFLAKE_OK) {
    fprintf(stderr, "%s\n", polyflake_status_message(status));
    exit(EXIT_FAILURE);
  }
}

static polyflake_snowflake *snowflake(const char *layout) {
  polyflake_options *options = polyflake_options_new();
  polyflake_snowflake *ids;
  must(polyflake_options_set(options, "layout", layout, NULL));
  must(polyflake_options_set(options, "node", "1", NULL));
  /* On a busy machine one of two threads may wait long for the other, and must not give
   * up. */
  must(polyflake_options_set(options, "max_wait_ms", "600000", NULL));
  must(polyflake_snowflake_new(options, &ids, NULL));
  polyflake_options_free(options);
  return ids;
}

INLINE uint64_t next_id(const polyflake_snowflake *ids) {
  uint64_t id;
  must(polyflake_next_id(ids, &id, NULL));
  return id;
}

INLINE uint64_t twitter_id(void) {
  return next_id(twitter);
}

/* A counter, whose numbers are in hand in the largest segments that there can be: what stores cost is
 * measured in benchmarks/counters. */
static polyflake_counter *counter;

static void open_counter(const char *folder) {
  char store[256];
  snprintf(store, sizeof store, "sqlite://%s/counters.db", folder);
  polyflake_options *options = polyflake_options_new();
  must(polyflake_options_set(options, "name", "bench", NULL));
  must(polyflake_options_set(options, "store", store, NULL));
  must(polyflake_options_set(options, "step", "1000000000", NULL));
  must(polyflake_counter_open(options, &counter, NULL));
  polyflake_options_free(options);
}

INLINE uint64_t counter_id(void) {
  uint64_t number;
  must(polyflake_counter_next_id(counter, &number, NULL));
  return number;
}

INLINE void counter_fill(uint64_t *ids) {
  must(polyflake_counter_fill(counter, BATCH, ids, NULL));
}

static polyflake_public_ids *orders;

/* IDs with their public IDs, which are shown in turn. */
static struct {
  uint64_t id;
  char text[POLYFLAKE_PUBLIC_ID_SIZE];
} shown[BATCH];
static unsigned turns;

static void open_public_ids(void) {
  must(polyflake_public_ids_new("pfk_10kvEGTqNtUTXFUlMnM4wIa", "order", &orders, NULL));
  for (unsigned n = 0; n < BATCH; n++) {
    shown[n].id = UINT64_C(1541815603606036480) + n * UINT64_C(0x1234567891);
    must(polyflake_public_ids_encode(orders, shown[n].id, shown[n].text, sizeof shown[n].text, NULL));
  }
}

INLINE uint64_t encode_public(void) {
  char text[POLYFLAKE_PUBLIC_ID_SIZE];
  must(polyflake_public_ids_encode(orders, shown[turns++ % BATCH].id, text, sizeof text, NULL));
  return (uint64_t)text[7];
}

INLINE uint64_t decode_public(void) {
  uint64_t id;
  must(polyflake_public_ids_decode(orders, shown[turns++ % BATCH].text, &id, NULL));
  return id;
}

INLINE uint64_t wide_id(void) {
  return next_id(wide);
}

INLINE void twitter_fill(uint64_t *ids) {
  must(polyflake_fill(twitter, BATCH, ids, NULL));
}

INLINE void wide_fill(uint64_t *ids) {
  must(polyflake_fill(wide, BATCH, ids, NULL));
}

INLINE void wider_fill(uint64_t *ids) {
  must(polyflake_fill(wider, BATCH, ids, NULL));
}

static struct {
  pthread_mutex_t mutex;
  int64_t last_ms;
  uint64_t sequence;
} textbook = {PTHREAD_MUTEX_INITIALIZER, 0, 0};

static uint64_t textbook_id(void) {
  pthread_mutex_lock(&textbook.mutex);
  int64_t now = unix_ms();
  if (now < textbook.last_ms) {
    now = textbook.last_ms;
  }
  if (now == textbook.last_ms) {
    textbook.sequence = (textbook.sequence + 1) & (CAPACITY - 1);
    while (textbook.sequence == 0 && now <= textbook.last_ms) {
      now = unix_ms();
    }
  } else {
    textbook.sequence = 0;
  }
  textbook.last_ms = now;
  uint64_t id = (uint64_t)(now - TWITTER_EPOCH_MS) << 22 | UINT64_C(2) << 12 | textbook.sequence;
  pthread_mutex_unlock(&textbook.mutex);
  return id;
}

INLINE void textbook_fill(uint64_t *ids) {
  for (int n = 0; n < BATCH; n++) {
    ids[n] = textbook_id();
  }
}

/* The floors. */

static uint64_t cursor;

INLINE uint64_t read_clock(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (uint64_t)now.tv_nsec;
}

/* The processor's counter; where Polyflake reads none, the clock stands in. */
INLINE uint64_t read_counter(void) {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  uint64_t counts;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(counts));
  return counts;
#else
  return read_clock();
#endif
}

INLINE uint64_t compare_and_swap(uint64_t time) {
  uint64_t last = __atomic_load_n(&cursor, __ATOMIC_RELAXED);
  uint64_t next = last + (1 | (time & 1));
  __atomic_compare_exchange_n(&cursor, &last, next, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return next;
}

INLINE uint64_t only_swap(void) {
  return compare_and_swap(0);
}

INLINE uint64_t clock_and_swap(void) {
  return compare_and_swap(read_clock());
}

INLINE uint64_t counter_and_swap(void) {
  return compare_and_swap(read_counter());
}

INLINE uint64_t cheapest_call(void) {
  return (uint64_t)(uintptr_t)polyflake_version();
}

INLINE void consecutive(uint64_t *ids) {
  static uint64_t taken;
  uint64_t first = taken;
  for (int n = 0; n < BATCH; n++) {
    ids[n] = first + (uint64_t)n;
  }
  taken = first + BATCH;
}

/* Measuring. Each function returns the figure of a round. */

/* ns per call, in bursts that need not wait. */
INLINE double singles(uint64_t (*next)(void)) {
  int64_t spent = 0;
  for (int burst = 0; burst < BURSTS; burst++) {
    wait_for_turn();
    int64_t start = nanoseconds(CLOCK_MONOTONIC);
    for (int n = 0; n < BURST; n++) {
      keep(next());
    }
    spent += nanoseconds(CLOCK_MONOTONIC) - start;
  }
  return (double)spent / (BURSTS * BURST);
}

/* ns per ID, in batches that need not wait. */
INLINE double batches(void (*fill)(uint64_t *), int bursts, int batches) {
  uint64_t ids[BATCH];
  int64_t spent = 0;
  for (int burst = 0; burst < bursts; burst++) {
    wait_for_turn();
    int64_t start = nanoseconds(CLOCK_MONOTONIC);
    for (int n = 0; n < batches; n++) {
      fill(ids);
      keep_array(ids);
    }
    spent += nanoseconds(CLOCK_MONOTONIC) - start;
  }
  return (double)spent / bursts / batches / BATCH;
}

/* CPU seconds per second in the last round under full load. */
static double processor_time;

/* The share of the capacity that is used, in %. */
INLINE double full_load(uint64_t (*next)(void)) {
  /* It begins in the middle of a tick and ends in the middle of a later one, so the figure is exact. */
  for (int n = 0; n < WARM_UP * CAPACITY; n++) {
    keep(next());
  }
  int64_t start = nanoseconds(CLOCK_MONOTONIC), cpu = nanoseconds(CLOCK_PROCESS_CPUTIME_ID);
  for (int n = 0; n < FULL_LOAD_MS * CAPACITY; n++) {
    keep(next());
  }
  double real = (double)(nanoseconds(CLOCK_MONOTONIC) - start);
  processor_time = (double)(nanoseconds(CLOCK_PROCESS_CPUTIME_ID) - cpu) / real;
  return FULL_LOAD_MS * 1e6 / real * 100;
}

/* How many IDs two threads still have to take; when the warm-up ended, and how many were left then. */
static int left, measured;
static int64_t measured_since;

INLINE void *take_shares(uint64_t (*next)(void)) {
  for (;;) {
    int before = __atomic_fetch_sub(&left, SHARE, __ATOMIC_RELAXED);
    if (before <= FULL_LOAD_MS * CAPACITY && before + SHARE > FULL_LOAD_MS * CAPACITY) {
      measured_since = nanoseconds(CLOCK_MONOTONIC);
      measured = before;
    }
    if (before <= 0) {
      return NULL;
    }
    for (int n = 0; n < SHARE; n++) {
      keep(next());
    }
  }
}

/* The share of the capacity that two threads use together, in %. Both run until the end, even if one is
 * faster. */
INLINE double full_load_two_threads(void *(*work)(void *)) {
  pthread_t other;
  left = (WARM_UP + FULL_LOAD_MS) * CAPACITY;
  if (pthread_create(&other, NULL, work, NULL) != 0) {
    fprintf(stderr, "cannot start a second thread\n");
    exit(EXIT_FAILURE);
  }
  work(NULL);
  pthread_join(other, NULL);
  return measured * 1e6 / CAPACITY / (double)(nanoseconds(CLOCK_MONOTONIC) - measured_since) * 100;
}

/* A function for each subject. */

#define SHARES_OF(name, next)                                                                                \
  static void *name(void *unused) {                                                                          \
    (void)unused;                                                                                            \
    return take_shares(next);                                                                                \
  }
#define FIGURE(name, figure)                                                                                 \
  static double name(void) {                                                                                 \
    return figure;                                                                                           \
  }
#define FEW(fill) batches(fill, FEW_BATCHES_BURSTS, FEW_BATCHES)
#define MANY(fill) batches(fill, MANY_BATCHES_BURSTS, MANY_BATCHES)

SHARES_OF(twitter_shares, twitter_id)
SHARES_OF(textbook_shares, textbook_id)
FIGURE(singles_of_polyflake, singles(twitter_id))
FIGURE(singles_of_wide, singles(wide_id))
FIGURE(singles_of_textbook, singles(textbook_id))
FIGURE(singles_of_clock, singles(read_clock))
FIGURE(singles_of_swap, singles(only_swap))
FIGURE(singles_of_clock_and_swap, singles(clock_and_swap))
FIGURE(singles_of_counter_and_swap, singles(counter_and_swap))
FIGURE(singles_of_cheapest_call, singles(cheapest_call))
FIGURE(singles_of_counter, singles(counter_id))
FIGURE(encoded_public_ids, singles(encode_public))
FIGURE(decoded_public_ids, singles(decode_public))
FIGURE(batches_of_counter, MANY(counter_fill))
FIGURE(batches_of_polyflake, FEW(twitter_fill))
FIGURE(batches_of_wide, MANY(wide_fill))
FIGURE(batches_of_wider, MANY(wider_fill))
FIGURE(batches_of_textbook, FEW(textbook_fill))
FIGURE(batches_of_numbers, MANY(consecutive))
FIGURE(full_load_of_polyflake, full_load(twitter_id))
FIGURE(full_load_of_textbook, full_load(textbook_id))
FIGURE(two_threads_of_polyflake, full_load_two_threads(twitter_shares))
FIGURE(two_threads_of_textbook, full_load_two_threads(textbook_shares))
FIGURE(processor_time_of_last, processor_time)

/* The checks: a run at full load, in which no ID may come twice. */

struct check {
  size_t repeated, ids;
  int64_t ahead_ms; /* by how much the time in an ID was at most ahead of the wall clock */
};

/* The IDs of one thread, and how far they were ahead. */
struct taken {
  uint64_t *ids;
  size_t n;
  int64_t ahead_ms;
  void (*take)(uint64_t *ids, size_t n);
  unsigned time_shift;
  int64_t epoch_ms;
};

static void *take(void *user) {
  struct taken *taken = user;
  for (size_t done = 0; done < taken->n; done += BATCH) {
    size_t now = taken->n - done < BATCH ? taken->n - done : BATCH;
    taken->take(taken->ids + done, now);
    int64_t time = (int64_t)(taken->ids[done + now - 1] >> taken->time_shift) + taken->epoch_ms;
    int64_t ahead = time - unix_ms();
    if (ahead > taken->ahead_ms) {
      taken->ahead_ms = ahead;
    }
  }
  return NULL;
}

static int by_value(const void *a, const void *b) {
  uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
  return (left > right) - (left < right);
}

static struct check check(struct taken *one, int threads) {
  struct check result = {0, CHECKED, 0};
  uint64_t *ids = malloc(CHECKED * sizeof *ids);
  if (ids == NULL) {
    abort();
  }
  struct taken own = *one, other = *one;
  own.ids = ids;
  own.n = CHECKED / (size_t)threads;
  other.ids = ids + own.n;
  other.n = CHECKED - own.n;
  pthread_t thread;
  int two = other.n > 0 && pthread_create(&thread, NULL, take, &other) == 0;
  take(&own);
  if (two) {
    pthread_join(thread, NULL);
  } else {
    take(&other);
  }
  result.ahead_ms = own.ahead_ms > other.ahead_ms ? own.ahead_ms : other.ahead_ms;
  qsort(ids, CHECKED, sizeof *ids, by_value);
  for (size_t n = 1; n < CHECKED; n++) {
    result.repeated += ids[n] == ids[n - 1];
  }
  free(ids);
  return result;
}

#define TAKE(name, next)                                                                                     \
  static void name(uint64_t *ids, size_t n) {                                                                \
    for (size_t i = 0; i < n; i++)                                                                           \
      ids[i] = next();                                                                                       \
  }
#define TAKE_BATCH(name, call, of)                                                                           \
  static void name(uint64_t *ids, size_t n) {                                                                \
    must(call(of, n, ids, NULL));                                                                            \
  }
TAKE(take_polyflake, twitter_id)
TAKE(take_wide, wide_id)
TAKE(take_counter, counter_id)
TAKE(take_textbook, textbook_id)
TAKE_BATCH(take_batch, polyflake_fill, twitter)
TAKE_BATCH(take_wide_batch, polyflake_fill, wide)
TAKE_BATCH(take_wider_batch, polyflake_fill, wider)
TAKE_BATCH(take_counter_batch, polyflake_counter_fill, counter)

/* The tables. */

struct row {
  const char *table, *subject;
  double (*measure)(void);
  void (*take)(uint64_t *ids, size_t n); /* NULL: no IDs */
  int threads;
  unsigned time_shift;
  int64_t epoch_ms; /* 0: no time in them */
};

#define SINGLES "one ID"
#define BATCHES "batch of 1,024"
#define COUNTED "one number of a counter"
#define COUNTED_BATCHES "batch of 1,024 of a counter"
#define ENCODE "public ID, encode"
#define DECODE "public ID, decode"
#define LOAD "full load, one thread"
#define LOAD_TWO "full load, two threads"
#define PROCESSOR_TIME "processor time under full load, one thread"
#define POLYFLAKE "polyflake_next_id"
#define TEXTBOOK "textbook C, mutex"
#define CHEAPEST "polyflake_version"
#define NUMBERS "1,024 consecutive numbers into a buffer"
#define OF_TWITTER 22, TWITTER_EPOCH_MS
#define OF_WIDE 24, WIDE_EPOCH_MS
#define OF_WIDER 26, WIDE_EPOCH_MS
#define NO_ID NULL, 0, 0, 0

/* Each is measured once per round. Processor time is that of the row before. */
static const struct row rows[] = {
    {SINGLES, POLYFLAKE, singles_of_polyflake, take_polyflake, 1, OF_TWITTER},
    {SINGLES, POLYFLAKE ", 22-bit sequence", singles_of_wide, take_wide, 1, OF_WIDE},
    {SINGLES, TEXTBOOK, singles_of_textbook, take_textbook, 1, OF_TWITTER},
    {SINGLES, "clock_gettime", singles_of_clock, NO_ID},
    {SINGLES, "compare-and-swap", singles_of_swap, NO_ID},
    {SINGLES, "clock_gettime and compare-and-swap", singles_of_clock_and_swap, NO_ID},
    {SINGLES, "counter and compare-and-swap", singles_of_counter_and_swap, NO_ID},
    {SINGLES, CHEAPEST, singles_of_cheapest_call, NO_ID},
    {BATCHES, "polyflake_fill", batches_of_polyflake, take_batch, 1, OF_TWITTER},
    {BATCHES, "polyflake_fill, 22-bit sequence", batches_of_wide, take_wide_batch, 1, OF_WIDE},
    {BATCHES, "polyflake_fill, 25-bit sequence", batches_of_wider, take_wider_batch, 1, OF_WIDER},
    {BATCHES, TEXTBOOK, batches_of_textbook, take_textbook, 1, OF_TWITTER},
    {BATCHES, NUMBERS, batches_of_numbers, NO_ID},
    {COUNTED, "polyflake_counter_next_id", singles_of_counter, take_counter, 1, 0, 0},
    {COUNTED, "compare-and-swap", singles_of_swap, NO_ID},
    {COUNTED, CHEAPEST, singles_of_cheapest_call, NO_ID},
    {COUNTED_BATCHES, "polyflake_counter_fill", batches_of_counter, take_counter_batch, 1, 0, 0},
    {COUNTED_BATCHES, NUMBERS, batches_of_numbers, NO_ID},
    {ENCODE, "polyflake_public_ids_encode", encoded_public_ids, NO_ID},
    {ENCODE, CHEAPEST, singles_of_cheapest_call, NO_ID},
    {DECODE, "polyflake_public_ids_decode", decoded_public_ids, NO_ID},
    {DECODE, CHEAPEST, singles_of_cheapest_call, NO_ID},
    {LOAD, POLYFLAKE, full_load_of_polyflake, take_polyflake, 1, OF_TWITTER},
    {PROCESSOR_TIME, POLYFLAKE, processor_time_of_last, take_polyflake, 1, OF_TWITTER},
    {LOAD, TEXTBOOK, full_load_of_textbook, take_textbook, 1, OF_TWITTER},
    {PROCESSOR_TIME, TEXTBOOK, processor_time_of_last, take_textbook, 1, OF_TWITTER},
    {LOAD_TWO, POLYFLAKE, two_threads_of_polyflake, take_polyflake, 2, OF_TWITTER},
    {LOAD_TWO, TEXTBOOK, two_threads_of_textbook, take_textbook, 2, OF_TWITTER},
};
enum { ROWS = sizeof rows / sizeof *rows };
static double figures[ROWS][MAX_ROUNDS];

static void print_row(int number, int rounds) {
  const struct row *row = &rows[number];
  printf(
      "{\"kind\": \"result\", \"language\": \"C\", \"table\": \"%s\", \"subject\": \"%s\", \"rounds\": [",
      row->table,
      row->subject
  );
  for (int round = 0; round < rounds; round++) {
    printf("%s%.4f", round > 0 ? ", " : "", figures[number][round]);
  }
  putchar(']');
  if (row->take != NULL) {
    struct taken taken = {NULL, 0, 0, row->take, row->time_shift, row->epoch_ms};
    struct check checked = check(&taken, row->threads);
    printf(", \"repeated\": %zu, \"ids\": %zu", checked.repeated, checked.ids);
    if (row->epoch_ms != 0) {
      printf(", \"ahead_ms\": %lld", (long long)checked.ahead_ms);
    }
  }
  puts("}");
}

int main(int argc, char **argv) {
  int rounds = argc == 1 ? DEFAULT_ROUNDS : 0;
  if (argc == 3 && strcmp(argv[1], "--rounds") == 0) {
    rounds = atoi(argv[2]);
  }
  if (rounds < 1 || rounds > MAX_ROUNDS) {
    fprintf(stderr, "usage: bench [--rounds N], N at most %d\n", MAX_ROUNDS);
    return 2;
  }
  twitter = snowflake("twitter");
  wide = snowflake(WIDE);
  wider = snowflake(WIDER);
  char folder[] = "/tmp/polyflake-bench-XXXXXX";
  if (mkdtemp(folder) == NULL) {
    perror(folder);
    return EXIT_FAILURE;
  }
  open_counter(folder);
  open_public_ids();
  for (int round = 0; round < rounds; round++) {
    fprintf(stderr, "C: round %d of %d\n", round + 1, rounds);
    for (int row = 0; row < ROWS; row++) {
      figures[row][round] = rows[row].measure();
    }
  }
  for (int row = 0; row < ROWS; row++) {
    print_row(row, rounds);
  }
  polyflake_snowflake_free(twitter);
  polyflake_snowflake_free(wide);
  polyflake_snowflake_free(wider);
  polyflake_counter_close(counter);
  polyflake_counter_free(counter);
  polyflake_public_ids_free(orders);
  char file[sizeof folder + 12];
  snprintf(file, sizeof file, "%s/counters.db", folder);
  unlink(file);
  rmdir(folder);
  return EXIT_SUCCESS;
}
