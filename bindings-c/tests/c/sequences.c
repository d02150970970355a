/* sequences: tests sequences in SQLite files in a temporary folder, and processes that compete for them. To
 * start another process, the program runs itself with the address to open. */
#include "check.h"

#include <dirent.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ADDRESS = 512 };

static const char *program;
static char folder[] = "/tmp/polyflake-sequences-XXXXXX";
static char address[ADDRESS];

static void clean_up(void) {
  DIR *files = opendir(folder);
  for (const struct dirent *file; files && (file = readdir(files)) != NULL;) {
    char path[ADDRESS];
    snprintf(path, sizeof path, "%s/%s", folder, file->d_name);
    unlink(path);
  }
  if (files) {
    closedir(files);
  }
  rmdir(folder);
}

/* The options of sequences: their name, then pairs of names and values, then NULL. */
static polyflake_status open_with(
    polyflake_sequences **sequences, polyflake_detail *detail, const char *name, const char *const *pairs
) {
  polyflake_options *options = polyflake_options_new();
  polyflake_status status = polyflake_options_set(options, "name", name, detail);
  for (; status == POLYFLAKE_OK && *pairs; pairs += 2) {
    status = polyflake_options_set(options, pairs[0], pairs[1], detail);
  }
  if (status == POLYFLAKE_OK) {
    status = polyflake_sequences_open(options, sequences, detail);
  }
  polyflake_options_free(options);
  return status;
}

static polyflake_sequences *opened(const char *name, const char *const *more) {
  polyflake_sequences *sequences = NULL;
  polyflake_detail detail = fresh_detail();
  const char *pairs[9] = {"store", address, NULL};
  for (size_t n = 0; more && more[n] && n < 6; n++) {
    pairs[n + 2] = more[n];
  }
  if (open_with(&sequences, &detail, name, pairs) != POLYFLAKE_OK) {
    give_up(detail.message);
  }
  return sequences;
}

static void close_and_free(polyflake_sequences *sequences) {
  polyflake_sequences_close(sequences);
  polyflake_sequences_free(sequences);
}

static polyflake_key text_key(const char *text) {
  polyflake_key key = {POLYFLAKE_KEY_TEXT, 0, text, strlen(text)};
  return key;
}

static polyflake_key int_key(int64_t integer) {
  polyflake_key key = {POLYFLAKE_KEY_INT, (uint64_t)integer, NULL, 0};
  return key;
}

static polyflake_key uint_key(uint64_t integer) {
  polyflake_key key = {POLYFLAKE_KEY_UINT, integer, NULL, 0};
  return key;
}

static uint64_t next(const polyflake_sequences *sequences, polyflake_key key) {
  uint64_t number = 0;
  CHECK_STATUS(POLYFLAKE_OK, polyflake_sequences_next_id(sequences, &key, &number, NULL));
  return number;
}

static polyflake_sequences_counts counts_of(const polyflake_sequences *sequences) {
  polyflake_sequences_counts counts;
  fill_with_sentinel(&counts, sizeof counts);
  counts.size = sizeof counts;
  CHECK_STATUS(POLYFLAKE_OK, polyflake_sequences_stats(sequences, &counts, NULL));
  return counts;
}

/* ---- the tests ---- */

