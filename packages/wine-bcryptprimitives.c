/* bcryptprimitives.dll for Wine before 8.11, which lacks it: the only function
 * that Rust's standard library uses from it. For tests only. */
#include <stddef.h>

__declspec(dllimport) unsigned char SystemFunction036(void *, unsigned long);

__declspec(dllexport) int ProcessPrng(unsigned char *data, size_t n) {
  return SystemFunction036(data, (unsigned long)n);
}
