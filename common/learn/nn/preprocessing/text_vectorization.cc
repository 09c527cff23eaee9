#include "common/learn/nn/preprocessing/text_vectorization.h"

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/compute/ops/string_ops.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/learn/nn/config_visitor.h"

namespace muster {

TextVectorizationLayer::TextVectorizationLayer(
    const TextVectorizationOptions& options)
    : AdaptableLayer(options.name),
      tokens_(options.tokens),
      output_sequence_length_(options.output_sequence_length),
      vocabulary_({.max_tokens = options.max_tokens,
                   .mask_token = "",
                   .vocabulary = options.vocabulary,
                   .vocabulary_file = options.vocabulary_file,
                   .idf_weights = options.idf_weights,
                   .output_mode = options.output_mode,
                   .pad_to_max_tokens = options.pad_to_max_tokens}) {}

void TextVectorizationLayer::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit("standardize", tokens_.standardize, kStandardizeNames);
  visitor.Visit("split", tokens_.split, kSplitNames);
  visitor.Visit(
      Described("ngrams",
                "The lengths of the n-grams: [1, 2] is what Keras calls 2."),
      tokens_.ngrams);
  visitor.Visit(Described("output_sequence_length", "For INT, which needs it."),
                output_sequence_length_);
  vocabulary_.VisitShared(visitor);
  for (const int64_t length : tokens_.ngrams) {
    if (length >= 1) continue;
    visitor.Refuse("ngrams", absl::StrCat("must be at least 1, got ", length));
  }
  const CategoryOutput output = vocabulary_.options().output_mode;
  if (output == CategoryOutput::kOneHot) {
    visitor.Refuse("output_mode",
                   "must be int, multi_hot, count or tf_idf, got one_hot");
  }
  if (!output_sequence_length_.has_value()) return;
  if (output != CategoryOutput::kInt) {
    visitor.Refuse("output_sequence_length", "needs the output_mode int");
  }
  if (*output_sequence_length_ < 1) {
    visitor.Refuse(
        "output_sequence_length",
        absl::StrCat("must be at least 1, got ", *output_sequence_length_));
  }
}

absl::StatusOr<Shape> TextVectorizationLayer::RowsOf(
    const TensorType& type) const {
  Shape rows = type.shape;
  if (rows.rank() == 1) rows.AddDim(1);
  const bool splits = tokens_.split != TokenOptions::Split::kNone;
  const bool fits = type.dtype == DType::kString && rows.rank() == 2 &&
                    (!splits || rows.dim(1) == 1);
  if (fits) return rows;
  return absl::InvalidArgumentError(absl::StrCat(
      "TextVectorization ", name(), ": expected string[batch] or ",
      splits ? "[batch, 1]" : "[batch, n]", ", got ", type.ToString()));
}

absl::Status TextVectorizationLayer::Observe(const Tensor& data) {
  if (!NeedsData()) {
    return absl::FailedPreconditionError("TextVectorization has a vocabulary");
  }
  ASSIGN_OR_RETURN(const Shape rows, RowsOf(data.type()));
  const auto texts = data.flat<std::string>();
  for (int64_t row = 0; row < rows.dim(0); ++row) {
    vocabulary_.Observe(
        TokensOf(texts.subspan(row * rows.dim(1), rows.dim(1)), tokens_));
  }
  return absl::OkStatus();
}

Value TextVectorizationLayer::Call(Value x, const CallContext&) {
  const auto report = [&](const absl::Status& status) {
    x.builder()->ReportError(status);
    return Value();
  };
  if (const absl::Status status = vocabulary_.Prepare(); !status.ok()) {
    return report(absl::Status(
        status.code(),
        absl::StrCat("TextVectorization ", name(), ": ", status.message())));
  }
  if (NeedsData()) {
    return report(absl::FailedPreconditionError(absl::StrCat(
        "TextVectorization ", name(),
        ": there is no vocabulary: give one as an option, or adapt the layer "
        "to data")));
  }
  const absl::StatusOr<Shape> rows = RowsOf(x.type());
  if (!rows.ok()) return report(rows.status());
  if (x.shape().rank() == 1) x = ExpandDims(x, 1);
  const CategoryOutput output = vocabulary_.options().output_mode;
  if (output != CategoryOutput::kInt) {
    return vocabulary_.Weigh(
        CountTokens(x, tokens_, vocabulary_.table(), vocabulary_.depth()));
  }
  const bool keeps_count =
      tokens_.split == TokenOptions::Split::kNone && tokens_.ngrams.empty();
  const int64_t length =
      output_sequence_length_.value_or(keeps_count ? rows->dim(1) : -1);
  if (length < 1) {
    return report(absl::UnimplementedError(absl::StrCat(
        "TextVectorization ", name(),
        ": the output int needs an "
        "output_sequence_length of 1 or more, because a step's shapes cannot "
        "depend on its texts")));
  }
  return vocabulary_.Lookup(Tokens(x, tokens_, length));
}

LayerPtr TextVectorization(const TextVectorizationOptions& options) {
  return std::make_shared<TextVectorizationLayer>(options);
}

}  // namespace muster