static void numbers(void) {
  uint64_t number = 0, many[6];
  polyflake_detail detail = fresh_detail();
  polyflake_key alice = text_key("alice"), bob = text_key("bob");
  begin("sequences", "count each key for itself");
  polyflake_sequences *inbox = opened("inbox", NULL);
  for (uint64_t n = 1; n <= 3; n++) {
    CHECK_STATUS(POLYFLAKE_OK, polyflake_sequences_next_id(inbox, &alice, &number, &detail));
    CHECK_NUMBER(n, number);
    CHECK_NUMBER(n, next(inbox, bob));
  }
  CHECK(is_untouched(&detail));
  CHECK_STATUS(POLYFLAKE_OK, polyflake_sequences_try_next_id(inbox, &alice, &number, NULL));
  CHECK_NUMBER(4, number);
  CHECK_TEXT("inbox", polyflake_sequences_name(inbox));

  begin("sequences", "know texts from integers, and no two kinds of integers");
  CHECK_NUMBER(1, next(inbox, int_key(5)));
  CHECK_NUMBER(1, next(inbox, text_key("5")));
  CHECK_NUMBER(2, next(inbox, uint_key(5)));
  CHECK_NUMBER(1, next(inbox, int_key(-1)));
  CHECK_NUMBER(1, next(inbox, uint_key(UINT64_MAX)));
  CHECK_NUMBER(1, next(inbox, int_key(INT64_MIN)));
  CHECK_NUMBER(1, next(inbox, uint_key(UINT64_C(1) << 63)));

  begin("sequences", "take texts of any length, and with NULs");
  const polyflake_key empty = {POLYFLAKE_KEY_TEXT, 0, "", 0}, with_nul = {POLYFLAKE_KEY_TEXT, 0, "a\0b", 3},
                      with_other = {POLYFLAKE_KEY_TEXT, 0, "a\0c", 3};
  static char megabyte[1000001];
  memset(megabyte, 'k', sizeof megabyte - 1);
  CHECK_NUMBER(1, next(inbox, empty));
  CHECK_NUMBER(1, next(inbox, with_nul));
  CHECK_NUMBER(1, next(inbox, with_other));
  CHECK_NUMBER(2, next(inbox, with_nul));
  CHECK_NUMBER(1, next(inbox, text_key(megabyte)));
  CHECK_NUMBER(2, next(inbox, text_key(megabyte)));

  begin("sequences", "give a number for each of many keys, in their order");
  const polyflake_key keys[] = {bob, alice, bob, int_key(5), text_key("carol"), bob};
  static const uint64_t wanted[] = {4, 5, 5, 3, 1, 6};
  CHECK_STATUS(POLYFLAKE_OK, polyflake_sequences_next_ids(inbox, keys, 6, many, NULL));
  for (size_t n = 0; n < 6; n++) {
    CHECK_NUMBER(wanted[n], many[n]);
  }
  CHECK_STATUS(POLYFLAKE_OK, polyflake_sequences_next_ids(inbox, NULL, 0, NULL, NULL));

  begin("sequences", "of one name are one");
  polyflake_sequences *same = opened("inbox", NULL), *other = opened("outbox", NULL);
  CHECK_NUMBER(6, next(same, alice));
  CHECK_NUMBER(7, next(inbox, alice));
  CHECK_NUMBER(1, next(other, alice));
  close_and_free(other);
  close_and_free(same);
  CHECK_NUMBER(8, next(inbox, alice));

  begin("sequences", "tell what they count");
  polyflake_sequences_counts counts = counts_of(inbox);
  CHECK_NUMBER(13, counts.keys);
  CHECK_NUMBER(0, counts.evicted);
  CHECK(counts.moves >= 1 && counts.moves < 1000);
  CHECK(counts.waits < 1000);
  CHECK(counts.time_left_ms > 0 && counts.time_left_ms <= 30000);
  close_and_free(inbox);

  begin("sequences", "go on after close");
  inbox = opened("inbox", NULL);
  CHECK_NUMBER(9, next(inbox, alice));
  /* The store knows how far bob's section has counted, but not how far bob has. */
  CHECK(next(inbox, bob) >= 7);
  close_and_free(inbox);

  begin("sequences", "that are freed keep what they counted for the next ones");
  inbox = opened("freed", NULL);
  for (uint64_t n = 1; n <= 20; n++) {
    CHECK_NUMBER(n, next(inbox, alice));
    polyflake_sequences_free(inbox);
    inbox = opened("freed", NULL);
  }
  close_and_free(inbox);
}

static void few_keys(void) {
  begin("sequences", "let keys leave where there are too many, and repeat nothing");
  static const char *const small[] = {"sections", "1", "max_keys", "2", NULL};
  polyflake_sequences *sequences = opened("few", small);
  uint64_t last[5] = {0, 0, 0, 0, 0};
  for (size_t n = 0; n < 100; n++) {
    uint64_t number = next(sequences, uint_key(n * n % 5));
    CHECK(number > last[n * n % 5]);
    last[n * n % 5] = number;
  }
  polyflake_sequences_counts counts = counts_of(sequences);
  CHECK(counts.keys <= 2);
  CHECK(counts.evicted > 0);
  close_and_free(sequences);
}

