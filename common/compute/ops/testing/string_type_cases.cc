#include "common/compute/ops/testing/string_type_cases.h"

#include <cstdint>
#include <string>
#include <utility>

#include "common/compute/ops/testing/type_case_names.h"
#include "common/core/tensor/attributes.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"

namespace muster {
namespace {

using type_case_names::F;
using type_case_names::L;
using type_case_names::List;
using type_case_names::S;

Attributes Table() {
  return {{"vocabulary", Tensor::FromSpan<std::string>({2}, {"a", "b"})},
          {"oov_index", int64_t{0}},
          {"oov_count", int64_t{1}},
          {"mask_index", int64_t{0}}};
}

Attributes With(Attributes attributes, const char* name, Attribute value) {
  attributes.Set(name, std::move(value));
  return attributes;
}

Attributes Texts(Attributes attributes, const char* split) {
  attributes.Set("standardize", std::string("lower"));
  attributes.Set("split", std::string(split));
  attributes.Set("ngrams", List{});
  return attributes;
}

void AddLookups(std::vector<TypeCase>* cases) {
  const auto add = [&](const char* op, const TensorType& input,
                       const Attributes& attributes, const char* expected) {
    cases->push_back({op, {input}, attributes, expected});
  };
  const Tensor number = Tensor::Scalar<int64_t>(1);
  add("LookupIndex", {S, {-1, 3}}, Table(), "int64[?,3]");
  add("LookupIndex", {L, {2}}, Table(), "! must be a list of int64");
  add("LookupIndex", {F, {2}}, Table(), "! string or int64");
  add("LookupIndex", {S, {2}}, {}, "! attribute \"vocabulary\"");
  add("LookupIndex", {S, {2}}, With(Table(), "oov_count", int64_t{-1}),
      "! must be 0 to 2^48");
  add("LookupIndex", {S, {2}}, With(Table(), "mask", number),
      "! must be one string");
  add("LookupIndex", {S, {2}}, With(Table(), "salt", List{1}),
      "! must hold 2 numbers");
  const Attributes inverse =
      With(Table(), "other", Tensor::Scalar<std::string>("?"));
  add("LookupCategory", {L, {-1, 3}}, inverse, "string[?,3]");
  add("LookupCategory", {S, {3}}, inverse, "! must hold int64");
  add("LookupCategory", {L, {3}}, With(Table(), "other", number),
      "! must be a list of int64");
  const Attributes buckets = {{"bucket_count", int64_t{1}}};
  add("HashBucket", {S, {-1}}, buckets, "int64[?]");
  add("HashBucket", {DType::kInt32, {4}}, buckets, "int64[4]");
  add("HashBucket", {F, {4}}, buckets, "! string, int32 or int64");
  add("HashBucket", {L, {4}}, With(buckets, "mask", number), "! must be 2");
  const auto cross = [&](const std::vector<TensorType>& inputs,
                         const Attributes& attributes, const char* expected) {
    cases->push_back({"CrossHash", inputs, attributes, expected});
  };
  cross({{S, {-1, 1}}, {L, {-1, 1}}}, buckets, "int64[?,1]");
  cross({{L, {3}}, {DType::kInt32, {3}}, {S, {3}}}, buckets, "int64[3]");
  cross({{S, {3}}, {F, {3}}}, buckets, "! string, int32 or int64");
  cross({{S, {3}}, {S, {4}}}, buckets, "! the shape of input 0");
  cross({{S, {3}}, {S, {3}}}, {}, "! attribute \"bucket_count\"");
}

void AddTokens(std::vector<TypeCase>* cases) {
  const Attributes length = {{"length", int64_t{5}}};
  const Attributes split = Texts(length, "whitespace");
  cases->push_back({"Tokens", {{S, {-1, 1}}}, split, "string[?,5]"});
  cases->push_back(
      {"Tokens", {{S, {3, 4}}}, Texts(length, "none"), "string[3,5]"});
  cases->push_back({"Tokens", {{S, {3, 4}}}, split, "! one text in each row"});
  cases->push_back({"Tokens", {{S, {3}}}, split, "! must have rank 2"});
  cases->push_back({"Tokens", {{F, {3, 1}}}, split, "! must hold string"});
  cases->push_back(
      {"Tokens", {{S, {3, 1}}}, Texts(length, "comma"), "! is unknown: comma"});
  cases->push_back({"Tokens",
                    {{S, {3, 1}}},
                    With(split, "ngrams", List{0}),
                    "! expected 1 or more"});
  const Attributes counts =
      With(Texts(Table(), "character"), "depth", int64_t{4});
  cases->push_back({"CountTokens", {{S, {-1, 1}}}, counts, "float32[?,4]"});
  cases->push_back(
      {"CountTokens", {{L, {2, 1}}}, counts, "! must hold string"});
}

}  // namespace

std::vector<TypeCase> StringTypeCases() {
  std::vector<TypeCase> cases;
  AddLookups(&cases);
  AddTokens(&cases);
  return cases;
}

}  // namespace muster
