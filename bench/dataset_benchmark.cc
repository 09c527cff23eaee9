// The time of an input pipeline per batch of 64, compared with copying the same
// number of bytes in order. Budget: 50 us for MNIST, shuffled, from memory.
//
//   bazel run //bench:dataset_benchmark [-- MNIST_DIRECTORY]

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/measure.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/dataset/files/sources.h"

namespace muster {
namespace {

constexpr int64_t kExampleCount = 60'000;
constexpr int64_t kBatchSize = 64;
constexpr int64_t kPixelCount = 784;
constexpr int kWarmUpBatches = 1000;  // Includes the shuffle of an epoch.
constexpr int kBatches = 5000;

void Measure(const char* name, const Dataset& dataset) {
  auto iterator = dataset.MakeIterator();
  if (!iterator.ok()) {
    std::fprintf(stderr, "%s: %s\n", name,
                 iterator.status().ToString().c_str());
    std::exit(1);
  }
  Element batch;
  const auto next = [&] {
    if (!(*iterator)->Next(&batch).value_or(false)) std::exit(1);
  };
  for (int i = 0; i < kWarmUpBatches; ++i) next();
  std::vector<double> micros;
  double sum = 0;
  for (int i = 0; i < kBatches; ++i) {
    micros.push_back(MicrosecondsOf(next));
    sum += micros.back();
  }
  std::printf("%-48s median %7.2f us  mean %7.2f us  %11.0f examples/s\n", name,
              Median(micros), sum / kBatches,
              1e6 * kBatchSize * kBatches / sum);
}

void MeasureCopy() {
  const std::vector<float> from(kBatchSize * kPixelCount, 1.0f);
  std::vector<float> to(from.size());
  std::vector<double> micros;
  for (int i = 0; i < kBatches; ++i) {
    micros.push_back(MicrosecondsOf([&] {
      std::memcpy(to.data(), from.data(), from.size() * sizeof(float));
      __asm__ volatile("" : : "r"(to.data()) : "memory");
    }));
  }
  std::printf("%-48s median %7.2f us\n", "memcpy of one batch, in cache",
              Median(micros));
}

Dataset InMemory(DType dtype) {
  return Dataset::FromTensorSlices(
      {Tensor::Full(dtype, {kExampleCount, kPixelCount}, 1),
       Tensor::Zeros(DType::kInt64, {kExampleCount})});
}

int Main(int argc, char** argv) {
  MeasureCopy();
  const Dataset floats = InMemory(DType::kFloat32);
  Measure("float slices, in order", floats.Repeat().Batch(kBatchSize));
  Measure("float slices, shuffled",
          floats.Shuffle(kExampleCount).Repeat().Batch(kBatchSize));
  Measure("float slices, shuffled, prefetched",
          floats.Shuffle(kExampleCount).Repeat().Batch(kBatchSize).Prefetch(2));
  Measure("float slices through a C++ map, shuffled by 1000",
          floats
              .MapElements([](Element element)
                               -> absl::StatusOr<Element> { return element; },
                           floats.element_types())
              .Shuffle(1000)
              .Repeat()
              .Batch(kBatchSize));
  Measure("synthetic, 20 features", Synthetic({.example_count = kExampleCount})
                                        .Shuffle(1000)
                                        .Repeat()
                                        .Batch(kBatchSize));
  if (argc > 1) {
    const Dataset mnist = Mnist(argv[1], DatasetSplit::kTrain);
    Measure("MNIST files (uint8 scaled to float), shuffled",
            mnist.Shuffle(kExampleCount).Repeat().Batch(kBatchSize));
  }
  return 0;
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) { return muster::Main(argc, argv); }
