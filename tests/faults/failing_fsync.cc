// A library to preload. Once the file that FAILING_FSYNC_FILE names exists,
// every fsync() in the process fails.
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
