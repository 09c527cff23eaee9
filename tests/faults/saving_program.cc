// Saves a checkpoint after step 1, 2 and so on in the folder that its argument
// names. The weights need several parts of an upload.
#include <cstdint>
#include <iostream>

#include "absl/status/status.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/tensor.h"
#include "common/io/checkpoint/checkpoint_manager.h"
#include "common/io/checkpoint/tensor_bundle_writer.h"

namespace {

constexpr int64_t kWeightCount = 16 << 20;  // 64 MiB.

absl::Status SaveUntilKilled(const char* folder) {
  using muster::CheckpointManager;
  using muster::DType;
  using muster::Tensor;
  using muster::TensorBundleWriter;
  ASSIGN_OR_RETURN(const auto manager,
                   CheckpointManager::Create({.folder = folder}));
  for (int64_t step = 1;; ++step) {
    const Tensor weights = Tensor::Full(DType::kFloat32, {kWeightCount},
                                        static_cast<double>(step));
    RETURN_IF_ERROR(manager
                        ->Save([&](TensorBundleWriter* writer) {
                          return writer->Add("weights", weights);
                        })
                        .status());
    std::cout << "saved " << step << std::endl;
  }
}

}  // namespace

int main(int, char** argv) {
  std::cerr << SaveUntilKilled(argv[1]) << "\n";
  return 1;
}