static void without_waiting(void) {
  begin("sequences", "say that the bound is reached where they must not wait");
  static const char *const one_by_one[] = {"sections", "1", "step", "1", NULL};
  polyflake_sequences *sequences = opened("near", one_by_one);
  const polyflake_key key = text_key("alice");
  uint64_t last = 0, number = 0;
  polyflake_detail detail = fresh_detail();
  polyflake_status status = POLYFLAKE_OK;
  /* Takes numbers until the store falls behind. */
  while ((status = polyflake_sequences_try_next_id(sequences, &key, &number, &detail)) == POLYFLAKE_OK) {
    CHECK_NUMBER(last + 1, number);
    last = number;
  }
  CHECK_STATUS(POLYFLAKE_COUNTER_UNAVAILABLE, status);
  CHECK(strncmp(detail.message, "counter_unavailable: ", 21) == 0);
  CHECK_NUMBER(last, number);
  for (uint64_t n = 1; n <= 20; n++) {
    CHECK_NUMBER(last + n, next(sequences, key));
  }
  CHECK(counts_of(sequences).moves > 1);
  close_and_free(sequences);
}

static void closed(void) {
  begin("sequences", "that are closed say so");
  const polyflake_key key = text_key("alice");
  uint64_t number = SENTINEL_ID;
  polyflake_sequences_counts counts;
  fill_with_sentinel(&counts, sizeof counts);
  counts.size = sizeof counts;
  polyflake_sequences *sequences = opened("closed", NULL);
  CHECK_NUMBER(1, next(sequences, key));
  polyflake_sequences_close(sequences);
  polyflake_sequences_close(sequences);
  CHECK_STATUS(POLYFLAKE_CLOSED, polyflake_sequences_next_id(sequences, &key, &number, NULL));
  CHECK_STATUS(POLYFLAKE_CLOSED, polyflake_sequences_try_next_id(sequences, &key, &number, NULL));
  CHECK_STATUS(POLYFLAKE_CLOSED, polyflake_sequences_next_ids(sequences, &key, 1, &number, NULL));
  CHECK_STATUS(POLYFLAKE_CLOSED, polyflake_sequences_next_ids(sequences, NULL, 0, NULL, NULL));
  CHECK_STATUS(POLYFLAKE_CLOSED, polyflake_sequences_stats(sequences, &counts, NULL));
  CHECK_TEXT("closed", polyflake_sequences_name(sequences));
  CHECK_NUMBER(SENTINEL_ID, number);
  CHECK(is_sentinel((char *)&counts + sizeof counts.size, sizeof counts - sizeof counts.size));
  polyflake_sequences_free(sequences);
}

