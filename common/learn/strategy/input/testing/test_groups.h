#ifndef COMMON_LEARN_STRATEGY_INPUT_TESTING_TEST_GROUPS_H_
#define COMMON_LEARN_STRATEGY_INPUT_TESTING_TEST_GROUPS_H_

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/dataset/testing/test_elements.h"
#include "common/learn/strategy/input/distributed_dataset.h"
#include "common/learn/strategy/input/rebatch.h"
#include "common/learn/strategy/input/replica_batch.h"
#include "gtest/gtest.h"

namespace muster {

// Groups of workers in one thread, and data whose rows tell their numbers.

inline constexpr int kGroupStepCountMax = 1000;

// Batches {int64[?] x, float32[?,2] y} in which row i is {i, {i, -i}}.
inline Dataset Rows(int64_t count) {
  Tensor x(DType::kInt64, {count});
  Tensor y(DType::kFloat32, {count, 2});
  for (int64_t i = 0; i < count; ++i) {
    x.mutable_flat<int64_t>()[i] = i;
    y.mutable_flat<float>()[2 * i] = static_cast<float>(i);
    y.mutable_flat<float>()[2 * i + 1] = static_cast<float>(-i);
  }
  return Dataset::FromTensorSlices({std::move(x), std::move(y)});
}

// `counts[f]` rows in file f, numbered on from file to file; one component.
inline std::vector<std::string> WriteFiles(const std::vector<int64_t>& counts) {
  static int folder = 0;
  ++folder;
  std::vector<std::string> paths;
  int64_t next = 0;
  for (const int64_t count : counts) {
    paths.push_back(absl::StrCat(testing::TempDir(), "/input", folder, "-",
                                 paths.size(), ".csv"));
    std::ofstream file(paths.back());
    file << "x\n";
    for (int64_t i = 0; i < count; ++i) file << next++ << "\n";
  }
  return paths;
}

inline int64_t NumberOf(const Tensor& x, int64_t row) {
  return static_cast<int64_t>(x.ElementAsDouble(row));
}

struct Epoch {
  // The rows of each step, in the order of all replicas.
  std::vector<std::vector<int64_t>> steps;
  // How many of them each replica had.
  std::vector<std::vector<int64_t>> sizes;
  // For each worker, the steps before it said that it was at its end.
  std::vector<int> step_counts;

