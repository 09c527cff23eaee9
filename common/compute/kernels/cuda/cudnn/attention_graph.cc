#include "common/compute/kernels/cuda/cudnn/attention_graph.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/core/base/status_macros.h"

namespace muster::internal {
namespace {

using cudnn::AttributeName;
using cudnn::DescriptorType;
using cudnn::PointwiseMode;
using cudnn::ReductionOperator;

// Axes are batch, heads, rows, columns.

CudnnAxes RowOrder(const CudnnAxes& extents) {
  return {extents[1] * extents[2] * extents[3], extents[2] * extents[3],
          extents[3], 1};
}

CudnnAxes Transposed(CudnnAxes axes) {
  std::swap(axes[2], axes[3]);
  return axes;
}

// Makes the descriptors of one graph. Finish() returns the first error. Handles
// identify tensors.
class GraphMaker {
 public:
  using Tensor = cudnn::Descriptor;

  GraphMaker(const CudnnTarget& target, DType dtype)
      : target_(target), dtype_(dtype) {}

  // Returns an operand [batch, time, heads, features] in memory.
  Tensor Operand(int64_t batch, int64_t time, int64_t heads, int64_t features) {
    return InMemory(dtype_, {batch, heads, time, features},
                    {time * heads * features, features, heads * features, 1});
  }
  // Returns the same memory as [batch, heads, features, time]. cuDNN's engines
  // expect the right operand of a product of rows with rows in this form.
  Tensor TransposedOperand(int64_t batch, int64_t time, int64_t heads,
                           int64_t features) {
    return InMemory(
        dtype_, {batch, heads, features, time},
        Transposed({time * heads * features, features, heads * features, 1}));
  }
  // Returns an operand float32[batch, heads, time] in memory.
  Tensor RowOperand(int64_t batch, int64_t heads, int64_t time) {
    const CudnnAxes extents = {batch, heads, time, 1};
    return InMemory(DType::kFloat32, extents, RowOrder(extents));
  }
  Tensor BiasOperand(const CudnnAxes& extents) {
    return InMemory(dtype_, extents, RowOrder(extents));
  }
  // Returns a number that the host passes with the addresses.
  Tensor Scalar(double value) {
    const CudnnAxes ones = {1, 1, 1, 1};
    graph_.scalars.push_back({next_id_, static_cast<float>(value)});
    return MakeTensor(DType::kFloat32, ones, ones, Kind::kByValue);
  }
  // Returns a tensor that is not stored in memory.
  Tensor Virtual(const CudnnAxes& extents, DType dtype = DType::kFloat32) {
    return MakeTensor(dtype, extents, RowOrder(extents), Kind::kVirtual);
  }
  // Returns a virtual tensor that is the operand of a product. The strides
  // indicate a transposed operand.
  Tensor VirtualOperand(const CudnnAxes& extents, const CudnnAxes& strides) {
    return MakeTensor(dtype_, extents, strides, Kind::kVirtual);
  }

  void MatMul(Tensor a, Tensor b, Tensor c) {
    Operation(DescriptorType::kMatMulOperation,
              {{AttributeName::kMatMulOperationA, a},
               {AttributeName::kMatMulOperationB, b},
               {AttributeName::kMatMulOperationC, c},
               {AttributeName::kMatMulOperationMatMul,
                Make(DescriptorType::kMatMul, [](CudnnDescriptor* matmul) {
                  matmul->Set(AttributeName::kMatMulComputeType,
                              cudnn::CudnnDataType::kFloat32);
                })}});
  }

  // y = x op b; `b` is null for functions of x.
  void Pointwise(PointwiseMode mode, Tensor x, Tensor b, Tensor y) {
    AddPointwise({mode, DType::kFloat32}, {.x = x, .b = b}, y);
  }

