// All programs in one executable, so that the image contains the code that they
// share only once. argv[0] selects the program.

#include <cstdio>
#include <string_view>

#include "common/net/process/exit_code.h"
#include "coordinator/coordinator_program.h"
#include "deploy/launch/launch_program.h"
#include "deploy/musterctl/musterctl_program.h"
#include "ps/ps_program.h"
#include "worker/worker_program.h"

namespace {

struct Program {
  std::string_view name;
  int (*main)(int argc, char** argv);
};

constexpr Program kPrograms[] = {{"coordinator", muster::CoordinatorMain},
                                 {"launch", muster::LaunchMain},
                                 {"musterctl", muster::MusterctlMain},
                                 {"ps", muster::ParameterServerMain},
                                 {"worker", muster::WorkerMain}};

}  // namespace

int main(int argc, char** argv) {
  const std::string_view path = argc > 0 ? argv[0] : "";
  const std::string_view name = path.substr(path.rfind('/') + 1);
  for (const Program& program : kPrograms) {
    if (program.name == name) return program.main(argc, argv);
  }
  std::fprintf(stderr,
               "muster: started as \"%.*s\"; expected the name coordinator, "
               "launch, musterctl, ps or worker\n",
               static_cast<int>(path.size()), path.data());
  return static_cast<int>(muster::ExitCode::kUsage);
}
