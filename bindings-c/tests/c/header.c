/* Includes the header twice, in two translation units of one program (the other is header_other.c), as C and
 * as C++. */
#include <polyflake.h>

#include <polyflake.h>

unsigned int abi_version_seen_by_the_other(void);

int main(void) {
  int same = POLYFLAKE_ABI_VERSION == polyflake_abi_version() &&
             POLYFLAKE_ABI_VERSION == abi_version_seen_by_the_other();
  return same ? 0 : 1;
}