  // y = x where the column is at most the row, and `masked` elsewhere.
  void MaskCausally(const CudnnAxes& extents, Tensor x, Tensor masked,
                    Tensor y) {
    const Tensor row = Virtual(extents, DType::kInt32);
    AddPointwise({PointwiseMode::kIndex, DType::kInt32, 2}, {.x = x}, row);
    const Tensor column = Virtual(extents, DType::kInt32);
    AddPointwise({PointwiseMode::kIndex, DType::kInt32, 3}, {.x = x}, column);
    const Tensor is_kept = Virtual(extents, DType::kBool);
    AddPointwise({PointwiseMode::kGreaterEqual, DType::kBool},
                 {.x = row, .b = column}, is_kept);
    AddPointwise({PointwiseMode::kSelect, DType::kFloat32},
                 {.x = x, .b = masked, .t = is_kept}, y);
  }

  // Reduces the axes in which y has the extent 1.
  void Reduce(ReductionOperator op, Tensor x, Tensor y) {
    Operation(
        DescriptorType::kReductionOperation,
        {{AttributeName::kReductionOperationX, x},
         {AttributeName::kReductionOperationY, y},
         {AttributeName::kReductionOperationReduction,
          Make(DescriptorType::kReduction, [op](CudnnDescriptor* reduction) {
            reduction->Set(AttributeName::kReductionOperator, op);
            reduction->Set(AttributeName::kReductionComputeType,
                           cudnn::CudnnDataType::kFloat32);
          })}});
  }

  // y is x with other extents and strides.
  void Reshape(Tensor x, Tensor y) {
    Operation(DescriptorType::kReshapeOperation,
              {{AttributeName::kReshapeOperationX, x},
               {AttributeName::kReshapeOperationY, y}});
  }

  absl::StatusOr<CudnnGraph> Finish() {
    RETURN_IF_ERROR(status_);
    RETURN_IF_ERROR(
        FinishCudnnGraph(target_, operations_, &graph_.descriptors));
    return std::move(graph_);
  }

 private:
  enum class Kind { kInMemory, kVirtual, kByValue };
  struct Member {
    AttributeName attribute;
    cudnn::Descriptor descriptor;
  };

  struct PointwiseFunction {
    PointwiseMode mode;
    DType compute_type;
    std::optional<int64_t> axis = {};  // The axis of kIndex.
  };
  struct PointwiseInputs {
    Tensor x;
    Tensor b = nullptr;  // Null: the function has no such input.
    Tensor t = nullptr;
  };

  void AddPointwise(const PointwiseFunction& function,
                    const PointwiseInputs& inputs, Tensor y) {
    const Tensor made =
        Make(DescriptorType::kPointwise, [&](CudnnDescriptor* pointwise) {
          pointwise->Set(AttributeName::kPointwiseMode, function.mode);
          pointwise->Set(AttributeName::kPointwiseComputeType,
                         CudnnDataTypeOf(function.compute_type));
          if (function.axis.has_value()) {
            pointwise->Set(AttributeName::kPointwiseAxis, *function.axis);
          }
        });
    std::vector<Member> members = {
        {AttributeName::kPointwiseOperationPointwise, made},
        {AttributeName::kPointwiseOperationX, inputs.x},
        {AttributeName::kPointwiseOperationY, y}};
    if (inputs.b != nullptr) {
      members.push_back({AttributeName::kPointwiseOperationB, inputs.b});
    }
    if (inputs.t != nullptr) {
      members.push_back({AttributeName::kPointwiseOperationT, inputs.t});
    }
    Operation(DescriptorType::kPointwiseOperation, members);
  }

  // Returns null after an error.
  template <typename SetAttributes>
  cudnn::Descriptor Make(DescriptorType type, SetAttributes set) {
    if (!status_.ok()) return nullptr;
    auto made = CudnnDescriptor::Create(target_.api, type);
    if (made.ok()) {
      set(&*made);
      status_ = made->Finalize();
    } else {
      status_ = made.status();
    }
    if (!status_.ok()) return nullptr;
    graph_.descriptors.push_back(*std::move(made));
    return graph_.descriptors.back().handle();
  }

  Tensor InMemory(DType dtype, const CudnnAxes& extents,
                  const CudnnAxes& strides) {
    graph_.operand_ids.push_back(next_id_);
    return MakeTensor(dtype, extents, strides, Kind::kInMemory);
  }

