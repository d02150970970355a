/* The cost of an ID in C: Polyflake, the textbook generator under a mutex (no package exists), and the least
 * work that any such call must do. ../harness.py tells this program what to measure.
 *
 *   cc -O2 -pthread bench.c -o bench $(pkg-config --cflags --libs polyflake) */
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

/* The loops below are inlined into a function for each subject, so that subjects are called directly rather
 * than through a pointer. */
#define INLINE static inline __attribute__((always_inline))

enum {
  BURST = 1000, /* calls */
  BURSTS = 20,  /* per round */
  BATCH = 1024,
  FEW_BATCHES = 3, /* per burst: 3,072 IDs, the fewest that a fresh tick has with `spread` */
  FEW_BATCHES_BURSTS = 40,
  MANY_BATCHES = 1000,
  MANY_BATCHES_BURSTS = 8,
  CAPACITY = 4096, /* IDs per ms, with 12 sequence bits */
  SHARE = 64       /* IDs that a thread takes before it reads the clock */
};
#define TWITTER_EPOCH_MS INT64_C(1288834974657)
#define WIDE "timestamp:40|worker:2|sequence:22@1735689600000/1ms"

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

/* Make the compiler treat this value, or the data behind this pointer, as used. */
INLINE void keep(uint64_t value) {
  __asm__ volatile("" : : "r"(value));
}

INLINE void keep_array(void *array) {
  __asm__ volatile("" : : "r"(array) : "memory");
}

/* The subjects. */

static polyflake_snowflake *twitter, *wide;

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
  /* On a busy machine, one of two threads may wait a long time for the other, and must not give up. */
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

/* A counter with its numbers in hand, in segments of the maximum size: benchmarks/counters measures the cost
 * of stores. */
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

/* IDs with their public IDs, used in turn. */
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

/* The processor's counter; where Polyflake does not read one, the clock is used instead. */
INLINE uint64_t read_counter(void) {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  uint64_t counts;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(counts));
  return counts;
#else
  return (uint64_t)nanoseconds(CLOCK_REALTIME);
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

/* Measuring. Each function prints the figures of a round. */

/* ns per call, in bursts that do not have to wait. */
INLINE void singles(uint64_t (*next)(void)) {
  int64_t spent = 0;
  for (int burst = 0; burst < BURSTS; burst++) {
    wait_for_turn();
    int64_t start = nanoseconds(CLOCK_MONOTONIC);
    for (int n = 0; n < BURST; n++) {
      keep(next());
    }
    spent += nanoseconds(CLOCK_MONOTONIC) - start;
  }
  printf("%.4f\n", (double)spent / (BURSTS * BURST));
}

/* ns per ID, in batches that do not have to wait. */
INLINE void batches(void (*fill)(uint64_t *), int bursts, int batches) {
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
  printf("%.4f\n", (double)spent / bursts / batches / BATCH);
}

static void in_two_threads(void *(*work)(void *), void *mine, void *theirs) {
  pthread_t other;
  if (pthread_create(&other, NULL, work, theirs) != 0) {
    fprintf(stderr, "cannot start a second thread\n");
    exit(EXIT_FAILURE);
  }
  work(mine);
  pthread_join(other, NULL);
}

/* IDs taken as fast as possible, in blocks, each followed by a reading of the wall clock. */
struct taken {
  uint64_t *words;
  size_t blocks, block;
  void (*take)(uint64_t *ids, size_t n);
};

static void *take_blocks(void *user) {
  struct taken *taken = user;
  uint64_t *words = taken->words;
  for (size_t n = 0; n < taken->blocks; n++) {
    taken->take(words, taken->block);
    words += taken->block;
    *words++ = (uint64_t)nanoseconds(CLOCK_REALTIME) / 1000;
  }
  return NULL;
}

static void
write_ids(void (*take)(uint64_t *ids, size_t n), size_t block, int threads, size_t n, char *file) {
  size_t blocks = n / block, size = blocks * (block + 1);
  uint64_t *words = calloc(size, sizeof *words);
  FILE *into = fopen(file, "wb");
  struct taken all = {words, blocks, block, take}, mine = {words, blocks / 2, block, take};
  struct taken theirs = {words + size / 2, blocks / 2, block, take};
  if (words == NULL || into == NULL) {
    abort();
  }
  if (threads == 2) {
    in_two_threads(take_blocks, &mine, &theirs);
  } else {
    take_blocks(&all);
  }
  printf("%zu %d\n", block, threads);
  fflush(stdout);
  if (fwrite(words, sizeof *words, size, into) != size || fclose(into) != 0) {
    perror(file);
    exit(EXIT_FAILURE);
  }
  free(words);
}

/* The rows. Each has its own functions, which call the subject directly. */

#define ROUND(name, code)                                                                                    \
  static void name(void) {                                                                                   \
    code;                                                                                                    \
  }
#define ID(name, next)                                                                                       \
  ROUND(singles_of_##name, singles(next))                                                                    \
  static inline void take_##name(uint64_t *ids, size_t n) {                                                  \
    for (size_t i = 0; i < n; i++)                                                                           \
      ids[i] = next();                                                                                       \
  }
