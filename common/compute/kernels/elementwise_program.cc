#include "common/compute/kernels/elementwise_program.h"

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/tensor.h"

namespace muster {
namespace {

using Step = ElementwiseProgram::Step;

// Attributes of the program. Except for the input count, each is a list with an
// element for each step. `sources` is the concatenation of the sources of all
// steps; `source_counts` has their numbers.
constexpr char kInputCount[] = "input_count";
constexpr char kOps[] = "ops";
constexpr char kSourceCounts[] = "source_counts";
constexpr char kSources[] = "sources";
constexpr char kDTypes[] = "dtypes";
constexpr char kImmediates[] = "immediates";
constexpr char kAlphas[] = "alphas";
constexpr char kApproximate[] = "approximate";

Tensor ListOf(const std::vector<Step>& steps, double Step::*field) {
  Tensor list(DType::kFloat64, {static_cast<int64_t>(steps.size())});
  for (size_t i = 0; i < steps.size(); ++i) {
    list.mutable_flat<double>()[i] = steps[i].*field;
  }
  return list;
}

}  // namespace

Attributes ElementwiseProgram::ToAttributes() const {
  std::vector<std::string> ops;
  std::vector<int64_t> source_counts, sources, dtypes, approximate;
  for (const Step& step : steps) {
    ops.push_back(step.op);
    source_counts.push_back(static_cast<int64_t>(step.sources.size()));
    sources.insert(sources.end(), step.sources.begin(), step.sources.end());
    dtypes.push_back(static_cast<int64_t>(step.dtype));
    approximate.push_back(step.approximate ? 1 : 0);
  }
  return {{kInputCount, input_count},
          {kOps, absl::StrJoin(ops, ",")},
          {kSourceCounts, source_counts},
          {kSources, sources},
          {kDTypes, dtypes},
          {kImmediates, ListOf(steps, &Step::immediate)},
          {kAlphas, ListOf(steps, &Step::alpha)},
          {kApproximate, approximate}};
}

absl::StatusOr<ElementwiseProgram> ElementwiseProgram::FromAttributes(
    const Attributes& attributes) {
  using List = std::vector<int64_t>;
  ElementwiseProgram program;
  ASSIGN_OR_RETURN(program.input_count, attributes.Get<int64_t>(kInputCount));
  ASSIGN_OR_RETURN(const std::string names, attributes.Get<std::string>(kOps));
  ASSIGN_OR_RETURN(const List source_counts,
                   attributes.Get<List>(kSourceCounts));
  ASSIGN_OR_RETURN(const List sources, attributes.Get<List>(kSources));
  ASSIGN_OR_RETURN(const List dtypes, attributes.Get<List>(kDTypes));
  ASSIGN_OR_RETURN(const List approximate, attributes.Get<List>(kApproximate));
  ASSIGN_OR_RETURN(const Tensor immediates,
                   attributes.Get<Tensor>(kImmediates));
  ASSIGN_OR_RETURN(const Tensor alphas, attributes.Get<Tensor>(kAlphas));
  const std::vector<std::string> ops = absl::StrSplit(names, ',');
  const size_t count = ops.size();
  bool fits = source_counts.size() == count && dtypes.size() == count &&
              approximate.size() == count &&
              immediates.element_count() == static_cast<int64_t>(count) &&
              alphas.element_count() == static_cast<int64_t>(count);
  size_t next = 0;
  for (size_t i = 0; i < count && fits; ++i) {
    Step& step = program.steps.emplace_back();
    step.op = ops[i];
    step.dtype = static_cast<DType>(dtypes[i]);
    step.immediate = immediates.ElementAsDouble(static_cast<int64_t>(i));
    step.alpha = alphas.ElementAsDouble(static_cast<int64_t>(i));
    step.approximate = approximate[i] != 0;
    for (int64_t k = 0; k < source_counts[i] && fits; ++k) {
      const auto end = program.input_count + static_cast<int64_t>(i);
      fits = next < sources.size() && sources[next] >= kImmediate &&
             sources[next] < end;
      if (fits) step.sources.push_back(sources[next++]);
    }
  }
  if (!fits || next != sources.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(kFusedElementwiseOp, ": the lists of ", count,
                     " steps do not fit each other"));
  }
  return program;
}

}  // namespace muster
