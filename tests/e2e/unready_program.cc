// Reads its data before it creates a strategy, and ends if the data are
// missing.
//
//   --set data=FILE  the file

#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "muster.h"

namespace muster {
namespace {

absl::Status Train(Task& task) {
  ASSIGN_OR_RETURN(const std::string path, task.flag("data"));
  if (!std::ifstream(path)) {
    return absl::NotFoundError(absl::StrCat("cannot read ", path));
  }
  if (task.options().config.HasParameterServers()) {
    return ParameterServerStrategy::Create(task).status();
  }
  return MultiWorkerMirroredStrategy::Create(
             task,
             {.devices = {"cpu:0", "cpu:1"}, .deterministic_micro_batches = 4})
      .status();
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  return muster::RunTask(argc, argv, muster::Train,
                         {{"data", "/dev/null", "A file that must exist."}});
}
