// Evaluates on the workers. Prints the number of bytes that the coordinator
// sends over gRPC meanwhile, divided by the size of the batches.
#include <cstdint>
#include <iostream>

#include "absl/status/status.h"
#include "common/core/system/metrics.h"
#include "muster.h"

namespace muster {
namespace {

constexpr int64_t kExampleCount = 4096;
constexpr int64_t kFeatureCount = 1024;
constexpr int64_t kBatchSize = 256;  // 1 MiB.
constexpr int64_t kBytes = kExampleCount * kFeatureCount * sizeof(float);

absl::Status Evaluate(Task& task) {
  ASSIGN_OR_RETURN(auto strategy, ParameterServerStrategy::Create(task));
  Model model = Sequential({Dense(2)});
  RETURN_IF_ERROR(model.Compile(
      *strategy, {.loss = SparseCategoricalCrossentropy({.from_logits = true}),
                  .metrics = {SparseCategoricalAccuracy()}}));
  const Dataset data = Synthetic({.example_count = kExampleCount,
                                  .feature_count = kFeatureCount,
                                  .class_count = 2})
                           .Batch(kBatchSize);
  Counter* const sent =
      GetCounter({"muster_rpc_bytes_sent_total",
                  "Bytes of messages that were given to gRPC to be sent."});
  // The first evaluation also sends the function, and offers the shared memory.
  RETURN_IF_ERROR(model.Evaluate(data).status());
  const int64_t before = sent->value();
  RETURN_IF_ERROR(model.Evaluate(data).status());
  std::cout << "sent over gRPC, per byte of the batches: "
            << static_cast<double>(sent->value() - before) / kBytes
            << std::endl;
  return absl::OkStatus();
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  return muster::RunTask(argc, argv, muster::Evaluate);
}
