#include "check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned long passed, failed, skips;
static int open_test, open_test_failed;
static char open_section[64], open_name[600];

static void end(void) {
  if (open_test && open_test_failed) {
    failed++;
  } else if (open_test) {
    passed++;
  }
  open_test = open_test_failed = 0;
}

void begin(const char *section, const char *name) {
  end();
  open_test = 1;
  snprintf(open_section, sizeof open_section, "%s", section);
  snprintf(open_name, sizeof open_name, "%s", name);
}

void skip(void) {
  open_test = open_test_failed = 0;
  skips++;
}

unsigned long skipped(void) {
  return skips;
}

int finish(unsigned long floor) {
  end();
  if (passed < floor) {
    printf("only %lu tests passed, and there should be at least %lu\n", passed, floor);
    failed++;
  }
  printf("%lu passed, %lu failed\n", passed, failed);
  /* Otherwise, this output would be lost when a sanitizer reports something at exit. */
  fflush(stdout);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

static void fail(const char *file, int line) {
  if (!open_test_failed) {
    printf("FAILED %s: %s\n", open_section, open_name);
  }
  open_test_failed = 1;
  printf("  %s:%d: ", file, line);
}

void check(int ok, const char *what, const char *file, int line) {
  if (!ok) {
    fail(file, line);
    printf("%s\n", what);
  }
}

void check_status(
    polyflake_status expected, polyflake_status status, const char *what, const char *file, int line
) {
  if (expected != status) {
    fail(file, line);
    printf(
        "%s is %d (%s), not %d (%s)\n",
        what,
        (int)status,
        polyflake_status_name(status),
        (int)expected,
        polyflake_status_name(expected)
    );
  }
}

void check_number(uint64_t expected, uint64_t number, const char *what, const char *file, int line) {
  if (expected != number) {
    fail(file, line);
    printf("%s is %" PRIu64 ", not %" PRIu64 "\n", what, number, expected);
  }
}

void check_text(const char *expected, const char *text, const char *what, const char *file, int line) {
  if (strcmp(expected, text) != 0) {
    fail(file, line);
    printf("%s is \"%s\", not \"%s\"\n", what, text, expected);
  }
}

polyflake_detail fresh_detail(void) {
  polyflake_detail detail;
  fill_with_sentinel(&detail, sizeof detail);
  detail.size = sizeof detail;
  return detail;
}

int is_untouched(const polyflake_detail *detail) {
  polyflake_detail fresh = fresh_detail();
  return memcmp(&fresh, detail, sizeof fresh) == 0;
}

void fill_with_sentinel(void *start, size_t size) {
  memset(start, 0x5a, size);
}

int is_sentinel(const void *start, size_t size) {
  const unsigned char *byte = start;
  for (size_t n = 0; n < size; n++) {
    if (byte[n] != 0x5a) {
      return 0;
    }
  }
  return 1;
}

static int by_value(const void *a, const void *b) {
  uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
  return (left > right) - (left < right);
}

int has_repeats(uint64_t *ids, size_t n) {
  qsort(ids, n, sizeof *ids, by_value);
  for (size_t i = 1; i < n; i++) {
    if (ids[i - 1] == ids[i]) {
      return 1;
    }
  }
  return 0;
}

void give_up(const char *why) {
  fprintf(stderr, "the test cannot continue: %s\n", why);
  exit(2);
}
