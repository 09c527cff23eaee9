// `coordinator` and `worker` in one executable. They share nearly all of their
// code, so the image needs it once. It takes the part that argv[0] names.

#include <cstdio>
#include <string_view>

#include "common/net/process/exit_code.h"
#include "coordinator/coordinator_program.h"
#include "worker/worker_program.h"

int main(int argc, char** argv) {
  const std::string_view path = argc > 0 ? argv[0] : "";
  const std::string_view name = path.substr(path.rfind('/') + 1);
  if (name == "coordinator") return muster::CoordinatorMain(argc, argv);
  if (name == "worker") return muster::WorkerMain(argc, argv);
  std::fprintf(stderr,
               "tasks: started as \"%.*s\"; expected the name coordinator or "
               "worker\n",
               static_cast<int>(path.size()), path.data());
  return static_cast<int>(muster::ExitCode::kUsage);
}
