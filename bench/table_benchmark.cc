// Throughput of tables with strings: reading CSV files, and looking up words in
// a vocabulary. table_benchmark.py compares both with tf.data.
//
//   table_benchmark csv FILE SECONDS
//     Reads columns x0 to x5 of numbers, s0 to s3 of strings, and the label y.
//   table_benchmark lookup WORDS VOCABULARY SECONDS
//     Looks up words in a vocabulary. Both files have one word per line.
//
// Prints one line of JSON.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "bench/or_die.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/string_ops.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/dataset/files/sources.h"
#include "common/io/storage/disk.h"

namespace muster {
namespace {

constexpr int64_t kBatchSize = 256;
constexpr int64_t kLookupBatchSize = 4096;
constexpr int kWarmUpBatches = 20;

Dataset Table(const std::string& path) {
  CsvOptions options{.label_column = "y", .pack_features = false};
  for (int i = 0; i < 6; ++i) {
    options.columns.push_back({.name = absl::StrCat("x", i)});
  }
  for (int i = 0; i < 4; ++i) {
    options.columns.push_back(
        {.name = absl::StrCat("s", i), .dtype = DType::kString});
  }
  return Csv(path, options).Batch(kBatchSize).Prefetch(2);
}

Tensor Lines(const std::string& path) {
  std::vector<std::string> lines =
      absl::StrSplit(OrDie(ReadFile(Disk::Real(), path, int64_t{1} << 30)),
                     '\n', absl::SkipEmpty());
  Tensor tensor(DType::kString, Shape({static_cast<int64_t>(lines.size())}));
  std::move(lines.begin(), lines.end(),
            tensor.mutable_flat<std::string>().begin());
  return tensor;
}

Dataset Lookup(const std::string& words, const std::string& vocabulary) {
  const LookupTable table{.vocabulary = Lines(vocabulary)};
  return Dataset::FromTensorSlices({Lines(words)})
      .Batch(kLookupBatchSize, {.drop_remainder = true})
      .Cache()
      .Repeat()
      .Map([table](absl::Span<const Value> batch) {
        return std::vector<Value>{LookupIndex(batch[0], table)};
      })
      .Prefetch(2);
}

// Calls `read` for `seconds`, and prints the rows that it returned.
void Measure(double seconds, absl::FunctionRef<int64_t()> read) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  int64_t row_count = 0;
  double passed = 0;
  while (passed < seconds) {
    row_count += read();
    passed = std::chrono::duration<double>(Clock::now() - begin).count();
  }
  std::printf("{\"rows_per_s\": %.0f}\n",
              static_cast<double>(row_count) / passed);
}

// Reads the whole file with a new dataset. A second pass over the same dataset
// would use the parsed table in memory.
int64_t ReadTable(const std::string& path) {
  const auto iterator = OrDie(Table(path).MakeIterator());
  Element batch;
  int64_t row_count = 0;
  while (OrDie(iterator->Next(&batch))) row_count += batch[0].shape().dim(0);
  return row_count;
}

void MeasureLookups(const Dataset& dataset, double seconds) {
  const auto iterator = OrDie(dataset.MakeIterator());
  Element batch;
  const auto next = [&] {
    if (!OrDie(iterator->Next(&batch))) {
      OkOrDie(absl::OutOfRangeError("the dataset has ended"));
    }
    return batch[0].shape().dim(0);
  };
  for (int i = 0; i < kWarmUpBatches; ++i) next();
  Measure(seconds, next);
}

int Main(const std::vector<std::string>& arguments) {
  const std::string mode = arguments.size() > 1 ? arguments[1] : "";
  double seconds = 0;
  if (absl::SimpleAtod(arguments.back(), &seconds)) {
    if (mode == "csv" && arguments.size() == 4) {
      ReadTable(arguments[2]);  // Warms up.
      Measure(seconds, [&] { return ReadTable(arguments[2]); });
      return 0;
    }
    if (mode == "lookup" && arguments.size() == 5) {
      MeasureLookups(Lookup(arguments[2], arguments[3]), seconds);
      return 0;
    }
  }
  std::fprintf(stderr,
               "usage: table_benchmark csv FILE SECONDS | lookup WORDS "
               "VOCABULARY SECONDS\n");
  return 2;
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  return muster::Main(std::vector<std::string>(argv, argv + argc));
}
