#include "common/compute/runtime/replica_kernels.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/net/collectives/reduce_op.h"

namespace muster {
namespace {

using KernelOr = absl::StatusOr<std::unique_ptr<Kernel>>;

class NumberKernel : public Kernel {
 public:
  explicit NumberKernel(int32_t number) : number_(number) {}

  absl::Status Run(const KernelArguments& arguments) override {
    arguments.outputs[0]->mutable_flat<int32_t>()[0] = number_;
    return absl::OkStatus();
  }

 private:
  const int32_t number_;
};

class AllReduceKernel : public Kernel {
 public:
  AllReduceKernel(ReduceOp op, absl::string_view name, ReplicaLink* link)
      : op_(op), name_(name), link_(link) {}

  absl::Status Run(const KernelArguments& arguments) override {
    const Tensor& from = *arguments.inputs[0];
    Tensor& to = *arguments.outputs[0];
    if (from.size_bytes() > 0 && from.raw_data() != to.raw_data()) {
      std::memcpy(to.mutable_raw_data(), from.raw_data(), from.size_bytes());
    }
    return link_->AllReduce(op_, &to, name_);
  }

  bool MayShareOutputWithInput(int) const override { return true; }

 private:
  const ReduceOp op_;
  const std::string name_;
  ReplicaLink* const link_;
};

class AllGatherKernel : public Kernel {
 public:
  AllGatherKernel(std::vector<int64_t> element_counts, absl::string_view name,
                  ReplicaLink* link)
      : element_counts_(std::move(element_counts)), name_(name), link_(link) {}

  absl::Status Run(const KernelArguments& arguments) override {
    return link_->AllGather(*arguments.inputs[0], element_counts_,
                            arguments.outputs[0], name_);
  }

 private:
  const std::vector<int64_t> element_counts_;
  const std::string name_;
  ReplicaLink* const link_;
};

class PartKernel : public Kernel {
 public:
  explicit PartKernel(int64_t first_row) : first_row_(first_row) {}

  absl::Status Run(const KernelArguments& arguments) override {
    Tensor& part = *arguments.outputs[0];
    if (part.size_bytes() == 0) return absl::OkStatus();
    const size_t row_bytes = part.size_bytes() / part.shape().dim(0);
    std::memcpy(part.mutable_raw_data(),
                arguments.inputs[0]->raw_data() + first_row_ * row_bytes,
                part.size_bytes());
    return absl::OkStatus();
  }

 private:
  const int64_t first_row_;
};

absl::StatusOr<ReduceOp> ReductionOf(const KernelSpec& spec) {
  ASSIGN_OR_RETURN(const std::string name,
                   spec.attributes.Get<std::string>("reduction"));
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMean, ReduceOp::kMin,
                            ReduceOp::kMax, ReduceOp::kProd}) {
    if (name == ReduceOpName(op)) return op;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("there is no reduction \"", name, "\""));
}

// Returns the row counts that WithTypes() attached, one for each replica.
absl::StatusOr<std::vector<int64_t>> ReplicaRows(const KernelSpec& spec,
                                                 const ReplicaLink& link) {
  ASSIGN_OR_RETURN(
      std::vector<int64_t> rows,
      spec.attributes.Get<std::vector<int64_t>>(kReplicaRowsAttribute));
  if (static_cast<int>(rows.size()) == link.replica_count()) return rows;
  return absl::InvalidArgumentError(
      absl::StrCat("the rows of ", rows.size(), " replicas are known, but ",
                   link.replica_count(), " take part"));
}

KernelOr MakeAllGather(const KernelSpec& spec, absl::string_view name,
                       ReplicaLink* link) {
  ASSIGN_OR_RETURN(std::vector<int64_t> counts, ReplicaRows(spec, *link));
  const Shape& shape = spec.inputs[0].shape;
  const int64_t row = shape.ElementCountInRange(1, shape.rank());
  for (int64_t& count : counts) count *= row;
  return std::make_unique<AllGatherKernel>(std::move(counts), name, link);
}

KernelOr MakePart(const KernelSpec& spec, const ReplicaLink& link) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> rows, ReplicaRows(spec, link));
  return std::make_unique<PartKernel>(std::accumulate(
      rows.begin(), rows.begin() + link.replica_id(), int64_t{0}));
}

}  // namespace

bool DependsOnReplicaRows(const Graph& graph, const OpRegistry& ops) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [&ops](const Node& node) {
                       return ops.FindOrPlain(node.op).replica_rows_input !=
                              OpSchema::kNoInput;
                     });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeReplicaKernel(
    const KernelSpec& spec, absl::string_view node_name, ReplicaLink* link) {
  if (spec.op == "ReplicaId") {
    return std::make_unique<NumberKernel>(link->replica_id());
  }
  if (spec.op == "ReplicaCount") {
    return std::make_unique<NumberKernel>(link->replica_count());
  }
  if (spec.op == "AllReduce") {
    ASSIGN_OR_RETURN(const ReduceOp op, ReductionOf(spec));
    return std::make_unique<AllReduceKernel>(op, node_name, link);
  }
  if (spec.op == "AllGather") return MakeAllGather(spec, node_name, link);
  if (spec.op == "ReplicaPart") return MakePart(spec, *link);
  return absl::InvalidArgumentError(
      absl::StrCat("the runtime has no kernel between replicas for ", spec.op));
}

}  // namespace muster
