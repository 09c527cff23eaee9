#include "common/learn/nn/preprocessing/lookup.h"

#include <memory>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "common/compute/ops/ops.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"

namespace muster {
namespace {

template <typename T>
inline constexpr bool kIsText = std::is_same_v<T, std::string>;

}  // namespace

template <typename T>
std::string LookupLayer<T>::kind() const {
  return kIsText<T> ? "StringLookup" : "IntegerLookup";
}

template <typename T>
absl::Status LookupLayer<T>::Observe(const Tensor& data) {
  if (!NeedsData()) {
    return absl::FailedPreconditionError(
        absl::StrCat(kind(), " has a vocabulary"));
  }
  const bool fits =
      kIsText<T> ? data.dtype() == DType::kString : IsInteger(data.dtype());
  if (!fits) {
    return absl::InvalidArgumentError(
        absl::StrCat(kind(), ": expected ", kIsText<T> ? "strings" : "integers",
                     ", got ", data.type().ToString()));
  }
  std::vector<T> tokens;
  if constexpr (kIsText<T>) {
    const auto given = data.flat<T>();
    tokens.assign(given.begin(), given.end());
  } else {
    for (int64_t i = 0; i < data.element_count(); ++i) {
      tokens.push_back(data.dtype() == DType::kInt64
                           ? data.flat<int64_t>()[i]
                           : static_cast<int64_t>(data.ElementAsDouble(i)));
    }
  }
  // A batch without further axes is one document, as in Keras.
  const int64_t row_count = data.shape().rank() < 2 ? 1 : data.shape().dim(0);
  if (row_count == 0) return absl::OkStatus();
  const size_t row_size = tokens.size() / row_count;
  for (int64_t row = 0; row < row_count; ++row) {
    vocabulary_.Observe(
        absl::MakeConstSpan(tokens).subspan(row * row_size, row_size));
  }
  return absl::OkStatus();
}

template <typename T>
Value LookupLayer<T>::Call(Value x, const CallContext&) {
  const auto report = [&](absl::StatusCode code, absl::string_view what) {
    x.builder()->ReportError(
        absl::Status(code, absl::StrCat(kind(), " ", name(), ": ", what)));
    return Value();
  };
  if (const absl::Status status = vocabulary_.Prepare(); !status.ok()) {
    return report(status.code(), status.message());
  }
  if (NeedsData()) {
    return report(absl::StatusCode::kFailedPrecondition,
                  "there is no vocabulary: give one as an option, or adapt the "
                  "layer to data");
  }
  const bool is_inverse = vocabulary_.options().invert;
  if (kIsText<T> && !is_inverse && x.dtype() != DType::kString) {
    return report(absl::StatusCode::kInvalidArgument,
                  absl::StrCat("expected strings, got ", x.type().ToString()));
  }
  if (!kIsText<T> || is_inverse) x = Cast(x, DType::kInt64);
  return vocabulary_.Lookup(x);
}

template class LookupLayer<std::string>;
template class LookupLayer<int64_t>;

LayerPtr StringLookup(const StringLookupOptions& options) {
  return std::make_shared<StringLookupLayer>(options);
}

LayerPtr IntegerLookup(const IntegerLookupOptions& options) {
  return std::make_shared<IntegerLookupLayer>(options);
}

}  // namespace muster
