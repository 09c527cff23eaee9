#include "common/learn/nn/preprocessing/vocabulary.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <type_traits>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "common/compute/ops/ops.h"
#include "common/core/base/quoted_text.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/small_file.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"

namespace muster {
namespace {

// A token may be as long as a line of text, and there may be millions.
constexpr SmallFileLimits kVocabularyFileLimits = {
    .bytes_max = int64_t{1} << 30, .timeout = absl::Minutes(5)};

bool ParseToken(const std::string& line, std::string* token) {
  *token = line;
  return true;
}
bool ParseToken(const std::string& line, int64_t* token) {
  return absl::SimpleAtoi(line, token);
}

template <typename T>
Tensor ListOf(absl::Span<const T> values) {
  return Tensor::FromSpan<T>({static_cast<int64_t>(values.size())}, values);
}

}  // namespace

template <typename T>
void Vocabulary<T>::VisitShared(ConfigVisitor& visitor) {
  visitor.Visit("max_tokens", options_.max_tokens);
  visitor.Visit(
      Described("vocabulary",
                "Absent: taken from the training data before training starts."),
      options_.vocabulary);
  visitor.Visit(
      Described({"vocabulary_file", ""},
                "In place of vocabulary: a file with a token in each line."),
      options_.vocabulary_file);
  visitor.Visit(
      Described("idf_weights", "One for each of vocabulary, for TF_IDF."),
      options_.idf_weights);
  visitor.Visit("output_mode", options_.output_mode, kCategoryOutputNames);
  visitor.Visit("pad_to_max_tokens", options_.pad_to_max_tokens);
  if (const absl::Status read = ReadFile(); !read.ok()) {
    visitor.Refuse("vocabulary_file", read.message());
  }
  if (const auto mistake = FindMistake(); mistake.has_value()) {
    visitor.Refuse(mistake->option, mistake->what);
  }
}

template <typename T>
void Vocabulary<T>::VisitAll(ConfigVisitor& visitor) {
  visitor.Visit("num_oov_indices", options_.num_oov_indices);
  visitor.Visit("mask_token", options_.mask_token);
  visitor.Visit("oov_token", options_.oov_token);
  visitor.Visit("invert", options_.invert);
  visitor.Visit(Described("salt", "The key of SipHash: one number, or two."),
                options_.salt);
  if (options_.salt.size() == 1) options_.salt.push_back(options_.salt[0]);
  if constexpr (std::is_same_v<T, int64_t>) {
    visitor.Visit("oov_method", options_.oov_method, kOovMethodNames);
  }
  VisitShared(visitor);
}

template <typename T>
absl::Status Vocabulary<T>::Prepare() {
  if (options_.salt.size() == 1) options_.salt.push_back(options_.salt[0]);
  RETURN_IF_ERROR(ReadFile());
  const auto mistake = FindMistake();
  if (!mistake.has_value()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(mistake->option, " ", mistake->what));
}

template <typename T>
absl::Status Vocabulary<T>::ReadFile() {
  const std::string& path = options_.vocabulary_file;
  if (path.empty() || !options_.vocabulary.empty()) return absl::OkStatus();
  const absl::StatusOr<std::string> lines =
      ReadSmallFile(path, kVocabularyFileLimits);
  if (!lines.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(lines.status().message(), "; expected a token per line"));
  }
  // Some editors begin a file with a byte order mark.
  const absl::string_view text =
      absl::StripSuffix(absl::StripPrefix(*lines, "\xEF\xBB\xBF"), "\n");
  if (text.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("is empty: ", path));
  }
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::string token(absl::StripSuffix(line, "\r"));
    if (ParseToken(token, &options_.vocabulary.emplace_back())) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "has ", QuotedText(token), " in line ", options_.vocabulary.size(),
        " of ", path, "; expected an integer"));
  }
  return absl::OkStatus();
}

