#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/compute/kernels/reference/elements.h"
#include "common/compute/kernels/reference/register_reference_kernels.h"
#include "common/core/base/hashes.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/text_tokens.h"

namespace muster::internal {
namespace {

// Hashes keys to one of several indices.
class Hasher {
 public:
  explicit Hasher(const Attributes& attributes) {
    const auto salt = attributes.GetOr<std::vector<int64_t>>("salt", {});
    is_salted_ = salt.size() == 2;
    if (is_salted_) {
      key_ = {static_cast<uint64_t>(salt[0]), static_cast<uint64_t>(salt[1])};
    }
  }

  int64_t Place(absl::string_view bytes, int64_t count) const {
    const uint64_t hash =
        is_salted_ ? SipHash(key_, bytes) : Fingerprint64(bytes);
    return static_cast<int64_t>(hash % static_cast<uint64_t>(count));
  }
  int64_t Place(int64_t number, int64_t count) const {
    return Place(absl::StrCat(number), count);
  }

 private:
  bool is_salted_ = false;
  SipHashKey key_;
};

absl::string_view Quote(absl::string_view) { return "\""; }
absl::string_view Quote(int64_t) { return ""; }

// The indices of categories, which are strings or int64.
template <typename T>
class IndexTable {
 public:
  using View = std::conditional_t<std::is_same_v<T, std::string>,
                                  absl::string_view, int64_t>;

  explicit IndexTable(const Attributes& attributes)
      : vocabulary_(attributes.GetOr<Tensor>("vocabulary", Tensor())),
        oov_index_(attributes.GetOr<int64_t>("oov_index", 0)),
        oov_count_(attributes.GetOr<int64_t>("oov_count", 0)),
        hashes_integers_(attributes.GetOr<bool>("hashes_integers", false)),
        hasher_(attributes) {
    const auto categories = vocabulary_.flat<T>();
    indices_.reserve(categories.size() + 1);
    int64_t index = oov_index_ + oov_count_;
    for (const T& category : categories) indices_.emplace(category, index++);
    if (attributes.Has("mask")) {
      mask_ = attributes.GetOr<Tensor>("mask", Tensor());
      indices_[mask_.scalar<T>()] = attributes.GetOr<int64_t>("mask_index", 0);
    }
  }

  absl::StatusOr<int64_t> Find(View category) const {
    const auto found = indices_.find(category);
    if (found != indices_.end()) return found->second;
    if (oov_count_ == 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          Quote(category), category, Quote(category),
          " is not in the vocabulary of ", vocabulary_.element_count(),
          "; with num_oov_indices of 1 or more there is an index for it"));
    }
    return oov_index_ + Place(category);
  }

 private:
  int64_t Place(View category) const {
    if (oov_count_ == 1) return 0;
    if constexpr (std::is_same_v<T, int64_t>) {
      if (!hashes_integers_) {
        const int64_t rest = category % oov_count_;
        return rest < 0 ? rest + oov_count_ : rest;
      }
    }
    return hasher_.Place(category, oov_count_);
  }

  const Tensor vocabulary_;  // The keys of the map refer to it and to `mask_`.
  const int64_t oov_index_;
  const int64_t oov_count_;
  const bool hashes_integers_;
  const Hasher hasher_;
  Tensor mask_;
  absl::flat_hash_map<View, int64_t> indices_;
};

// Calls visitor.operator()<T>() for the type of categories.
template <typename Visitor>
KernelOr VisitCategory(DType dtype, Visitor&& visitor) {
  return dtype == DType::kString ? visitor.template operator()<std::string>()
                                 : visitor.template operator()<int64_t>();
}

KernelOr MakeLookupIndex(const KernelSpec& spec) {
  return VisitCategory(spec.inputs[0].dtype, [&]<typename T>() {
    const auto table = std::make_shared<const IndexTable<T>>(spec.attributes);
    return MakeKernel([table](const KernelArguments& arguments) {
      const auto x = arguments.inputs[0]->flat<T>();
      const auto out = arguments.outputs[0]->mutable_flat<int64_t>();
      for (size_t i = 0; i < out.size(); ++i) {
        ASSIGN_OR_RETURN(out[i], table->Find(x[i]));
      }
      return absl::OkStatus();
    });
  });
}

KernelOr MakeLookupCategory(const KernelSpec& spec) {
  return VisitCategory(spec.outputs[0].dtype, [&]<typename T>() {
    const Attributes& attributes = spec.attributes;
    const auto vocabulary = attributes.GetOr<Tensor>("vocabulary", Tensor());
    const auto other = attributes.GetOr<Tensor>("other", Tensor());
    // The mask is the category of index 0.
    const bool has_mask = attributes.Has("mask");
    const auto mask = attributes.GetOr<Tensor>("mask", other);
    const int64_t first = attributes.GetOr<int64_t>("oov_index", 0) +
                          attributes.GetOr<int64_t>("oov_count", 0);
    return MakeKernel([=](const KernelArguments& arguments) {
      const auto x = arguments.inputs[0]->flat<int64_t>();
      const auto categories = vocabulary.flat<T>();
      const auto out = arguments.outputs[0]->mutable_flat<T>();
      for (size_t i = 0; i < out.size(); ++i) {
        if (has_mask && x[i] == 0) {
          out[i] = mask.scalar<T>();
        } else if (x[i] < first ||
                   x[i] - first >= static_cast<int64_t>(categories.size())) {
          out[i] = other.scalar<T>();
        } else {
          out[i] = categories[x[i] - first];
        }
      }
      return absl::OkStatus();
    });
  });
}