  std::vector<int64_t> rows() const {
    std::vector<int64_t> all;
    for (const auto& step : steps) {
      all.insert(all.end(), step.begin(), step.end());
    }
    return all;
  }
  std::vector<int64_t> sorted_rows() const {
    std::vector<int64_t> all = rows();
    std::sort(all.begin(), all.end());
    return all;
  }
};

inline void CheckBatch(const DistributedDataset& dataset,
                       const ReplicaBatch& batch) {
  const std::vector<TensorType>& types = dataset.element_types();
  ASSERT_EQ(batch.element.size(), types.size());
  for (size_t c = 0; c < types.size(); ++c) {
    ASSERT_EQ(batch.element[c].dtype(), types[c].dtype);
    ASSERT_TRUE(batch.element[c].shape().IsCompatibleWith(types[c].shape));
    ASSERT_EQ(batch.element[c].shape().dim(0), batch.example_count);
  }
  for (int64_t i = 0; types.size() > 1 && i < batch.example_count; ++i) {
    const int64_t number = NumberOf(batch.element[0], i);
    ASSERT_EQ(batch.element[1].flat<float>()[2 * i], number);
    ASSERT_EQ(batch.element[1].flat<float>()[2 * i + 1], -number);
  }
}

// Rows of a step have places of their own.
inline void CheckPlaces(std::vector<RowRange> places) {
  std::sort(places.begin(), places.end(), [](RowRange a, RowRange b) {
    return a.begin < b.begin || (a.begin == b.begin && a.end < b.end);
  });
  int64_t end = 0;
  for (const RowRange& place : places) {
    if (place.size() == 0) continue;
    ASSERT_GE(place.begin, end);
    end = place.end;
  }
}

// All workers go through an epoch in step, until none has anything left.
inline Epoch RunGroup(const std::vector<DistributedDataset>& workers,
                      int64_t epoch = 0,
                      int step_count_max = kGroupStepCountMax) {
  Epoch result;
  std::vector<std::unique_ptr<DistributedIterator>> iterators;
  std::vector<std::vector<ReplicaBatch>> batches(workers.size());
  for (const DistributedDataset& worker : workers) {
    auto iterator = worker.MakeIterator(epoch);
    EXPECT_OK(iterator);
    if (!iterator.ok()) return result;
    iterators.push_back(*std::move(iterator));
  }
  result.step_counts.resize(workers.size(), -1);
  for (int step = 0; step < step_count_max; ++step) {
    std::vector<int64_t> rows;
    std::vector<int64_t> sizes;
    std::vector<RowRange> places;
    bool has_more = false;
    for (size_t w = 0; w < workers.size(); ++w) {
      const absl::StatusOr<bool> more = iterators[w]->Next(&batches[w]);
      EXPECT_OK(more);
      if (!more.ok()) return result;
      has_more |= *more;
      if (!*more && result.step_counts[w] < 0) result.step_counts[w] = step;
      EXPECT_TRUE(*more == (result.step_counts[w] < 0));
      EXPECT_EQ(batches[w].size(), workers[w].placement().replicas_per_worker);
      for (const ReplicaBatch& batch : batches[w]) {
        if (workers[w].placement().replica_count() > 1 || *more) {
          CheckBatch(workers[w], batch);
        }
        EXPECT_TRUE(*more || batch.example_count == 0);
        sizes.push_back(batch.example_count);
        places.push_back(
            {batch.example_offset, batch.example_offset + batch.example_count});
        for (int64_t i = 0; i < batch.example_count; ++i) {
          rows.push_back(NumberOf(batch.element[0], i));
        }
      }
    }
    CheckPlaces(std::move(places));
    if (!has_more) return result;
    result.steps.push_back(std::move(rows));
    result.sizes.push_back(std::move(sizes));
  }
  return result;
}

inline std::vector<DistributedDataset> Distribute(const Dataset& dataset,
                                                  int worker_count,
                                                  int replicas,
                                                  const InputOptions& options) {
  std::vector<DistributedDataset> workers;
  for (int w = 0; w < worker_count; ++w) {
    auto worker = DistributeDataset(dataset,
                                    {.worker_count = worker_count,
                                     .worker_index = w,
                                     .replicas_per_worker = replicas},
                                    options);
    EXPECT_OK(worker);
    if (!worker.ok()) return {};
    workers.push_back(*std::move(worker));
  }
  return workers;
}

inline absl::Status DistributeError(const Dataset& dataset, int worker_count,
                                    const InputOptions& options,
                                    int replicas = 1) {
  return DistributeDataset(
             dataset,
             {.worker_count = worker_count, .replicas_per_worker = replicas},
             options)
      .status();
}

inline std::vector<int64_t> CountTo(int64_t count) {
  std::vector<int64_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

// Batches as one process would see them.
inline std::vector<std::vector<int64_t>> BatchesOf(const Dataset& dataset,
                                                   int64_t epoch = 0) {
  std::vector<std::vector<int64_t>> batches;
  for (const Element& element : Elements(dataset, {}, epoch)) {
    std::vector<int64_t>& rows = batches.emplace_back();
    for (int64_t i = 0; i < element[0].shape().dim(0); ++i) {
      rows.push_back(NumberOf(element[0], i));
    }
  }
  return batches;
}

// Calls `check` for every size of group that is looked at.
template <typename Check>
void ForEachGroup(Check check) {
  for (int worker_count = 1; worker_count <= 4; ++worker_count) {
    for (int replicas = 1; replicas <= 3; ++replicas) {
      SCOPED_TRACE(
          absl::StrCat(worker_count, " workers, ", replicas, " replicas each"));
      check(worker_count, replicas);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_INPUT_TESTING_TEST_GROUPS_H_
