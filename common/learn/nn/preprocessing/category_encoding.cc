#include "common/learn/nn/preprocessing/category_encoding.h"

#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/dtype.h"
#include "common/learn/nn/config_visitor.h"

namespace muster {

void CategoryEncodingLayer::VisitConfig(ConfigVisitor& visitor) {
  visitor.VisitPositive("num_tokens", num_tokens_);
  visitor.Visit(Described("output_mode", "Not INT and not TF_IDF."),
                output_mode_, kCategoryOutputNames);
  if (output_mode_ == CategoryOutput::kInt ||
      output_mode_ == CategoryOutput::kTfIdf) {
    visitor.Refuse("output_mode", "must be one_hot, multi_hot or count");
  }
}

Value CategoryEncodingLayer::Call(Value x, const CallContext&) {
  if (num_tokens_ >= 1) {
    return EncodeCategories(Cast(x, DType::kInt64), output_mode_, num_tokens_);
  }
  x.builder()->ReportError(absl::InvalidArgumentError(
      absl::StrCat("CategoryEncoding ", name(),
                   ": num_tokens must be at least 1, got ", num_tokens_)));
  return Value();
}

LayerPtr CategoryEncoding(int64_t num_tokens,
                          const CategoryEncodingOptions& options) {
  return std::make_shared<CategoryEncodingLayer>(num_tokens, options);
}

}  // namespace muster
