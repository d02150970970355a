/* Shared by the C tests. Counts tests, and reports where a check failed. */
#ifndef CHECK_H
#define CHECK_H

#include <polyflake.h>
#include <stddef.h>
#include <stdint.h>

/* Ends the current test and begins another, to which the following checks belong. */
void begin(const char *section, const char *name);

/* Skips the current test, which then counts as neither passed nor failed. */
void skip(void);

/* Returns how many tests were skipped. */
unsigned long skipped(void);

/* Ends the last test and prints "N passed, N failed". Returns 0 if none failed and at least floor passed. */
int finish(unsigned long floor);

#define CHECK(condition) check((condition) != 0, #condition, __FILE__, __LINE__)
#define CHECK_STATUS(expected, status) check_status((expected), (status), #status, __FILE__, __LINE__)
#define CHECK_NUMBER(expected, number) check_number((expected), (number), #number, __FILE__, __LINE__)
#define CHECK_TEXT(expected, text) check_text((expected), (text), #text, __FILE__, __LINE__)

void check(int ok, const char *what, const char *file, int line);
void check_status(
    polyflake_status expected, polyflake_status status, const char *what, const char *file, int line
);
void check_number(uint64_t expected, uint64_t number, const char *what, const char *file, int line);
void check_text(const char *expected, const char *text, const char *what, const char *file, int line);

/* Returns a detail filled with a known byte, so that any write to it is visible. */
polyflake_detail fresh_detail(void);

/* Returns whether a detail is unchanged since fresh_detail returned it. */
int is_untouched(const polyflake_detail *detail);

/* Fills bytes with 0x5a. is_sentinel returns whether all of them still have this value. */
void fill_with_sentinel(void *start, size_t size);
int is_sentinel(const void *start, size_t size);
#define SENTINEL_ID UINT64_C(0x5a5a5a5a5a5a5a5a)

/* Sorts the IDs and returns whether any is repeated. */
int has_repeats(uint64_t *ids, size_t n);

/* Prints why the test program itself cannot continue, and exits. */
void give_up(const char *why);

#endif