static void misused(void) {
  polyflake_sequences *sequences = opened("misused", NULL);
  polyflake_options *options = polyflake_options_new();
  polyflake_sequences_counts counts;
  const polyflake_key key = text_key("alice");
  uint64_t number = SENTINEL_ID;
#define CHECK_NULL(what, call)                                                                               \
  do {                                                                                                       \
    polyflake_detail detail = fresh_detail();                                                                \
    begin("NULL, with sequences", #call);                                                                    \
    CHECK_STATUS(POLYFLAKE_INVALID_OPTION, call);                                                            \
    CHECK(strstr(detail.message, what " is NULL") != NULL);                                                  \
  } while (0)
  CHECK_NULL("sequences", polyflake_sequences_open(options, NULL, &detail));
  CHECK_NULL("key", polyflake_sequences_next_id(sequences, NULL, &number, &detail));
  CHECK_NULL("number", polyflake_sequences_next_id(sequences, &key, NULL, &detail));
  CHECK_NULL("key", polyflake_sequences_try_next_id(sequences, NULL, &number, &detail));
  CHECK_NULL("number", polyflake_sequences_try_next_id(sequences, &key, NULL, &detail));
  CHECK_NULL("keys", polyflake_sequences_next_ids(sequences, NULL, 1, &number, &detail));
  CHECK_NULL("numbers", polyflake_sequences_next_ids(sequences, &key, 1, NULL, &detail));
  CHECK_NULL("struct", polyflake_sequences_stats(sequences, NULL, &detail));
  polyflake_options_free(options);

  const struct {
    const char *says;
    polyflake_key key;
  } wrong[] = {
      {"text is NULL", {POLYFLAKE_KEY_TEXT, 0, NULL, 0}},
      {"text is NULL", {POLYFLAKE_KEY_TEXT, 0, NULL, 5}},
      {"not UTF-8", {POLYFLAKE_KEY_TEXT, 0, "al\xff", 3}},
      {"not UTF-8", {POLYFLAKE_KEY_TEXT, 0, "\xc3\xa9", 1}},
      {"length", {POLYFLAKE_KEY_TEXT, 0, "alice", SIZE_MAX}},
      {"kind", {3, 5, "alice", 5}},
      {"kind", {-1, 5, "alice", 5}},
      {"kind", {INT32_MAX, 5, "alice", 5}},
  };
  for (size_t n = 0; n < sizeof wrong / sizeof *wrong; n++) {
    uint64_t two[] = {SENTINEL_ID, SENTINEL_ID};
    const polyflake_key keys[] = {key, wrong[n].key};
    polyflake_detail detail = fresh_detail();
    begin("sequences, keys that cannot be", wrong[n].says);
    CHECK_STATUS(
        POLYFLAKE_INVALID_OPTION, polyflake_sequences_next_id(sequences, &keys[1], &number, &detail)
    );
    CHECK(strstr(detail.message, wrong[n].says) != NULL);
    CHECK_STATUS(
        POLYFLAKE_INVALID_OPTION, polyflake_sequences_try_next_id(sequences, &keys[1], &number, NULL)
    );
    CHECK_STATUS(POLYFLAKE_INVALID_OPTION, polyflake_sequences_next_ids(sequences, keys, 2, two, NULL));
    CHECK(two[0] == SENTINEL_ID && two[1] == SENTINEL_ID);
  }

  begin("sequences", "check sizes");
  CHECK_STATUS(
      POLYFLAKE_INVALID_OPTION, polyflake_sequences_next_ids(sequences, &key, SIZE_MAX / 8, &number, NULL)
  );
  CHECK_STATUS(
      POLYFLAKE_INVALID_OPTION, polyflake_sequences_next_ids(sequences, &key, SIZE_MAX, &number, NULL)
  );
  static const size_t sizes[] = {0, sizeof(size_t), sizeof counts - sizeof(uint64_t), sizeof counts - 1};
  for (size_t n = 0; n < sizeof sizes / sizeof *sizes; n++) {
    fill_with_sentinel(&counts, sizeof counts);
    counts.size = sizes[n];
    CHECK_STATUS(POLYFLAKE_INVALID_OPTION, polyflake_sequences_stats(sequences, &counts, NULL));
    CHECK(is_sentinel((char *)&counts + sizeof counts.size, sizeof counts - sizeof counts.size));
  }
  begin("sequences", "failed calls took no number");
  CHECK_NUMBER(SENTINEL_ID, number);
  CHECK_NUMBER(1, next(sequences, key));
  close_and_free(sequences);
}

static void wrong_options(void) {
  static char long_name[1001];
  memset(long_name, 'n', sizeof long_name - 1);
  const struct {
    const char *sequences, *option, *value, *says;
  } wrong[] = {
      {"wrong", "sections", "0", "sections is 0"},
      {"wrong", "sections", "16385", "sections is 16385"},
      {"wrong", "step", "0", "step is 0"},
      {"wrong", "step", "many", "step is "},
      {"wrong", "max_keys", "0", "max_keys is 0"},
      {"wrong", "max_wait_ms", "-1", "max_wait_ms is -1"},
      {"wrong", "start", "7", "there is no option"},
      {"wrong", "store", "sqlite:///tmp/other.db", "store is given twice"},
      {"", NULL, NULL, "0 characters"},
      {long_name, NULL, NULL, "1000 characters"},
      {"a\nb", NULL, NULL, "control character"},
      {"\xff", NULL, NULL, "not UTF-8"},
      {"wrong", "step", "\xff", "not UTF-8"},
      {"wrong", "\xff", "1", "there is no option"},
      {"wrong", "redis://user:secret@host/0", "store", "there is no option `redis://…`"},
      {"wrong", "step", "redis://user:secret@host/0", "step is redis://…;"},
  };
  for (size_t n = 0; n < sizeof wrong / sizeof *wrong; n++) {
    polyflake_sequences *none = NULL;
    polyflake_detail detail = fresh_detail();
    const char *const pairs[] = {"store", address, wrong[n].option, wrong[n].value, NULL};
    begin("sequences, wrong options", wrong[n].says);
    CHECK_STATUS(POLYFLAKE_INVALID_OPTION, open_with(&none, &detail, wrong[n].sequences, pairs));
    CHECK(none == NULL);
    CHECK(strncmp(detail.message, "invalid_option: ", 16) == 0);
    if (!strstr(detail.message, wrong[n].says)) {
      CHECK_TEXT(wrong[n].says, detail.message);
    }
  }
  polyflake_sequences *none = NULL;
  polyflake_detail detail = fresh_detail();
  static const char *const nothing[] = {NULL}, *const gopher[] = {"store", "gopher://host/0", NULL};
  begin("sequences, wrong options", "no store, one that is none, and no name");
  CHECK_STATUS(POLYFLAKE_INVALID_OPTION, open_with(&none, &detail, "wrong", nothing));
  CHECK(strstr(detail.message, "store is missing") != NULL);
  CHECK_STATUS(POLYFLAKE_INVALID_OPTION, open_with(&none, &detail, "wrong", gopher));
  CHECK(strstr(detail.message, "store: ") != NULL);
  polyflake_options *options = polyflake_options_new();
  CHECK_STATUS(POLYFLAKE_OK, polyflake_options_set(options, "store", address, NULL));
  CHECK_STATUS(POLYFLAKE_INVALID_OPTION, polyflake_sequences_open(options, &none, NULL));
  CHECK_STATUS(POLYFLAKE_OK, polyflake_options_set_bytes(options, "name", "a\0b", 3, NULL));
  CHECK_STATUS(POLYFLAKE_INVALID_OPTION, polyflake_sequences_open(options, &none, &detail));
  CHECK(strstr(detail.message, "control character") != NULL);
  polyflake_options_free(options);

  begin("sequences, wrong options", "other ones than this process uses, or the store has");
  static const char *const ten[] = {"sections", "10", NULL};
  const char *const other_step[] = {"store", address, "sections", "10", "step", "20", NULL},
                    *const other_sections[] = {"store", address, "sections", "11", NULL};
  polyflake_sequences *sequences = opened("ten", ten);
  CHECK_STATUS(POLYFLAKE_INVALID_OPTION, open_with(&none, &detail, "ten", other_step));
  CHECK(strstr(detail.message, "step=10000") != NULL && strstr(detail.message, "step=20") != NULL);
  close_and_free(sequences);
  CHECK_STATUS(POLYFLAKE_INVALID_OPTION, open_with(&none, &detail, "ten", other_sections));
  CHECK(strstr(detail.message, "10") != NULL && strstr(detail.message, "11") != NULL);

  begin("sequences, wrong options", "an address where nobody answers, without its secret");
  static const char *const nowhere[] = {"store", "redis://u:geheim@127.0.0.1:1/0?ttl=3s&wait=0s", NULL};
  CHECK_STATUS(POLYFLAKE_LEASE_UNAVAILABLE, open_with(&none, &detail, "wrong", nowhere));
  CHECK(strstr(detail.message, "127.0.0.1:1") != NULL);
  CHECK(strstr(detail.message, "geheim") == NULL);
  CHECK(none == NULL);
}

enum { THREADS = 4, ROUNDS = 2000 };

/* The numbers a thread received, alternately from batches and single calls, for two keys that all threads
 * share. */
struct taken {
  uint64_t of_first[ROUNDS], of_second[ROUNDS];
};

static void *take_many(void *user) {
  struct taken *taken = user;
  const polyflake_key keys[] = {text_key("alice"), int_key(7)};
  polyflake_sequences *own = opened("threads", NULL);
  for (size_t n = 0; n < ROUNDS; n++) {
    uint64_t two[2];
    if (n % 2 == 0 ? polyflake_sequences_next_ids(own, keys, 2, two, NULL) != POLYFLAKE_OK
                   : polyflake_sequences_next_id(own, &keys[0], &two[0], NULL) != POLYFLAKE_OK ||
                         polyflake_sequences_next_id(own, &keys[1], &two[1], NULL) != POLYFLAKE_OK) {
      give_up("no number");
    }
    taken->of_first[n] = two[0];
    taken->of_second[n] = two[1];
    if (n > 0 && (two[0] <= taken->of_first[n - 1] || two[1] <= taken->of_second[n - 1])) {
      give_up("not increasing");
    }
  }
  close_and_free(own);
  return NULL;
}

static void many_threads(void) {
  begin("sequences", "give threads increasing numbers, each once");
  static struct taken taken[THREADS];
  static uint64_t first[THREADS * ROUNDS], second[THREADS * ROUNDS];
  /* Keeps the lease. Otherwise, a thread that exits before another starts would give it back, and numbers
   * would be skipped. */
  polyflake_sequences *kept = opened("threads", NULL);
  pthread_t tasks[THREADS];
  for (size_t n = 0; n < THREADS; n++) {
    if (pthread_create(&tasks[n], NULL, take_many, &taken[n]) != 0) {
      give_up("no thread");
    }
  }
  for (size_t n = 0; n < THREADS; n++) {
    pthread_join(tasks[n], NULL);
    memcpy(first + n * ROUNDS, taken[n].of_first, sizeof taken[n].of_first);
    memcpy(second + n * ROUNDS, taken[n].of_second, sizeof taken[n].of_second);
  }
  CHECK(!has_repeats(first, THREADS * ROUNDS));
  CHECK(!has_repeats(second, THREADS * ROUNDS));
  CHECK_NUMBER(THREADS * ROUNDS + 1, next(kept, text_key("alice")));
  CHECK_NUMBER(THREADS * ROUNDS + 1, next(kept, int_key(7)));
  close_and_free(kept);
}

static void forks(void) {
  begin("sequences", "after a fork, are the parent's");
  const polyflake_key key = text_key("alice");
  int status = -1;
  polyflake_sequences *sequences = opened("forked", NULL);
  CHECK_NUMBER(1, next(sequences, key));
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    uint64_t number = SENTINEL_ID;
    polyflake_sequences_counts counts;
    counts.size = sizeof counts;
    int is_forked = polyflake_sequences_next_id(sequences, &key, &number, NULL) == POLYFLAKE_FORKED &&
                    polyflake_sequences_try_next_id(sequences, &key, &number, NULL) == POLYFLAKE_FORKED &&
                    polyflake_sequences_next_ids(sequences, &key, 1, &number, NULL) == POLYFLAKE_FORKED &&
                    polyflake_sequences_stats(sequences, &counts, NULL) == POLYFLAKE_FORKED &&
                    number == SENTINEL_ID;
    close_and_free(sequences);
    _exit(is_forked ? 0 : 1);
  }
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK_NUMBER(0, (uint64_t)WEXITSTATUS(status));
  CHECK_NUMBER(2, next(sequences, key));
  close_and_free(sequences);
}

