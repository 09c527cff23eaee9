#include "common/learn/nn/preprocessing/hashing.h"

#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/compute/ops/string_ops.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/config_visitor.h"

namespace muster {

void HashingLayer::VisitConfig(ConfigVisitor& visitor) {
  // Keras refuses indices of the default dtype.
  static constexpr absl::string_view kDTypes[] = {"float32", "int64", "int32"};
  visitor.VisitPositive("num_bins", num_bins_);
  visitor.Visit(Described("mask_value", "Of strings only."),
                options_.mask_value);
  visitor.Visit(Described("salt", "The key of SipHash: one number, or two."),
                options_.salt);
  if (options_.salt.size() == 1) options_.salt.push_back(options_.salt[0]);
  visitor.Visit(Described("output_mode", "Not TF_IDF."), options_.output_mode,
                kCategoryOutputNames);
  int dtype = options_.output_mode == CategoryOutput::kInt ? 1 : 0;
  visitor.VisitChoice({"", "dtype"}, dtype, kDTypes);
  if (options_.salt.size() > 2) {
    visitor.Refuse("salt", absl::StrCat("must be one or two integers, got ",
                                        options_.salt.size()));
  }
  if (options_.output_mode == CategoryOutput::kTfIdf) {
    visitor.Refuse("output_mode",
                   "must be int, one_hot, multi_hot or count, got tf_idf");
  }
}

Value HashingLayer::Call(Value x, const CallContext&) {
  std::vector<int64_t> salt = options_.salt;
  if (salt.size() == 1) salt.push_back(salt[0]);
  const bool is_text = x.dtype() == DType::kString;
  if (num_bins_ < 1 || (options_.mask_value.has_value() && !is_text)) {
    x.builder()->ReportError(absl::InvalidArgumentError(absl::StrCat(
        "Hashing ", name(),
        num_bins_ < 1 ? ": num_bins must be at least 1, got "
                      : ": mask_value is for strings; the input is ",
        num_bins_ < 1 ? absl::StrCat(num_bins_) : x.type().ToString())));
    return Value();
  }
  if (!is_text) x = Cast(x, DType::kInt64);
  HashBucketOptions hash{.salt = salt};
  // With one bin there is none for the mask alone.
  if (options_.mask_value.has_value() && num_bins_ > 1) {
    hash.mask = Tensor::Scalar<std::string>(*options_.mask_value);
  }
  const Value bins = HashBucket(x, num_bins_, hash);
  return options_.output_mode == CategoryOutput::kInt
             ? bins
             : EncodeCategories(bins, options_.output_mode, num_bins_);
}

LayerPtr Hashing(int64_t num_bins, const HashingOptions& options) {
  return std::make_shared<HashingLayer>(num_bins, options);
}

}  // namespace muster