template <typename T>
KernelOr MakeHashBucketOf(const KernelSpec& spec) {
  const bool has_mask = spec.attributes.Has("mask");
  const auto mask = spec.attributes.GetOr<Tensor>("mask", Tensor());
  const int64_t first = has_mask ? 1 : 0;
  const int64_t count =
      spec.attributes.GetOr<int64_t>("bucket_count", 1) - first;
  const Hasher hasher(spec.attributes);
  return MakeKernel([=](const KernelArguments& arguments) {
    const auto x = arguments.inputs[0]->flat<T>();
    const auto out = arguments.outputs[0]->mutable_flat<int64_t>();
    for (size_t i = 0; i < out.size(); ++i) {
      const bool is_mask = has_mask && x[i] == mask.scalar<T>();
      out[i] = is_mask ? 0 : first + hasher.Place(x[i], count);
    }
    return absl::OkStatus();
  });
}

KernelOr MakeHashBucket(const KernelSpec& spec) {
  switch (spec.inputs[0].dtype) {
    case DType::kString:
      return MakeHashBucketOf<std::string>(spec);
    case DType::kInt32:
      return MakeHashBucketOf<int32_t>(spec);
    default:
      return MakeHashBucketOf<int64_t>(spec);
  }
}

uint64_t FingerprintOf(const Tensor& x, size_t i) {
  switch (x.dtype()) {
    case DType::kString:
      return Fingerprint64(x.flat<std::string>()[i]);
    case DType::kInt32:
      return static_cast<uint64_t>(int64_t{x.flat<int32_t>()[i]});
    default:
      return static_cast<uint64_t>(x.flat<int64_t>()[i]);
  }
}

KernelOr MakeCrossHash(const KernelSpec& spec) {
  // TensorFlow's default key for crosses.
  constexpr uint64_t kKey = 0xDECAFCAFFE;
  const auto count =
      static_cast<uint64_t>(spec.attributes.GetOr<int64_t>("bucket_count", 1));
  return MakeKernel([=](const KernelArguments& arguments) {
    const auto out = arguments.outputs[0]->mutable_flat<int64_t>();
    for (size_t i = 0; i < out.size(); ++i) {
      uint64_t fingerprint = kKey;
      for (const Tensor* const x : arguments.inputs) {
        fingerprint = CombinedFingerprint(fingerprint, FingerprintOf(*x, i));
      }
      out[i] = static_cast<int64_t>(fingerprint % count);
    }
    return absl::OkStatus();
  });
}

// Returns the enum value for the name in an attribute.
template <typename Enum, size_t count>
Enum Named(const Attributes& attributes, absl::string_view attribute,
           const absl::string_view (&names)[count]) {
  const auto name = attributes.GetOr<std::string>(attribute, "");
  return static_cast<Enum>(std::find(names, names + count, name) - names);
}

// Splits each row of texts into tokens.
class Tokenizer {
 public:
  explicit Tokenizer(const KernelSpec& spec)
      : row_size_(spec.inputs[0].shape.dim(1)) {
    options_.standardize = Named<TokenOptions::Standardize>(
        spec.attributes, "standardize", kStandardizeNames);
    options_.split =
        Named<TokenOptions::Split>(spec.attributes, "split", kSplitNames);
    options_.ngrams = spec.attributes.GetOr<std::vector<int64_t>>("ngrams", {});
  }

  std::vector<std::string> Row(const Tensor& texts, int64_t row) const {
    return TokensOf(
        texts.flat<std::string>().subspan(row * row_size_, row_size_),
        options_);
  }

 private:
  const int64_t row_size_;
  TokenOptions options_;
};

KernelOr MakeTokens(const KernelSpec& spec) {
  return MakeKernel(
      [tokenizer = Tokenizer(spec), rows = spec.outputs[0].shape.dim(0),
       length = static_cast<size_t>(spec.outputs[0].shape.dim(1))](
          const KernelArguments& arguments) {
        const auto out = arguments.outputs[0]->mutable_flat<std::string>();
        for (int64_t row = 0; row < rows; ++row) {
          std::vector<std::string> tokens =
              tokenizer.Row(*arguments.inputs[0], row);
          tokens.resize(length);
          std::move(tokens.begin(), tokens.end(), out.begin() + row * length);
        }
        return absl::OkStatus();
      });
}

KernelOr MakeCountTokens(const KernelSpec& spec) {
  const auto table =
      std::make_shared<const IndexTable<std::string>>(spec.attributes);
  return MakeKernel(
      [table, tokenizer = Tokenizer(spec), rows = spec.outputs[0].shape.dim(0),
       depth = spec.outputs[0].shape.dim(1)](const KernelArguments& arguments) {
        const auto out = arguments.outputs[0]->mutable_flat<float>();
        std::fill(out.begin(), out.end(), 0.0f);
        for (int64_t row = 0; row < rows; ++row) {
          for (const std::string& token :
               tokenizer.Row(*arguments.inputs[0], row)) {
            ASSIGN_OR_RETURN(const int64_t index, table->Find(token));
            if (index >= 0 && index < depth) ++out[row * depth + index];
          }
        }
        return absl::OkStatus();
      });
}

}  // namespace

void RegisterStringKernels(KernelRegistry* registry) {
  RegisterReference(registry, "LookupIndex", MakeLookupIndex);
  RegisterReference(registry, "LookupCategory", MakeLookupCategory);
  RegisterReference(registry, "HashBucket", MakeHashBucket);
  RegisterReference(registry, "CrossHash", MakeCrossHash);
  RegisterReference(registry, "Tokens", MakeTokens);
  RegisterReference(registry, "CountTokens", MakeCountTokens);
}

}  // namespace muster::internal