/* The other process's task: opens the same sequences, prints the error or the number it received, and closes
 * nothing. */
static int other_process(const char *store) {
  polyflake_sequences *sequences = NULL;
  polyflake_detail detail = fresh_detail();
  const char *const pairs[] = {"store", store, NULL};
  const polyflake_key key = text_key("alice");
  uint64_t number = 0;
  polyflake_status status = open_with(&sequences, &detail, "owned", pairs);
  if (status == POLYFLAKE_OK) {
    status = polyflake_sequences_next_id(sequences, &key, &number, &detail);
  }
  printf("%d %" PRIu64 " %s\n", (int)status, number, status == POLYFLAKE_OK ? "" : detail.message);
  return 0;
}

static void run_other(char *said, size_t size) {
  static char store[ADDRESS + 64];
  int ends[2], status = -1;
  snprintf(store, sizeof store, "%s?wait=1s&label=second", address);
  fflush(stdout);
  if (pipe(ends) != 0) {
    give_up("no pipe");
  }
  pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    execl(program, program, store, (char *)NULL);
    _exit(127);
  }
  close(ends[1]);
  FILE *from = fdopen(ends[0], "r");
  if (!from || !fgets(said, (int)size, from)) {
    give_up("the other process said nothing");
  }
  fclose(from);
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void two_processes(void) {
  begin("sequences", "are one process's at a time, which another is told");
  char said[600], store[ADDRESS + 64];
  polyflake_sequences *sequences = NULL;
  polyflake_detail detail = fresh_detail();
  const polyflake_key key = text_key("alice");
  snprintf(store, sizeof store, "%s?wait=1s&label=first", address);
  const char *const pairs[] = {"store", store, NULL};
  if (open_with(&sequences, &detail, "owned", pairs) != POLYFLAKE_OK) {
    give_up(detail.message);
  }
  CHECK_NUMBER(1, next(sequences, key));
  run_other(said, sizeof said);
  CHECK(strncmp(said, "12 0 lease_unavailable: ", 24) == 0);
  CHECK(strstr(said, "`first`") != NULL);
  CHECK_NUMBER(2, next(sequences, key));
  close_and_free(sequences);

  begin("sequences", "are another's once they are closed, and go on");
  run_other(said, sizeof said);
  CHECK(strncmp(said, "0 3 ", 4) == 0);
}

int main(int argc, char **argv) {
  program = argv[0];
  if (argc == 2) {
    return other_process(argv[1]);
  }
  if (!mkdtemp(folder)) {
    give_up("no folder");
  }
  atexit(clean_up);
  snprintf(address, sizeof address, "sqlite://%s/numbers.db", folder);
  numbers();
  few_keys();
  without_waiting();
  closed();
  misused();
  wrong_options();
  many_threads();
  forks();
  two_processes();
  return finish(49);
}
