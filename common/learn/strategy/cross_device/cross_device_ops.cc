#include "common/learn/strategy/cross_device/cross_device_ops.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/shape.h"
#include "common/net/collectives/reduce_kernels.h"

namespace muster {
namespace {

constexpr int kHierarchyReplicasMin = 4;

bool IsZero(const Tensor& value) {
  const uint8_t* const data = value.raw_data();
  return std::all_of(data, data + value.size_bytes(),
                     [](uint8_t byte) { return byte == 0; });
}

absl::Status CheckValues(const PerReplica& value, int replica_count) {
  if (value.size() != replica_count) {
    return absl::InvalidArgumentError(
        absl::StrCat("a value of ", value.size(), " replicas was given, and ",
                     replica_count, " take part"));
  }
  for (int r = 0; r < replica_count; ++r) {
    if (value[r].IsValid() && value[r].type() == value[0].type()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("replicas reduce values of one type; replica 0 has ",
                     value[0].type().ToString(), " and replica ", r, " has ",
                     value[r].type().ToString(),
                     ". Where only the rows differ, name their axis"));
  }
  return CheckReducible(value[0].dtype());
}

absl::StatusOr<Tensor> ReduceOneForAll(ReduceOp op, const Tensor& value,
                                       int replica_count) {
  if (!value.IsValid()) return absl::InvalidArgumentError("there is no value");
  const bool is_its_own = replica_count == 1 || op == ReduceOp::kMean ||
                          op == ReduceOp::kMin || op == ReduceOp::kMax;
  if (is_its_own || (op == ReduceOp::kSum && IsZero(value))) return value;
  return absl::InvalidArgumentError(
      absl::StrCat("the ", ReduceOpName(op), " over ", replica_count,
                   " replicas of one value that is the same for all, ",
                   value.type().ToString(),
                   ", could count it once or once for each; give each replica "
                   "its own (Run() "
                   "and DistributeValuesFromFunction() do), or take the mean"));
}

// Combines the values one after another, in the order of the replicas.
class InReplicaOrder final : public CrossDeviceOps {
 public:
  InReplicaOrder(absl::string_view name,
                 std::optional<DeviceReduction> device_reduction, int num_packs)
      : name_(name),
        device_reduction_(device_reduction),
        num_packs_(num_packs) {}

  absl::string_view name() const override { return name_; }
  std::optional<DeviceReduction> device_reduction() const override {
    return device_reduction_;
  }

 protected:
  int num_packs() const override { return num_packs_; }

  void Combine(ReduceOp op, DType dtype, int64_t element_count,
               absl::Span<const void* const> inputs,
               void* output) const override {
    muster::Reduce(op, dtype, element_count, inputs, {&output, 1});
  }

 private:
  const absl::string_view name_;
  const std::optional<DeviceReduction> device_reduction_;
  const int num_packs_;
};

class Hierarchical final : public CrossDeviceOps {
 public:
  explicit Hierarchical(int num_packs) : num_packs_(num_packs) {}

  absl::string_view name() const override {
    return "HierarchicalCopyAllReduce";
  }
  std::optional<DeviceReduction> device_reduction() const override {
    return DeviceReduction::kHierarchical;
  }

 protected:
  int num_packs() const override { return num_packs_; }

  void Combine(ReduceOp op, DType dtype, int64_t element_count,
               absl::Span<const void* const> inputs,
               void* output) const override {
    if (inputs.size() < kHierarchyReplicasMin) {
      muster::Reduce(op, dtype, element_count, inputs, {&output, 1});
      return;
    }
    const ReduceOp half_op = op == ReduceOp::kMean ? ReduceOp::kSum : op;
    const size_t half = (inputs.size() + 1) / 2;
    Tensor second(dtype, {element_count});
    muster::Reduce(half_op, dtype, element_count, inputs.subspan(0, half),
                   {&output, 1});
    void* second_data = second.mutable_raw_data();
    muster::Reduce(half_op, dtype, element_count, inputs.subspan(half),
                   {&second_data, 1});
    Accumulate(half_op, dtype, element_count, second_data, output);
    if (op == ReduceOp::kMean) {
      Divide(dtype, element_count, static_cast<int>(inputs.size()), output);
    }
  }

 private:
  const int num_packs_;
};

absl::Status CheckPacks(absl::string_view name, const PackOptions& options) {
  if (options.num_packs >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": num_packs is ", options.num_packs,
                   "; expected 0 (no packing) or more"));
}

}  // namespace

