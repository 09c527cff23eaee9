#include "common/learn/train/weights_hash.h"

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/io/storage/sha256.h"

namespace muster {

std::string HashWeights(const std::map<std::string, Tensor>& weights) {
  Sha256 hash;
  for (const auto& [name, tensor] : weights) {
    hash.Add(absl::StrCat(name, "|", DTypeName(tensor.dtype()), "|",
                          tensor.shape().ToString(), "|"));
    hash.Add(absl::string_view(reinterpret_cast<const char*>(tensor.raw_data()),
                               tensor.size_bytes()));
  }
  return hash.Finish();
}

}  // namespace muster
