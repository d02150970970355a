// Preloaded into a process, this records which threads sync a file, by writing
// a line with the thread's ID to the file SYNCS. With SYNC_MS, a sync takes
// that many ms longer.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void note(void) {
  const char *path = getenv("SYNCS");
  int file = path ? open(path, O_WRONLY | O_APPEND | O_CREAT, 0600) : -1;
  if (file < 0 || dprintf(file, "%ld\n", syscall(SYS_gettid)) < 0 ||
      close(file) < 0)
    abort();
  const char *slow = getenv("SYNC_MS");
  long ms = slow ? atol(slow) : 0;
  nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

int msync(void *address, size_t length, int flags) {
  note();
  return (int)syscall(SYS_msync, address, length, flags);
}

int fsync(int file) {
  note();
  return (int)syscall(SYS_fsync, file);
}

int fdatasync(int file) {
  note();
  return (int)syscall(SYS_fdatasync, file);
}
