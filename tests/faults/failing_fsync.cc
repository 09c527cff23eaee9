// A library to preload. Once the file exists that FAILING_FSYNC_FILE names, the
// disk of the process fails whenever it is to write what it has taken.
#include <dlfcn.h>
#include <errno.h>
#include <unistd.h>

#include <cstdlib>

extern "C" int fsync(int descriptor) {
  using Fsync = int (*)(int);
  static const auto next = reinterpret_cast<Fsync>(dlsym(RTLD_NEXT, "fsync"));
  const char* const file = getenv("FAILING_FSYNC_FILE");
  if (file != nullptr && access(file, F_OK) == 0) {
    errno = EIO;
    return -1;
  }
  return next(descriptor);
}
