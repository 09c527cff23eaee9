#include "common/compute/ops/testing/control_flow_type_cases.h"

#include <cstdint>
#include <memory>
#include <vector>

#include "common/compute/graph/graph.h"
#include "common/compute/ops/ops.h"
#include "common/compute/ops/testing/control_flow_samples.h"
#include "common/compute/ops/testing/type_case_names.h"
#include "common/core/tensor/attributes.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"

namespace muster {
namespace {

using type_case_names::B;
using type_case_names::F;
using type_case_names::L;

std::shared_ptr<const Graph> Returns(const std::vector<TensorType>& parameters,
                                     std::vector<int> positions) {
  return TracedSubgraph(parameters, [&](const Values& x) {
    Values results;
    for (const int position : positions) results.push_back(x[position]);
    return results;
  });
}

void AddConds(std::vector<TypeCase>* cases) {
  const TensorType f = {F, {-1, 3}};
  const TensorType g = {F, {2, -1}};
  const std::vector<TensorType> inputs = {{B, {}}, f, g};
  const auto first = Returns({f, g}, {0});
  const auto second = Returns({f, g}, {1});
  cases->push_back({"Cond", inputs, {}, "float32[2,3]", {first, second}});
  cases->push_back(
      {"Cond", {{L, {}}, f, g}, {}, "! bool scalar", {first, second}});
  cases->push_back(
      {"Cond", {{B, {1}}, f, g}, {}, "! bool scalar", {first, second}});
  cases->push_back({"Cond", inputs, {}, "! has 2 subgraphs, not 1", {first}});
  cases->push_back({"Cond",
                    inputs,
                    {},
                    "! the branches return 1 and 2 values",
                    {first, Returns({f, g}, {0, 1})}});
  cases->push_back(
      {"Cond",
       {{B, {}}, f, {L, {2, 3}}},
       {},
       "! the branches return float32[?,3] and int64[2,3]",
       {Returns({f, {L, {2, 3}}}, {0}), Returns({f, {L, {2, 3}}}, {1})}});
  cases->push_back({"Cond",
                    {{B, {}}, {DType::kString, {}}},
                    {},
                    "! must be numbers or bool",
                    {Returns({{DType::kString, {}}}, {0}),
                     Returns({{DType::kString, {}}}, {0})}});
  cases->push_back({"Cond",
                    {{B, {}}, f},
                    {},
                    "! takes 2 arguments; got 1",
                    {first, second}});
}

Attributes Scanning(int64_t carry_count, int64_t input_count,
                    int64_t length = -1, bool keep_steps = false) {
  return {{"carry_count", carry_count},
          {"input_count", input_count},
          {"reverse", false},
          {"length", length},
          {"keep_steps", keep_steps}};
}

void AddScans(std::vector<TypeCase>* cases) {
  const TensorType f = {F, {3}};
  const auto body = Returns({f, f}, {1, 0});
  const std::vector<TensorType> inputs = {f, {F, {-1, 3}}};
  cases->push_back(
      {"Scan", inputs, Scanning(1, 1), "float32[3] float32[?,3]", {body}});
  cases->push_back({"Scan",
                    inputs,
                    Scanning(1, 1, 4, true),
                    "float32[3] float32[4,3] float32[4,3]",
                    {body}});
  cases->push_back(
      {"Scan", {f, f}, Scanning(1, 0, 5), "float32[3] float32[5,3]", {body}});
  const auto refuse = [&](std::vector<TensorType> types,
                          const Attributes& attributes, const char* why) {
    cases->push_back({"Scan", types, attributes, why, {body}});
  };
  refuse({f, f}, Scanning(1, 0), "! \"length\" is -1");
  refuse({f, {F, {4, 3}}}, Scanning(1, 1, 5), "! input 1 has 4 rows, not 5");
  refuse({f, {F, {}}}, Scanning(1, 1), "! input 1 must have rank");
  refuse({f, f}, Scanning(3, 0), "! \"carry_count\" is 3");
  refuse({f, f}, Scanning(1, 2), "! \"input_count\" is 2");
  refuse({f, f}, Scanning(-1, 0), "! \"carry_count\" is -1");
  refuse(inputs, {}, "! \"carry_count\"");
  refuse({{F, {2}}, f}, Scanning(1, 0, 5), "! is declared float32[3]");
  refuse({f, f}, Scanning(1, 0, int64_t{1} << 62), "! a stack of");
  cases->push_back({"Scan",
                    {f, {F, {-1, 4}}},
                    Scanning(1, 1),
                    "! carry 0 is float32[3], but the body returns float32[4]",
                    {Returns({f, {F, {4}}}, {1, 0})}});
  cases->push_back({"Scan",
                    {f, {F, {-1, 4}}},
                    Scanning(1, 1),
                    "! returns 0 values for a carry of 1",
                    {Returns({f, {F, {4}}}, {})}});
}

Attributes Looping(int64_t maximum_iterations, bool keep_steps = false) {
  return {{"carry_count", int64_t{1}},
          {"maximum_iterations", maximum_iterations},
          {"keep_steps", keep_steps}};
}

void AddWhiles(std::vector<TypeCase>* cases) {
  const std::vector<TensorType> inputs = {{F, {-1}}, {B, {}}};
  const auto condition = Returns(inputs, {1});
  const auto body = Returns(inputs, {0});
  cases->push_back(
      {"While", inputs, Looping(-1), "float32[?]", {condition, body}});
  cases->push_back({"While",
                    inputs,
                    Looping(7, true),
                    "float32[?] int64[] float32[7,?]",
                    {condition, body}});
  const auto refuse = [&](const Attributes& attributes, const char* why,
                          const Subgraphs& subgraphs) {
    cases->push_back({"While", inputs, attributes, why, subgraphs});
  };
  refuse(Looping(-1, true), "! \"maximum_iterations\" is -1",
         {condition, body});
  refuse(Looping(-2), "! \"maximum_iterations\" is -2", {condition, body});
  refuse(Looping(1), "! bool scalar", {body, body});
  refuse(Looping(1), "! returns 2 values", {Returns(inputs, {1, 1}), body});
  refuse(Looping(1), "! returns 2 values for a carry of 1",
         {condition, Returns(inputs, {0, 0})});
  refuse(Looping(1), "! carry 0", {condition, condition});
  refuse({}, "! \"carry_count\"", {condition, body});
}

}  // namespace

std::vector<TypeCase> ControlFlowTypeCases() {
  std::vector<TypeCase> cases;
  AddConds(&cases);
  AddScans(&cases);
  AddWhiles(&cases);
  return cases;
}

}  // namespace muster
