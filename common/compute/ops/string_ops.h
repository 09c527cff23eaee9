#ifndef COMMON_COMPUTE_OPS_STRING_OPS_H_
#define COMMON_COMPUTE_OPS_STRING_OPS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/core/base/text_tokens.h"
#include "common/core/tensor/attributes.h"
#include "common/core/tensor/tensor.h"

// Categories and text: the ops of preprocessing layers on strings and ids.
// There are no gradients. The kernels run on the host.
namespace muster {

// The indices of categories. Tables are attributes of the nodes, so graphs
// carry them to the processes that run them.
struct LookupTable {
  // The categories, string [n] or int64 [n], each once.
  Tensor vocabulary;
  // Index of the first category outside of the vocabulary (OOV); those of the
  // vocabulary follow the OOV indices.
  int64_t oov_index = 0;
  // 0: a category that is not in the vocabulary fails the step. If there are
  // several, the hash of the category selects one.
  int64_t oov_count = 1;
  // A category that has a separate index.
  std::optional<Tensor> mask = std::nullopt;
  int64_t mask_index = 0;
  // True: the hash of an integer selects its OOV index. False: its remainder
  // does.
  bool hashes_integers = false;
  // Two numbers: the key of the hash, which then is SipHash.
  std::vector<int64_t> salt = {};

  Attributes ToAttributes() const;
};

// Returns the index of each element: int64 of the shape of `x`, whose dtype is
// the vocabulary's.
Value LookupIndex(Value x, const LookupTable& table);

// Returns the category of each index: the inverse of LookupIndex(). `x` is
// int64. Index 0 gives `mask`, if there is one; an index without a category
// gives `other`.
Value LookupCategory(Value x, const LookupTable& table, const Tensor& other);

struct HashBucketOptions {
  // The only value that has bucket 0. Needs two buckets or more.
  std::optional<Tensor> mask = std::nullopt;
  // Two numbers: the key of SipHash. Otherwise the hash is FarmHash's.
  std::vector<int64_t> salt = {};
};
// Returns a bucket in [0, bucket_count) for each element: int64 of the shape of
// `x`, which holds strings or integers. An integer is hashed as its decimal
// digits.
//
// Equivalent to: tf.strings.to_hash_bucket_fast and to_hash_bucket_strong.
Value HashBucket(Value x, int64_t bucket_count,
                 const HashBucketOptions& options = {});

// Returns a bucket in [0, bucket_count) for the combination of the elements of
// all `x` at each position: int64 of their shape, which is the same for all.
// There are at least two, of strings or integers. An integer is its own
// fingerprint.
//
// Equivalent to: tf.sparse.cross_hashed, of tensors whose rows have one
// element.
Value CrossHash(absl::Span<const Value> x, int64_t bucket_count);

// Returns the first `length` tokens of each row of texts, string
// [batch, length], and "" where a row has fewer. `x` is string [batch, n], with
// n = 1 if texts are split.
Value Tokens(Value x, const TokenOptions& options, int64_t length);

// Returns how often each index occurs among the tokens of each row: float32
// [batch, depth]. `x` is as in Tokens(). Tokens with an index outside of
// [0, depth) are not counted.
Value CountTokens(Value x, const TokenOptions& options,
                  const LookupTable& table, int64_t depth);

}  // namespace muster

#endif  // COMMON_COMPUTE_OPS_STRING_OPS_H_