absl::StatusOr<Tensor> CrossDeviceOps::Reduce(ReduceOp op,
                                              const DistributedValue& value,
                                              int replica_count) const {
  if (const auto* const one = std::get_if<Tensor>(&value)) {
    return ReduceOneForAll(op, *one, replica_count);
  }
  const PerReplica& values = std::get<PerReplica>(value);
  RETURN_IF_ERROR(CheckValues(values, replica_count));
  std::vector<const void*> inputs;
  for (const Tensor& input : values.values()) {
    inputs.push_back(input.raw_data());
  }
  Tensor reduced(values[0].dtype(), values[0].shape());
  Combine(op, reduced.dtype(), reduced.element_count(), inputs,
          reduced.mutable_raw_data());
  return reduced;
}

absl::StatusOr<std::vector<Tensor>> CrossDeviceOps::BatchReduce(
    ReduceOp op, absl::Span<const PerReplica> values, int replica_count) const {
  std::vector<Tensor> reduced(values.size());
  std::map<DType, std::vector<int>> by_dtype;
  for (size_t i = 0; i < values.size(); ++i) {
    if (num_packs() == 0) {
      ASSIGN_OR_RETURN(reduced[i], Reduce(op, values[i], replica_count));
      continue;
    }
    RETURN_IF_ERROR(CheckValues(values[i], replica_count));
    reduced[i] = Tensor(values[i][0].dtype(), values[i][0].shape());
    by_dtype[reduced[i].dtype()].push_back(static_cast<int>(i));
  }
  for (const auto& [dtype, positions] : by_dtype) {
    CombinePacked(op, dtype, values, positions, &reduced);
  }
  return reduced;
}

void CrossDeviceOps::CombinePacked(ReduceOp op, DType dtype,
                                   absl::Span<const PerReplica> values,
                                   absl::Span<const int> positions,
                                   std::vector<Tensor>* reduced) const {
  int64_t element_count = 0;
  for (const int i : positions) element_count += (*reduced)[i].element_count();
  std::vector<Tensor> flat;
  for (int r = 0; r < values[positions[0]].size(); ++r) {
    flat.emplace_back(dtype, Shape{element_count});
    uint8_t* to = flat.back().mutable_raw_data();
    for (const int i : positions) {
      const Tensor& value = values[i][r];
      if (value.size_bytes() == 0) continue;
      std::memcpy(to, value.raw_data(), value.size_bytes());
      to += value.size_bytes();
    }
  }
  Tensor result(dtype, {element_count});
  std::vector<const void*> inputs;
  for (const Tensor& input : flat) inputs.push_back(input.raw_data());
  ReduceArrays(op, dtype, element_count, inputs, result.mutable_raw_data());
  const uint8_t* from = result.raw_data();
  for (const int i : positions) {
    Tensor& value = (*reduced)[i];
    if (value.size_bytes() == 0) continue;
    std::memcpy(value.mutable_raw_data(), from, value.size_bytes());
    from += value.size_bytes();
  }
}

void CrossDeviceOps::ReduceArrays(ReduceOp op, DType dtype,
                                  int64_t element_count,
                                  absl::Span<const void* const> inputs,
                                  void* output) const {
  const int pack_count = std::max(1, num_packs());
  const int64_t pack = element_count / pack_count;
  const size_t element_bytes = SizeOf(dtype);
  std::vector<const void*> parts(inputs.size());
  for (int p = 0; p < pack_count; ++p) {
    const bool is_last = p + 1 == pack_count;
    const int64_t begin = pack * p;
    const int64_t count = is_last ? element_count - begin : pack;
    if (count == 0) continue;
    const size_t offset = begin * element_bytes;
    for (size_t r = 0; r < inputs.size(); ++r) {
      parts[r] = static_cast<const uint8_t*>(inputs[r]) + offset;
    }
    Combine(op, dtype, count, parts, static_cast<uint8_t*>(output) + offset);
  }
}

PerReplica CrossDeviceOps::Broadcast(const Tensor& value,
                                     int replica_count) const {
  std::vector<Tensor> values;
  for (int r = 0; r < replica_count; ++r) values.push_back(value.Clone());
  return PerReplica(std::move(values));
}

std::shared_ptr<const CrossDeviceOps> ReductionToOneDevice() {
  return std::make_shared<InReplicaOrder>("ReductionToOneDevice",
                                          DeviceReduction::kToOneDevice, 0);
}

absl::StatusOr<std::shared_ptr<const CrossDeviceOps>> HierarchicalCopyAllReduce(
    const PackOptions& options) {
  RETURN_IF_ERROR(CheckPacks("HierarchicalCopyAllReduce", options));
  return std::make_shared<Hierarchical>(options.num_packs);
}

absl::StatusOr<std::shared_ptr<const CrossDeviceOps>> NcclAllReduce(
    const PackOptions& options) {
  RETURN_IF_ERROR(CheckPacks("NcclAllReduce", options));
  return std::make_shared<InReplicaOrder>("NcclAllReduce", std::nullopt,
                                          options.num_packs);
}

}  // namespace muster