template <typename T>
std::optional<typename Vocabulary<T>::Mistake> Vocabulary<T>::FindMistake()
    const {
  const LookupOptions<T>& o = options_;
  const bool is_tf_idf = o.output_mode == CategoryOutput::kTfIdf;
  if (o.max_tokens.has_value() && *o.max_tokens <= 1) {
    return {{"max_tokens",
             absl::StrCat("must be at least 2, got ", *o.max_tokens)}};
  }
  if (o.pad_to_max_tokens && !o.max_tokens.has_value()) {
    return {{"pad_to_max_tokens", "needs max_tokens"}};
  }
  if (o.num_oov_indices < 0) {
    return {{"num_oov_indices",
             absl::StrCat("must be at least 0, got ", o.num_oov_indices)}};
  }
  if (o.invert && o.output_mode != CategoryOutput::kInt) {
    return {{"output_mode", "must be int if invert is true"}};
  }
  if (o.salt.size() > 2) {
    return {{"salt",
             absl::StrCat("must be one or two integers, got ", o.salt.size())}};
  }
  if (std::is_same_v<T, int64_t> && !o.salt.empty() &&
      o.oov_method != OovMethod::kFarmhash) {
    return {{"salt", "needs the oov_method farmhash"}};
  }
  if (!o.idf_weights.empty() && !is_tf_idf) {
    return {{"idf_weights", "need the output_mode tf_idf"}};
  }
  if (is_tf_idf && o.idf_weights.size() != o.vocabulary.size()) {
    return {
        {"idf_weights",
         absl::StrCat("must be as many as the vocabulary has tokens, ",
                      o.vocabulary.size(), ", got ", o.idf_weights.size())}};
  }
  return FindMistakeInTokens();
}

template <typename T>
std::optional<typename Vocabulary<T>::Mistake>
Vocabulary<T>::FindMistakeInTokens() const {
  absl::flat_hash_set<T> seen;
  for (const T& token : tokens()) {
    if (!seen.insert(token).second) {
      return {{"vocabulary", absl::StrCat("has the token ", token, " twice")}};
    }
  }
  const auto has = [&](const T& token) { return seen.contains(token); };
  if ((options_.mask_token.has_value() && has(*options_.mask_token)) ||
      (options_.invert && has(options_.oov_token))) {
    return {{"vocabulary",
             "has a special token among the others; leave the mask and OOV "
             "tokens out, or begin with all of them"}};
  }
  const int64_t size = first_index() + static_cast<int64_t>(tokens().size());
  if (options_.max_tokens.has_value() && size > *options_.max_tokens) {
    return {{"vocabulary", absl::StrCat("has ", size,
                                        " tokens with the special ones, more "
                                        "than the max_tokens of ",
                                        *options_.max_tokens)}};
  }
  return std::nullopt;
}

template <typename T>
bool Vocabulary<T>::IsEmpty() const {
  return options_.vocabulary.empty() && options_.vocabulary_file.empty();
}

template <typename T>
bool Vocabulary<T>::has_special_tokens() const {
  const std::vector<T>& vocabulary = options_.vocabulary;
  const int64_t count = first_index();
  if (static_cast<int64_t>(vocabulary.size()) < count) return false;
  for (int64_t i = 0; i < count; ++i) {
    const bool is_mask = i == 0 && has_mask_index();
    const T& expected = is_mask ? *options_.mask_token : options_.oov_token;
    if (vocabulary[i] != expected) return false;
  }
  return true;
}

template <typename T>
absl::Span<const T> Vocabulary<T>::tokens() const {
  const absl::Span<const T> all = options_.vocabulary;
  return has_special_tokens() ? all.subspan(first_index()) : all;
}

template <typename T>
int64_t Vocabulary<T>::depth() const {
  if (options_.pad_to_max_tokens && options_.max_tokens.has_value()) {
    return *options_.max_tokens;
  }
  return first_index() + static_cast<int64_t>(tokens().size());
}

template <typename T>
Tensor Vocabulary<T>::idf_weights() const {
  const std::vector<double>& given = options_.idf_weights;
  Tensor weights = Tensor::Zeros(DType::kFloat32, {depth()});
  const auto out = weights.mutable_flat<float>();
  size_t i = 0;
  if (!has_special_tokens()) {
    // Nothing is known of the documents with other tokens.
    const double mean = std::accumulate(given.begin(), given.end(), 0.0) /
                        static_cast<double>(std::max<size_t>(given.size(), 1));
    for (; i < static_cast<size_t>(first_index()); ++i) {
      out[i] = static_cast<float>(mean);
    }
  }
  for (const double weight : given) out[i++] = static_cast<float>(weight);
  return weights;
}

