/* The other translation unit of header.c. */
#include <polyflake.h>

unsigned int abi_version_seen_by_the_other(void);

unsigned int abi_version_seen_by_the_other(void) {
  return polyflake_abi_version();
}
