#include "common/dataset/files/example_function.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor_codec.h"
#include "google/protobuf/arena.h"
#include "proto/dataset.pb.h"
#include "proto/example.pb.h"

namespace muster {
namespace {

class ExampleFunction final : public ElementFunction {
 public:
  // `features` are the factory's.
  explicit ExampleFunction(const std::vector<FeatureSpec>* features)
      : features_(*features) {}

  absl::Status Run(uint64_t, Element* argument, Element* result) override {
    const std::string& record = (*argument)[0].flat<std::string>()[0];
    google::protobuf::Arena arena;
    auto* const example =
        google::protobuf::Arena::CreateMessage<proto::Example>(&arena);
    if (!example->ParseFromString(record)) {
      return absl::DataLossError(absl::StrCat(
          "a record of ", record.size(), " bytes is not a tf.train.Example"));
    }
    result->resize(features_.size());
    const auto& values = example->features().feature();
    for (size_t i = 0; i < features_.size(); ++i) {
      const auto found = values.find(features_[i].key);
      RETURN_IF_ERROR(
          FeatureToTensor(found == values.end() ? nullptr : &found->second,
                          features_[i], &(*result)[i]));
    }
    return absl::OkStatus();
  }

 private:
  const std::vector<FeatureSpec>& features_;
};

class ExampleFunctionFactory final : public ElementFunctionFactory {
 public:
  explicit ExampleFunctionFactory(std::vector<FeatureSpec> features)
      : features_(std::move(features)) {
    for (const FeatureSpec& feature : features_) {
      result_types_.push_back({feature.dtype, feature.shape});
    }
  }

  absl::StatusOr<std::unique_ptr<ElementFunction>> Create() const override {
    return std::make_unique<ExampleFunction>(&features_);
  }
  const char* name() const override { return "ParseExample"; }
  std::vector<std::string> ResultNames(
      const std::vector<std::string>&) const override {
    std::vector<std::string> names;
    for (const FeatureSpec& feature : features_) {
      const bool is_taken =
          std::find(names.begin(), names.end(), feature.key) != names.end();
      names.push_back(is_taken ? "" : feature.key);
    }
    return names;
  }
  const Graph* graph() const override { return nullptr; }
  const std::vector<TensorType>& result_types() const override {
    return result_types_;
  }
  bool Encode(proto::DatasetStage::Map* map) const override {
    for (const FeatureSpec& feature : features_) {
      auto* const encoded = map->mutable_example()->add_features();
      encoded->set_key(feature.key);
      encoded->set_dtype(EncodeDType(feature.dtype));
      *encoded->mutable_shape() = EncodeShape(feature.shape);
      if (feature.default_value.has_value()) {
        *encoded->mutable_default_value() =
            EncodeTensor(*feature.default_value);
      }
      encoded->set_padded(feature.padded);
    }
    return true;
  }

 private:
  const std::vector<FeatureSpec> features_;
  std::vector<TensorType> result_types_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const ElementFunctionFactory>>
MakeExampleFunction(const std::vector<TensorType>& argument_types,
                    std::vector<FeatureSpec> features) {
  if (argument_types.size() != 1 ||
      argument_types[0] != TensorType{DType::kString, Shape()}) {
    return absl::InvalidArgumentError(absl::StrCat(
        "ParseExample: elements have ", argument_types.size(), " components",
        argument_types.empty()
            ? ""
            : absl::StrCat(", first ", argument_types[0].ToString()),
        "; expected one string[]"));
  }
  if (features.empty() || features.size() > kFeatureCountMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("ParseExample: ", features.size(),
                     " features; expected 1 to ", kFeatureCountMax));
  }
  for (const FeatureSpec& feature : features) {
    RETURN_IF_ERROR(CheckFeatureSpec(feature));
  }
  return std::make_shared<ExampleFunctionFactory>(std::move(features));
}

}  // namespace muster