template <typename T>
LookupTable Vocabulary<T>::table() const {
  LookupTable table;
  table.vocabulary = ListOf(tokens());
  table.oov_index = has_mask_index() ? 1 : 0;
  table.oov_count = options_.num_oov_indices;
  if (options_.mask_token.has_value()) {
    table.mask = Tensor::Scalar<T>(*options_.mask_token);
  }
  table.mask_index = has_mask_index() ? 0 : -1;
  table.hashes_integers = options_.oov_method == OovMethod::kFarmhash;
  table.salt = options_.salt;
  return table;
}

template <typename T>
Value Vocabulary<T>::Lookup(Value x) const {
  if (options_.invert) {
    return LookupCategory(Cast(x, DType::kInt64), table(),
                          Tensor::Scalar<T>(options_.oov_token));
  }
  const Value indices = LookupIndex(x, table());
  switch (options_.output_mode) {
    case CategoryOutput::kInt:
      return indices;
    case CategoryOutput::kTfIdf:
      return Weigh(EncodeCategories(indices, CategoryOutput::kCount, depth()));
    default:
      return EncodeCategories(indices, options_.output_mode, depth());
  }
}

template <typename T>
Value Vocabulary<T>::Weigh(Value counts) const {
  if (options_.output_mode == CategoryOutput::kTfIdf) {
    return counts * counts.builder()->Constant(idf_weights());
  }
  return options_.output_mode == CategoryOutput::kMultiHot ? Minimum(counts, 1)
                                                           : counts;
}

template <typename T>
void Vocabulary<T>::Observe(absl::Span<const T> document) {
  for (const T& token : document) {
    Counts& counts = counts_[token];
    ++counts.tokens;
    if (counts.last_document == document_count_) continue;
    counts.last_document = document_count_;
    ++counts.documents;
  }
  ++document_count_;
}

template <typename T>
absl::Status Vocabulary<T>::FinishObserving() {
  if (options_.mask_token.has_value()) counts_.erase(*options_.mask_token);
  counts_.erase(options_.oov_token);
  std::vector<std::pair<int64_t, T>> ranked;
  for (const auto& [token, counts] : counts_) {
    ranked.emplace_back(counts.tokens, token);
  }
  std::sort(ranked.rbegin(), ranked.rend());
  if (options_.max_tokens.has_value()) {
    const int64_t limit =
        std::max<int64_t>(*options_.max_tokens - first_index(), 0);
    if (static_cast<int64_t>(ranked.size()) > limit) ranked.resize(limit);
  }
  if (ranked.empty()) {
    return absl::InvalidArgumentError(
        "the data have no tokens for the vocabulary");
  }
  for (const auto& [count, token] : ranked) {
    options_.vocabulary.push_back(token);
    if (options_.output_mode != CategoryOutput::kTfIdf) continue;
    options_.idf_weights.push_back(std::log(
        1.0 + static_cast<double>(document_count_) /
                  (1.0 + static_cast<double>(counts_[token].documents))));
  }
  counts_.clear();
  document_count_ = 0;
  return absl::OkStatus();
}

template <typename T>
std::vector<Tensor> Vocabulary<T>::State() const {
  return {ListOf<T>(options_.vocabulary), ListOf<double>(options_.idf_weights)};
}

template <typename T>
absl::Status Vocabulary<T>::SetState(absl::Span<const Tensor> state) {
  if (state.size() != 2 || state[0].dtype() != DTypeOf<T>() ||
      state[1].dtype() != DType::kFloat64) {
    return absl::InvalidArgumentError("expected a vocabulary and its weights");
  }
  const auto vocabulary = state[0].flat<T>();
  const auto weights = state[1].flat<double>();
  options_.vocabulary.assign(vocabulary.begin(), vocabulary.end());
  options_.idf_weights.assign(weights.begin(), weights.end());
  return absl::OkStatus();
}

template class Vocabulary<std::string>;
template class Vocabulary<int64_t>;

}  // namespace muster