#define FILL(name, fill, ...)                                                                                \
  ROUND(batches_of_##name, batches(fill, __VA_ARGS__))                                                       \
  static inline void fill_##name(uint64_t *ids, size_t n) {                                                  \
    (void)n;                                                                                                 \
    fill(ids);                                                                                               \
  }
#define FEW FEW_BATCHES_BURSTS, FEW_BATCHES
#define MANY MANY_BATCHES_BURSTS, MANY_BATCHES

ID(twitter, twitter_id)
ID(wide, wide_id)
ID(textbook, textbook_id)
ID(counter, counter_id)
ID(swap, only_swap)
ID(counter_and_swap, counter_and_swap)
ID(cheapest, cheapest_call)
ID(encoded, encode_public)
ID(decoded, decode_public)
FILL(twitter, twitter_fill, FEW)
FILL(wide, wide_fill, MANY)
FILL(textbook, textbook_fill, FEW)
FILL(counter, counter_fill, MANY)
FILL(numbers, consecutive, MANY)

#define LOADED "full load, one thread|processor time under full load, one thread"
#define LOADED_TWO "full load, two threads"
#define BATCHES "batch of 1,024"
#define CHEAPEST "polyflake_version"
#define NUMBERS "1,024 consecutive numbers into a buffer"

static const struct row {
  const char *table, *subject;
  void (*measure)(void);                 /* NULL: under full load, measured by its IDs */
  void (*take)(uint64_t *ids, size_t n); /* NULL: no IDs */
  int block, threads;
} rows[] = {
    {"one ID", "polyflake_next_id", singles_of_twitter, take_twitter, SHARE, 1},
    {"one ID", "polyflake_next_id, 22-bit sequence", singles_of_wide, take_wide, SHARE, 1},
    {"one ID", "textbook C, mutex", singles_of_textbook, take_textbook, SHARE, 1},
    {"one ID", "counter and compare-and-swap", singles_of_counter_and_swap, NULL, 0, 1},
    {BATCHES, "polyflake_fill", batches_of_twitter, fill_twitter, BATCH, 1},
    {BATCHES, "polyflake_fill, 22-bit sequence", batches_of_wide, fill_wide, BATCH, 1},
    {BATCHES, "textbook C, mutex", batches_of_textbook, fill_textbook, BATCH, 1},
    {BATCHES, NUMBERS, batches_of_numbers, NULL, 0, 1},
    {"one number of a counter", "polyflake_counter_next_id", singles_of_counter, take_counter, SHARE, 1},
    {"one number of a counter", "compare-and-swap", singles_of_swap, NULL, 0, 1},
    {BATCHES " of a counter", "polyflake_counter_fill", batches_of_counter, fill_counter, BATCH, 1},
    {BATCHES " of a counter", NUMBERS, batches_of_numbers, NULL, 0, 1},
    {"public ID, encode", "polyflake_public_ids_encode", singles_of_encoded, NULL, 0, 1},
    {"public ID, encode", CHEAPEST, singles_of_cheapest, NULL, 0, 1},
    {"public ID, decode", "polyflake_public_ids_decode", singles_of_decoded, NULL, 0, 1},
    {"public ID, decode", CHEAPEST, singles_of_cheapest, NULL, 0, 1},
    {LOADED, "polyflake_next_id", NULL, take_twitter, SHARE, 1},
    {LOADED, "textbook C, mutex", NULL, take_textbook, SHARE, 1},
    {LOADED_TWO, "polyflake_next_id", NULL, take_twitter, SHARE, 2},
    {LOADED_TWO, "textbook C, mutex", NULL, take_textbook, SHARE, 2},
};
enum { ROWS = sizeof rows / sizeof *rows };

static void answer(const struct row *row) {
  char line[4096], file[4096];
  size_t n;
  while (fgets(line, sizeof line, stdin) != NULL) {
    if (sscanf(line, "ids %zu %4095s", &n, file) == 2) {
      if (row->take != NULL) {
        write_ids(row->take, (size_t)row->block, row->threads, n, file);
      }
      puts(row->take != NULL ? "" : "0 1");
    } else {
      row->measure();
    }
    fflush(stdout);
  }
}

int main(int argc, char **argv) {
  if (argc != 3) {
    for (int row = 0; row < ROWS; row++) {
      printf("%s\t%s\n", rows[row].table, rows[row].subject);
    }
    return EXIT_SUCCESS;
  }
  twitter = snowflake("twitter");
  wide = snowflake(WIDE);
  char folder[] = "/tmp/polyflake-bench-XXXXXX", file[sizeof folder + 12];
  if (mkdtemp(folder) == NULL) {
    perror(folder);
    return EXIT_FAILURE;
  }
  open_counter(folder);
  open_public_ids();
  for (int row = 0; row < ROWS; row++) {
    if (strcmp(argv[1], rows[row].table) == 0 && strcmp(argv[2], rows[row].subject) == 0) {
      answer(&rows[row]);
    }
  }
  polyflake_counter_close(counter);
  snprintf(file, sizeof file, "%s/counters.db", folder);
  unlink(file);
  rmdir(folder);
  return EXIT_SUCCESS;
}
