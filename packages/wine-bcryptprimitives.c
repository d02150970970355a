/* bcryptprimitives.dll for Wine before 8.11, which has none: the one function
 * that Rust's standard library takes from it. Only for tests. */
#include <stddef.h>

__declspec(dllimport) unsigned char SystemFunction036(void *, unsigned long);

__declspec(dllexport) int ProcessPrng(unsigned char *data, size_t n) {
  return SystemFunction036(data, (unsigned long)n);
}
