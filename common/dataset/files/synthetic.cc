#include "common/dataset/files/synthetic.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/dataset/row_tables.h"
#include "proto/dataset.pb.h"

namespace muster {
namespace {

constexpr int64_t kSyntheticFeatureCountMax = int64_t{1} << 20;
constexpr int64_t kSyntheticClassCountMax = int64_t{1} << 20;
constexpr int64_t kModelElementsMax = int64_t{1} << 24;

void FillNormals(uint64_t key, absl::Span<float> out) {
  for (size_t i = 0; i < out.size(); i += 4) {
    const std::array<uint32_t, 4> words = Philox(key, i / 4);
    for (size_t j = 0; j < 4 && i + j < out.size(); ++j) {
      out[i + j] = UnitNormals(words[j & 2], words[(j & 2) + 1])[j & 1];
    }
  }
}

// Example i depends on (seed, i) only.
class SyntheticTable final : public RowTable {
 public:
  explicit SyntheticTable(const SyntheticOptions& options)
      : options_(options),
        model_(options.feature_count *
               std::max<int64_t>(1, options.class_count)) {
    FillNormals(FoldIn(options.seed, "model"), absl::MakeSpan(model_));
  }

  int64_t row_count() const override { return options_.example_count; }
  int component_count() const override { return 2; }
  bool is_stored() const override { return false; }

  absl::Status Get(int64_t row, absl::Span<Tensor> element) const override {
    RETURN_IF_ERROR(
        Prepare(Shape({options_.feature_count}), LabelShape(), element));
    Draw(row, 0, element);
    return absl::OkStatus();
  }

  absl::Status Gather(absl::Span<const int64_t> rows,
                      absl::Span<Tensor> batch) const override {
    const int64_t count = static_cast<int64_t>(rows.size());
    Shape label_shape = LabelShape();
    label_shape.InsertDim(0, count);
    RETURN_IF_ERROR(
        Prepare(Shape({count, options_.feature_count}), label_shape, batch));
    for (int64_t i = 0; i < count; ++i) Draw(rows[i], i, batch);
    return absl::OkStatus();
  }

 private:
  bool classifies() const { return options_.class_count > 0; }
  Shape LabelShape() const { return classifies() ? Shape() : Shape({1}); }

  absl::Status Prepare(const Shape& features, const Shape& label,
                       absl::Span<Tensor> tensors) const {
    RETURN_IF_ERROR(PrepareTensor(DType::kFloat32, features, &tensors[0]));
    return PrepareTensor(classifies() ? DType::kInt64 : DType::kFloat32, label,
                         &tensors[1]);
  }

  // Writes example `row` to position `place` of both components.
  void Draw(int64_t row, int64_t place, absl::Span<Tensor> tensors) const {
    const size_t feature_count = static_cast<size_t>(options_.feature_count);
    const uint64_t key =
        FoldIn(FoldIn(options_.seed, "example"), static_cast<uint64_t>(row));
    const absl::Span<float> features = tensors[0].mutable_flat<float>().subspan(
        place * feature_count, feature_count);
    FillNormals(key, features);
    const float noise = static_cast<float>(options_.noise);
    if (classifies()) {
      const uint64_t label =
          RandomStream(FoldIn(key, "label"))
              .Below(static_cast<uint64_t>(options_.class_count));
      const float* const center = &model_[label * feature_count];
      for (size_t i = 0; i < feature_count; ++i) {
        features[i] = center[i] + noise * features[i];
      }
      tensors[1].mutable_flat<int64_t>()[place] = static_cast<int64_t>(label);
      return;
    }
    float sum = 0;
    for (size_t i = 0; i < feature_count; ++i) sum += model_[i] * features[i];
    float error;
    FillNormals(FoldIn(key, "label"), absl::MakeSpan(&error, 1));
    tensors[1].mutable_flat<float>()[place] =
        sum / std::sqrt(static_cast<float>(feature_count)) + noise * error;
  }

  const SyntheticOptions options_;
  std::vector<float> model_;  // Cluster centers by class, or coefficients.
};

std::vector<TensorType> TypesOf(const SyntheticOptions& options) {
  const TensorType features = {DType::kFloat32, Shape({options.feature_count})};
  if (options.class_count > 0) return {features, {DType::kInt64, Shape()}};
  return {features, {DType::kFloat32, Shape({1})}};
}

class SyntheticNode final : public TableNode {
 public:
  explicit SyntheticNode(const SyntheticOptions& options)
      : TableNode(TypesOf(options), options.example_count),
        options_(options),
        table_(std::make_shared<SyntheticTable>(options)) {}

  absl::Status Encode(proto::Dataset* encoded) const override {
    proto::DatasetStage::Synthetic* const synthetic =
        encoded->add_stages()->mutable_synthetic();
    synthetic->set_example_count(options_.example_count);
    synthetic->set_feature_count(options_.feature_count);
    synthetic->set_class_count(options_.class_count);
    synthetic->set_noise(options_.noise);
    synthetic->set_seed(options_.seed);
    return absl::OkStatus();
  }

 protected:
  absl::StatusOr<std::shared_ptr<const RowTable>> Table() const override {
    return table_;
  }

 private:
  const SyntheticOptions options_;
  const std::shared_ptr<const RowTable> table_;
};

absl::Status CheckOption(const char* name, int64_t value, int64_t minimum,
                         int64_t maximum) {
  if (value >= minimum && value <= maximum) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("Synthetic: ", name, " is ",
                                                 value, "; expected ", minimum,
                                                 " to ", maximum));
}

}  // namespace

absl::StatusOr<NodePointer> MakeSynthetic(const SyntheticOptions& options) {
  RETURN_IF_ERROR(
      CheckOption("example_count", options.example_count, 0, INT64_MAX));
  RETURN_IF_ERROR(CheckOption("feature_count", options.feature_count, 1,
                              kSyntheticFeatureCountMax));
  RETURN_IF_ERROR(CheckOption("class_count", options.class_count, 0,
                              kSyntheticClassCountMax));
  RETURN_IF_ERROR(CheckOption("feature_count * class_count",
                              options.feature_count * options.class_count, 0,
                              kModelElementsMax));
  if (!(std::isfinite(options.noise) && options.noise >= 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("Synthetic: noise is ", options.noise,
                     "; expected a finite number, not negative"));
  }
  return std::make_shared<SyntheticNode>(options);
}

}  // namespace muster
