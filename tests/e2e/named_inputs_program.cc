// Trains a model with two inputs on a dataset whose components have names.
// Their order differs from that of the model's inputs. A registered function
// and a traced function produce them by name. Prints "<strategy> learned
// <weight of a> <weight of b>"; the data were made with weights 2 and -1.

#include <cstdint>
#include <iostream>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "muster.h"

namespace muster {
namespace {

constexpr int64_t kCount = 240;

// Multiplies the component with the name `name` by 2. Other components and all
// names stay unchanged.
absl::StatusOr<RegisteredFunction> MakeTwice(absl::string_view name,
                                             const ElementSpec& elements) {
  ASSIGN_OR_RETURN(const int component, elements.Find(name));
  return RegisteredFunction{
      [component](Element element) -> absl::StatusOr<Element> {
        const float value = element[component].flat<float>()[0];
        element[component] = Tensor::FromValues<float>({1}, {2 * value});
        return element;
      },
      elements.types, elements.names};
}
const bool kHasTwice = RegisterElementFunction("twice", MakeTwice);

// The components are {"b", label, "a"} before and after the functions.
Dataset Table() {
  Tensor half_a(DType::kFloat32, {kCount, 1});
  Tensor b(DType::kFloat32, {kCount, 1});
  Tensor y(DType::kFloat32, {kCount, 1});
  for (int64_t i = 0; i < kCount; ++i) {
    const float a = static_cast<float>(i % 4) / 4;
    half_a.mutable_flat<float>()[i] = a / 2;
    b.mutable_flat<float>()[i] = static_cast<float>(i % 3) / 2;
    y.mutable_flat<float>()[i] = 2 * a - b.flat<float>()[i];
  }
  const Dataset table =
      Dataset::FromTensorSlices({{"half_b", b}, {"", y}, {"a", half_a}});
  return MapRegistered(table, "twice", "a")
      .Map([](const NamedValues& row) -> std::vector<NamedValue> {
        return {{"b", row["half_b"]}, {"", row.values()[1]}, {"a", row["a"]}};
      });
}

// Returns the strategy for the cluster of the task.
absl::StatusOr<std::unique_ptr<Strategy>> MakeStrategy(Task& task) {
  if (task.options().config.cluster.Has(TaskType::kPs)) {
    return ParameterServerStrategy::Create(task);
  }
  return MultiWorkerMirroredStrategy::Create(task);
}

absl::Status Train(Task& task) {
  if (!kHasTwice) return absl::InternalError("\"twice\" is not registered");
  ASSIGN_OR_RETURN(const auto strategy, MakeStrategy(task));
  const LayerOutput a = Input({1}, {.name = "a"});
  const LayerOutput b = Input({1}, {.name = "b"});
  Model model(LayerOutputs{a, b},
              Add()({Dense(1, {.use_bias = false, .name = "of_a"})(a),
                     Dense(1, {.use_bias = false, .name = "of_b"})(b)}));
  RETURN_IF_ERROR(
      model.Compile(*strategy, {.optimizer = Sgd({.learning_rate = 0.2}),
                                .loss = MeanSquaredError(),
                                .seed = 1}));
  const Dataset batches =
      Table().Cache().Shuffle(kCount).Batch(8, {.drop_remainder = true});
  RETURN_IF_ERROR(
      model.Fit(batches, {.epochs = 30, .verbose = Verbosity::kSilent})
          .status());
  ASSIGN_OR_RETURN(const Logs logs,
                   model.Evaluate(Table().Select({"a", "b"}).Batch(8),
                                  {.verbose = Verbosity::kSilent}));
  ASSIGN_OR_RETURN(const std::vector<Tensor> weights, model.GetWeights());
  if (strategy->is_chief()) {
    std::cout << absl::StreamFormat(
                     "%s learned %.2f %.2f, loss %.4f\n", strategy->name(),
                     weights[0].flat<float>()[0], weights[1].flat<float>()[0],
                     logs.at("loss"))
              << std::flush;
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  return muster::RunTask(argc, argv, muster::Train);
}
