#include "common/compute/ops/testing/sequence_type_cases.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/compute/ops/testing/type_case_names.h"
#include "common/core/tensor/attributes.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"

namespace muster {
namespace {

using type_case_names::B;
using type_case_names::F;
using type_case_names::I;

Attributes Recurrent(const std::string& cell, bool has_mask = false,
                     const std::string& activation = "tanh") {
  return {{"cell", cell},
          {"units", int64_t{3}},
          {"activation", activation},
          {"recurrent_activation", std::string("sigmoid")},
          {"go_backwards", false},
          {"zero_output_for_mask", false},
          {"keep_steps", has_mask},
          {"has_scale", has_mask},
          {"has_mask", has_mask}};
}

void AddRecurrences(std::vector<TypeCase>* cases) {
  const TensorType state = {F, {2, 3}};
  const TensorType unknown = {F, {-1, -1}};
  const auto add = [&](const char* op, std::vector<TensorType> inputs,
                       const Attributes& attributes, const char* expected) {
    cases->push_back({op, std::move(inputs), attributes, expected});
  };
  const char* const op = "Recurrence";
  const TensorType gates = {F, {-1, 5, 12}};
  const TensorType kernel = {F, {3, 12}};
  add(op, {gates, kernel, state, state}, Recurrent("lstm"),
      "float32[2,5,3] float32[2,3] float32[2,3] float32[2,3]");
  add(op, {{F, {-1, -1, -1}}, unknown, unknown, state, {B, {-1, 7}}},
      {{"cell", std::string("lstm")}}, "! \"units\"");
  add(op, {{F, {-1, -1, 3}}, unknown, unknown, unknown, {B, {-1, 7}}},
      Recurrent("simple_rnn", true),
      "float32[?,7,3] float32[?,3] float32[?,3] float32[?,7,3] float32[?,7,3]");
  add(op, {{F, {2, 5, 9}}, {F, {3, 9}}, state, {F, {9}}},
      Recurrent("gru_reset_after"), "float32[2,5,3] float32[2,3] float32[2,3]");
  add(op, {gates, kernel, state}, Recurrent("lstm"), "! takes 4 inputs");
  add(op, {{F, {2, 5, 9}}, kernel, state, state}, Recurrent("lstm"),
      "! must have 12 elements, not 9");
  add(op, {gates, {F, {4, 12}}, state, state}, Recurrent("lstm"), "! 4");
  add(op, {{F, {3, 5, 12}}, kernel, state, state}, Recurrent("lstm"), "! 2");
  add(op, {{F, {2, 12}}, kernel, state, state}, Recurrent("lstm"), "! rank");
  add(op, {gates, kernel, state, {DType::kFloat64, {2, 3}}}, Recurrent("lstm"),
      "! must be float32");
  add(op, {gates, kernel, state}, Recurrent("peephole"), "! \"peephole\"");
  add(op, {gates, kernel, state}, Recurrent("lstm", false, "sine"),
      "! no activation \"sine\"");
  add(op, {{F, {2, 5, 3}}, {F, {3, 3}}, state, state, {F, {2, 5}}},
      Recurrent("simple_rnn", true), "! bool");

  const TensorType outputs = {F, {2, -1, 3}};
  add("RecurrenceGrad",
      {outputs, {F, {3, 9}}, state, state, outputs, {F, {2, 5, 12}}},
      Recurrent("gru_reset_after"),
      "float32[2,5,9] float32[2,5,9] float32[2,3]");
  add("RecurrenceGrad",
      {outputs,
       {F, {3, 3}},
       state,
       state,
       outputs,
       outputs,
       state,
       {B, {2, 5}}},
      Recurrent("simple_rnn", true),
      "float32[2,5,3] float32[2,3] float32[2,3]");
  add("RecurrenceGrad", {outputs, {F, {3, 9}}, state, state, outputs, outputs},
      Recurrent("gru_reset_after"), "! must have 12 elements, not 3");
}

void AddSorts(std::vector<TypeCase>* cases) {
  const auto top = [](int64_t k) -> Attributes {
    return {{"k", k}, {"smallest", false}};
  };
  cases->push_back({"TopK", {{F, {-1, 5}}}, top(3), "float32[?,3] int32[?,3]"});
  cases->push_back({"TopK", {{F, {-1}}}, top(3), "float32[3] int32[3]"});
  cases->push_back({"TopK", {{F, {2}}}, top(3), "! \"k\" is 3"});
  cases->push_back({"TopK", {{F, {}}}, top(0), "! rank"});
  cases->push_back({"TopK", {{B, {2}}}, top(1), "! must hold numbers"});
  cases->push_back(
      {"TakeAlongRows", {{F, {-1, 5}}, {I, {2, 3}}}, {}, "float32[2,3]"});
  cases->push_back({"TakeAlongRows", {{F, {4, 5}}, {I, {2, 3}}}, {}, "! 4"});
  cases->push_back({"TakeAlongRows", {{F, {4, 5}}, {I, {4}}}, {}, "! rank"});
  cases->push_back(
      {"TakeAlongRows", {{F, {4, 5}}, {F, {4, 5}}}, {}, "! int32 or int64"});
  cases->push_back({"AddAlongRowsLike",
                    {{F, {2, 3}}, {I, {-1, 3}}, {F, {2, 5}}},
                    {},
                    "float32[2,5]"});
  cases->push_back(
      {"AddAlongRowsLike", {{F, {2, 4}}, {I, {2, 3}}, {F, {2, 5}}}, {}, "! 4"});
}

void AddChecks(std::vector<TypeCase>* cases) {
  const Attributes print = {{"label", std::string("x")},
                            {"summarize", int64_t{3}}};
  cases->push_back({"Print", {{F, {-1, 2}}}, print, "float32[?,2]"});
  cases->push_back({"Print", {{F, {2}}}, {}, "! \"label\""});
  const Attributes message = {{"message", std::string("is wrong")}};
  cases->push_back({"Assert", {{I, {2}}, {B, {-1}}}, message, "int32[2]"});
  cases->push_back({"Assert", {{I, {2}}, {F, {}}}, message, "! bool"});
  cases->push_back({"Assert", {{I, {2}}, {B, {}}}, {}, "! \"message\""});
}

}  // namespace

std::vector<TypeCase> SequenceTypeCases() {
  std::vector<TypeCase> cases;
  AddRecurrences(&cases);
  AddSorts(&cases);
  AddChecks(&cases);
  return cases;
}

}  // namespace muster
