#include "common/compute/kernels/cuda/cudnn/attention_plan.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/compute/kernels/cuda/cudnn/attention_graph.h"
#include "common/core/base/status_macros.h"

namespace muster {
namespace {

// Source: the notes on versions in cudnn-frontend, "Attention".
absl::Status CheckIsSupported(size_t version, const AttentionProblem& problem) {
  const auto refuse = [](absl::string_view why) {
    return absl::UnimplementedError(absl::StrCat("attention by cuDNN: ", why));
  };
  const AttentionGeometry& geometry = problem.geometry;
  if (problem.dtype != DType::kBfloat16 && problem.dtype != DType::kFloat16) {
    return refuse(absl::StrCat("expected bfloat16 or float16, got ",
                               DTypeName(problem.dtype)));
  }
  if (std::min({geometry.batch, geometry.heads, geometry.query_count,
                geometry.key_count, geometry.key_dim, geometry.value_dim}) <
      1) {
    return refuse("an extent is 0");
  }
  // cuDNN reads rows in units of 16 bytes.
  if (geometry.key_dim % 8 != 0 || geometry.value_dim % 8 != 0) {
    return refuse("the number of features of a head is not a multiple of 8");
  }
  if (version == 91000 || version == 91001) {
    return refuse("9.10.0 and 9.10.1 compute wrong results");
  }
  // Older versions need a mask for gradients if the keys do not fill the last
  // tile.
  if (problem.is_gradient && version <= 91500 &&
      geometry.key_count % 128 != 0) {
    return refuse(
        "gradients need version 9.15.1 or later if the number of keys is not a "
        "multiple of 128");
  }
  return absl::OkStatus();
}

}  // namespace

std::string Describe(const AttentionProblem& problem) {
  const AttentionGeometry& geometry = problem.geometry;
  std::string text = absl::StrCat(
      problem.is_gradient ? "gradient of attention " : "attention ",
      DTypeString(problem.dtype), " batch ", geometry.batch, " heads ",
      geometry.heads, " time ", geometry.query_count, " ", geometry.key_count,
      " features ", geometry.key_dim, " ", geometry.value_dim, " scale ",
      problem.scale, problem.is_causal ? " causal" : "");
  if (geometry.bias_extents.has_value()) {
    absl::StrAppend(&text, " bias ",
                    absl::StrJoin(*geometry.bias_extents, " "));
  }
  return text;
}

absl::StatusOr<CudnnPlan> MakeCudnnPlan(const CudnnTarget& target,
                                        const AttentionProblem& problem) {
  RETURN_IF_ERROR(CheckIsSupported(target.api->version, problem));
  ASSIGN_OR_RETURN(CudnnGraph graph,
                   internal::MakeAttentionGraph(target, problem));
  CudnnEngineRules rules = {.what = "attention"};
  // Allows as much workspace as unfused attention needs for p and a gradient of
  // the scores.
  const AttentionGeometry& geometry = problem.geometry;
  rules.workspace_bytes_max =
      std::max(rules.workspace_bytes_max,
               geometry.StatisticsShape().element_count() * geometry.key_count *
                   static_cast<int64_t>(2 * SizeOf(problem.dtype)));
  return CudnnPlan::Create(target, std::move(graph), rules);
}

}  // namespace muster
