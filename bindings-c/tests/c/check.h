/* What the C tests share: tests that count, and checks that say where they failed. */
#ifndef CHECK_H
#define CHECK_H

#include <polyflake.h>
#include <stddef.h>
#include <stdint.h>

/* Begins the test that the next checks belong to, and ends the one before. */
void begin(const char *section, const char *name);

/* Takes back the test just begun: it counts as neither passed nor failed. */
void pass_over(void);

/* How many tests were passed over. */
unsigned long passed_over(void);

/* Ends the last test and prints "N passed, N failed"; 0 where none failed and at least floor passed. */
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

/* A detail whose bytes are all known, so that what is written into it shows. */
polyflake_detail fresh_detail(void);

/* Whether a detail is still as fresh_detail gave it. */
int is_untouched(const polyflake_detail *detail);

/* Whether every byte of something is still 0x5a, as fill_with_sentinel left it. */
void fill_with_sentinel(void *start, size_t size);
int is_sentinel(const void *start, size_t size);
#define SENTINEL_ID UINT64_C(0x5a5a5a5a5a5a5a5a)

/* Whether IDs, sorted in place, hold one twice. */
int has_repeats(uint64_t *ids, size_t n);

/* Ends the program where the test itself cannot go on. */
void give_up(const char *why);

#endif
