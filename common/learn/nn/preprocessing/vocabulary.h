#ifndef COMMON_LEARN_NN_PREPROCESSING_VOCABULARY_H_
#define COMMON_LEARN_NN_PREPROCESSING_VOCABULARY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/string_ops.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/preprocessing/category_output.h"

namespace muster {

// How an integer outside of the vocabulary gets one of several indices. The
// values are positions in kOovMethodNames.
enum class OovMethod { kFloormod, kFarmhash };
inline constexpr absl::string_view kOovMethodNames[] = {"floormod", "farmhash"};

template <typename T>
inline constexpr int64_t kDefaultOovToken = -1;
template <>
inline constexpr const char* kDefaultOovToken<std::string> = "[UNK]";

// The options of StringLookup (T = std::string) and IntegerLookup
// (T = int64_t), with Keras' names and defaults.
template <typename T>
struct LookupOptions {
  // The size of the vocabulary at most, special tokens included. Unset: no
  // limit.
  std::optional<int64_t> max_tokens = std::nullopt;
  // Indices for tokens outside of the vocabulary (OOV). With 0, such a token
  // fails the step.
  int64_t num_oov_indices = 1;
  // A token that stands for no value: index 0 of the output kInt, and nothing
  // in the others.
  std::optional<T> mask_token = std::nullopt;
  // The token of an index without one when `invert`.
  T oov_token = kDefaultOovToken<T>;
  // May begin with the special tokens, as Keras' get_vocabulary() returns it.
  std::vector<T> vocabulary = {};
  // Instead: a file with a token in each line.
  std::string vocabulary_file = "";
  // One for each of `vocabulary`; for the output kTfIdf.
  std::vector<double> idf_weights = {};
  // Returns tokens for indices.
  bool invert = false;
  CategoryOutput output_mode = CategoryOutput::kInt;
  // Vectors have `max_tokens` elements, however small the vocabulary.
  bool pad_to_max_tokens = false;
  // Of integers.
  OovMethod oov_method = OovMethod::kFloormod;
  // The key of the hash that chooses among several OOV indices: none, one
  // number, or two.
  std::vector<int64_t> salt = {};
  std::string name = "";
};

// The tokens of a layer, their indices, and how they are found in data. The
// indices are those of Keras: the mask token, the OOV indices, the tokens.
//
// Not thread-safe.
template <typename T>
class Vocabulary {
 public:
  explicit Vocabulary(LookupOptions<T> options)
      : options_(std::move(options)) {}

  LookupOptions<T>& options() { return options_; }
  const LookupOptions<T>& options() const { return options_; }

  // Visits the options that TextVectorization has too, or all.
  void VisitShared(ConfigVisitor& visitor);
  void VisitAll(ConfigVisitor& visitor);
  // Reads the file of the vocabulary, and checks the options.
  //   kInvalidArgument  names the option and what was expected
  absl::Status Prepare();

  // True if there are no tokens and no file of them.
  bool IsEmpty() const;
  // The number of elements of a vector.
  int64_t depth() const;
  // Without the special tokens.
  absl::Span<const T> tokens() const;
  // [depth]: the weights of the output kTfIdf.
  Tensor idf_weights() const;
  LookupTable table() const;

  // The output for tokens, or for indices if the layer inverts.
  Value Lookup(Value x) const;
  // The output for counts of indices.
  Value Weigh(Value counts) const;

  // Counts the tokens of a document.
  void Observe(absl::Span<const T> document);
  // The vocabulary is what was observed: the most frequent tokens first, those
  // of equal frequency from the last to the first in order. The weight of a
  // token is log(1 + documents / (1 + documents with it)).
  //   kInvalidArgument  no token was observed
  absl::Status FinishObserving();

  std::vector<Tensor> State() const;
  absl::Status SetState(absl::Span<const Tensor> state);

 private:
  struct Counts {
    int64_t tokens = 0;
    int64_t documents = 0;
    int64_t last_document = -1;
  };

  bool has_mask_index() const {
    return options_.mask_token.has_value() &&
           options_.output_mode == CategoryOutput::kInt;
  }
  int64_t first_index() const {
    return (has_mask_index() ? 1 : 0) + options_.num_oov_indices;
  }
  // True if the vocabulary begins with the special tokens.
  bool has_special_tokens() const;
  // An invalid option: {"max_tokens", "must be ..."}.
  struct Mistake {
    const char* option;
    std::string what;
  };
  std::optional<Mistake> FindMistake() const;
  std::optional<Mistake> FindMistakeInTokens() const;
  absl::Status ReadFile();

  LookupOptions<T> options_;
  absl::flat_hash_map<T, Counts> counts_;
  int64_t document_count_ = 0;
};

}  // namespace muster

#endif  // COMMON_LEARN_NN_PREPROCESSING_VOCABULARY_H_
