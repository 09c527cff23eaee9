// Trains a model whose replicas exchange values during a step, on synchronous
// workers in deterministic mode. The model has synchronized batch
// normalization, two outputs whose losses mask different positions, and weight
// penalties. It is trained once with losses that are means and once with losses
// that are sums. Prints the result in the last line: "ended with <SHA-256 of
// the weights>", with the hashes for means and for sums.

#include <cstdint>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/learn/train/weights_hash.h"
#include "muster.h"

namespace muster {
namespace {

constexpr int64_t kBatch = 8;
constexpr int64_t kExampleCount = 6 * kBatch + 2;  // Some replicas get no rows.
constexpr int64_t kTimes = 5;
constexpr int64_t kWords = 11;
constexpr int64_t kTags = 3;

// Sentences of different lengths, padded with zeros, with a tag for each word
// and a number for each sentence.
Dataset Sentences() {
  Tensor ids(DType::kInt64, {kExampleCount, kTimes});
  Tensor tags(DType::kInt64, {kExampleCount, kTimes});
  Tensor numbers(DType::kFloat32, {kExampleCount, 1});
  for (int64_t i = 0; i < ids.element_count(); ++i) {
    const bool is_word = i % kTimes < (i / kTimes * 7) % (kTimes + 1);
    ids.mutable_flat<int64_t>()[i] = is_word ? 1 + (i * 37) % (kWords - 1) : 0;
    tags.mutable_flat<int64_t>()[i] = (i * i + i / 3) % kTags;
  }
  for (int64_t i = 0; i < kExampleCount; ++i) {
    numbers.mutable_flat<float>()[i] = static_cast<float>((i * 53) % 29) / 29;
  }
  return Dataset::FromTensorSlices({ids, tags, numbers}).Batch(kBatch);
}

Model TwoOutputs() {
  const LayerOutput ids =
      Input({kTimes}, {.dtype = DType::kInt64, .name = "ids"});
  const LayerOutput words = Embedding(kWords, 4, {.mask_zero = true})(ids);
  const LayerOutput x =
      BatchNormalization({.momentum = 0.9, .synchronized = true})(
          GRU(4, {.sequence = {.return_sequences = true}})(words));
  const LayerOutput tags =
      Dense(kTags, {.kernel_regularizer = L2(0.01), .name = "tags"})(x);
  const LayerOutput number =
      Dense(1, {.kernel_regularizer = L1(0.001), .name = "number"})(GRU(3)(x));
  return Model({ids}, {tags, number});
}

absl::StatusOr<std::string> TrainWith(MultiWorkerMirroredStrategy& strategy,
                                      Reduction reduction) {
  Model model = TwoOutputs();
  RETURN_IF_ERROR(model.Compile(
      strategy, {.optimizer = Adam({.learning_rate = 3e-3}),
                 .seed = 7,
                 .losses = {SparseCategoricalCrossentropy(
                                {.from_logits = true, .reduction = reduction}),
                            MeanSquaredError({.reduction = reduction})},
                 .loss_weights = {1.0, 0.5}}));
  RETURN_IF_ERROR(model
                      .Fit(Sentences(), {.epochs = 60,
                                         .verbose = strategy.is_chief()
                                                        ? Verbosity::kLines
                                                        : Verbosity::kSilent})
                      .status());
  ASSIGN_OR_RETURN(const std::vector<Tensor> values, model.GetWeights());
  std::map<std::string, Tensor> weights;
  for (size_t i = 0; i < values.size(); ++i) {
    weights[model.weights()[i].name()] = values[i];
  }
  return HashWeights(weights);
}

absl::Status Train(Task& task) {
  ASSIGN_OR_RETURN(auto strategy,
                   MultiWorkerMirroredStrategy::Create(
                       task, {.deterministic_micro_batches = 4}));
  ASSIGN_OR_RETURN(const std::string means,
                   TrainWith(*strategy, Reduction::kSumOverBatchSize));
  ASSIGN_OR_RETURN(const std::string sums,
                   TrainWith(*strategy, Reduction::kSum));
  if (!strategy->is_chief()) return absl::OkStatus();
  std::cout << "ended with " << means << " " << sums << std::endl;
  return absl::OkStatus();
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  return muster::RunTask(argc, argv, muster::Train);
}