  Tensor MakeTensor(DType dtype, const CudnnAxes& extents,
                    const CudnnAxes& strides, Kind kind) {
    const int64_t id = next_id_++;
    return Make(DescriptorType::kTensor, [&](CudnnDescriptor* tensor) {
      tensor->Set(AttributeName::kTensorDataType, CudnnDataTypeOf(dtype));
      tensor->SetList<int64_t>(AttributeName::kTensorDimensions, extents);
      tensor->SetList<int64_t>(AttributeName::kTensorStrides, strides);
      tensor->Set(AttributeName::kTensorUniqueId, id);
      tensor->Set(AttributeName::kTensorByteAlignment,
                  CudnnPlan::kAlignmentBytes);
      tensor->Set(AttributeName::kTensorIsVirtual, kind == Kind::kVirtual);
      tensor->Set(AttributeName::kTensorIsByValue, kind == Kind::kByValue);
    });
  }

  void Operation(DescriptorType type, const std::vector<Member>& members) {
    operations_.push_back(Make(type, [&](CudnnDescriptor* operation) {
      for (const Member& member : members) {
        operation->SetDescriptors(member.attribute, {member.descriptor});
      }
    }));
  }

  const CudnnTarget target_;
  const DType dtype_;
  CudnnGraph graph_;
  std::vector<cudnn::Descriptor> operations_;
  int64_t next_id_ = 1;
  absl::Status status_;
};

using Tensor = GraphMaker::Tensor;

// Returns scale q k' + bias, masked if the attention is causal. Creates the
// operand of the bias, after the other operands.
Tensor MakeScores(const AttentionProblem& problem, Tensor q, Tensor k,
                  Tensor scale, GraphMaker* make) {
  const AttentionGeometry& geometry = problem.geometry;
  const CudnnAxes extents = {geometry.batch, geometry.heads,
                             geometry.query_count, geometry.key_count};
  const Tensor products = make->Virtual(extents);
  make->MatMul(q, k, products);
  const Tensor scaled = make->Virtual(extents);
  make->Pointwise(PointwiseMode::kMul, products, scale, scaled);
  Tensor scores = scaled;
  if (geometry.bias_extents.has_value()) {
    scores = make->Virtual(extents);
    make->Pointwise(PointwiseMode::kAdd, scaled,
                    make->BiasOperand(*geometry.bias_extents), scores);
  }
  if (!problem.is_causal) return scores;
  const Tensor masked = make->Virtual(extents);
  make->MaskCausally(extents, scores,
                     make->Scalar(std::numeric_limits<float>::lowest()),
                     masked);
  return masked;
}

// o = softmax(scale q k' + bias) v. The softmax subtracts the maximum of each
// row first.
absl::StatusOr<CudnnGraph> MakeForward(const CudnnTarget& target,
                                       const AttentionProblem& problem) {
  const auto& [batch, heads, time, source_time, key_dim, value_dim, bias] =
      problem.geometry;
  GraphMaker make(target, problem.dtype);
  const Tensor q = make.Operand(batch, time, heads, key_dim);
  const Tensor k = make.TransposedOperand(batch, source_time, heads, key_dim);
  const Tensor v = make.Operand(batch, source_time, heads, value_dim);
  const Tensor o = make.Operand(batch, time, heads, value_dim);
  const Tensor statistics = make.RowOperand(batch, heads, time);
  const CudnnAxes scores = {batch, heads, time, source_time};
  const CudnnAxes rows = {batch, heads, time, 1};

  const Tensor logits =
      MakeScores(problem, q, k, make.Scalar(problem.scale), &make);
  const Tensor maximum = make.Virtual(rows);
  make.Reduce(ReductionOperator::kMax, logits, maximum);
  const Tensor shifted = make.Virtual(scores);
  make.Pointwise(PointwiseMode::kSub, logits, maximum, shifted);
  const Tensor exponentials = make.Virtual(scores);
  make.Pointwise(PointwiseMode::kExp, shifted, nullptr, exponentials);
  const Tensor sum = make.Virtual(rows);
  make.Reduce(ReductionOperator::kAdd, exponentials, sum);
  const Tensor logarithm = make.Virtual(rows);
  make.Pointwise(PointwiseMode::kLog, sum, nullptr, logarithm);
  make.Pointwise(PointwiseMode::kAdd, maximum, logarithm, statistics);
  const Tensor p = make.VirtualOperand(scores, RowOrder(scores));
  make.Pointwise(PointwiseMode::kDiv, exponentials, sum, p);
  make.MatMul(p, v, o);
  return make.Finish();
}

// With p = exp(scale q k' + bias - statistics):
//   dv = p' do
//   ds = scale p (do v' - sum(do o))
//   dk = ds' q, dq = ds k
// ds is not an operand; cuDNN keeps it in its workspace. cuDNN's engines know
// another graph, which adds parts of dq in float32 in the order in which they
// are ready. Its bits differ from run to run.
absl::StatusOr<CudnnGraph> MakeGradient(const CudnnTarget& target,
                                        const AttentionProblem& problem) {
  const auto& [batch, heads, time, source_time, key_dim, value_dim, bias] =
      problem.geometry;
  GraphMaker make(target, problem.dtype);
  const Tensor d_o = make.Operand(batch, time, heads, value_dim);
  const Tensor q = make.Operand(batch, time, heads, key_dim);
  const Tensor k = make.TransposedOperand(batch, source_time, heads, key_dim);
  const Tensor v = make.TransposedOperand(batch, source_time, heads, value_dim);
  const Tensor o = make.Operand(batch, time, heads, value_dim);
  const Tensor statistics = make.RowOperand(batch, heads, time);
  const Tensor dq = make.Operand(batch, time, heads, key_dim);
  const Tensor dk = make.Operand(batch, source_time, heads, key_dim);
  const Tensor dv = make.Operand(batch, source_time, heads, value_dim);
  const Tensor sums = make.RowOperand(batch, heads, time);
  const Tensor scale = make.Scalar(problem.scale);
  const CudnnAxes scores = {batch, heads, time, source_time};
  const CudnnAxes outputs = {batch, heads, time, value_dim};
  const CudnnAxes rows = {batch, heads, time, 1};

  const Tensor shares = make.Virtual(outputs);
  make.Pointwise(PointwiseMode::kMul, d_o, o, shares);
  const Tensor row_sums = make.Virtual(rows);
  make.Reduce(ReductionOperator::kAdd, shares, row_sums);
  // Engines expect the factor of a dropout here.
  make.Pointwise(PointwiseMode::kMul, row_sums, make.Scalar(1), sums);

  const Tensor logits = MakeScores(problem, q, k, scale, &make);
  const Tensor shifted = make.Virtual(scores);
  make.Pointwise(PointwiseMode::kSub, logits, statistics, shifted);
  const Tensor p = make.Virtual(scores);
  make.Pointwise(PointwiseMode::kExp, shifted, nullptr, p);
  const Tensor p_transposed =
      make.VirtualOperand(Transposed(scores), Transposed(RowOrder(scores)));
  make.Reshape(p, p_transposed);
  make.MatMul(p_transposed, d_o, dv);

  const Tensor dp = make.Virtual(scores);
  make.MatMul(d_o, v, dp);
  const Tensor centered = make.Virtual(scores);
  make.Pointwise(PointwiseMode::kSub, dp, sums, centered);
  const Tensor weighted = make.Virtual(scores);
  make.Pointwise(PointwiseMode::kMul, centered, p, weighted);
  const Tensor ds = make.Virtual(scores);
  make.Pointwise(PointwiseMode::kMul, weighted, scale, ds);
  const Tensor ds_transposed =
      make.VirtualOperand(Transposed(scores), Transposed(RowOrder(scores)));
  make.Reshape(ds, ds_transposed);
  make.MatMul(ds_transposed, q, dk);
  const Tensor k_rows = make.VirtualOperand(
      {batch, heads, source_time, key_dim},
      {source_time * heads * key_dim, key_dim, heads * key_dim, 1});
  make.Reshape(k, k_rows);
  make.MatMul(ds, k_rows, dq);
  return make.Finish();
}

}  // namespace

absl::StatusOr<CudnnGraph> MakeAttentionGraph(const CudnnTarget& target,
                                              const AttentionProblem& problem) {
  return problem.is_gradient ? MakeGradient(target, problem)
                             : MakeForward(target, problem);
}

}  // namespace muster::internal
