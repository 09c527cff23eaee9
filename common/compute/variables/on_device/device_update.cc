#include "common/compute/variables/on_device/device_update.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/compute/functions/gradient_clipping.h"
#include "common/compute/kernels/cuda/device_code/copy_image.h"
#include "common/compute/kernels/cuda/device_code/kernel_parameters.h"
#include "common/compute/kernels/cuda/device_code/update_image.h"
#include "common/compute/variables/constraint.h"
#include "common/compute/variables/on_device/thread_for_each.h"
#include "common/core/base/status_macros.h"
#include "common/core/device/driver/launch_shape.h"

namespace muster {
namespace {

using internal::ChangeKind;
using internal::ClipFactorsParameters;
using internal::ClipKind;
using internal::ConstrainParameters;
using internal::DeviceElements;
using internal::DeviceLayout;
using internal::ElementType;
using internal::LambRatiosParameters;
using internal::SquaresParameters;
using internal::UpdateItem;
using internal::UpdateParameters;

// Both enums have the same numbers; launch.cc checks it.
ElementType ElementTypeOf(DType dtype) {
  return static_cast<ElementType>(dtype);
}

DeviceElements ElementsOf(const Tensor& tensor) {
  return {const_cast<uint8_t*>(tensor.address()),
          ElementTypeOf(tensor.dtype())};
}

ChangeKind ChangeOf(UpdateKind kind) {
  switch (kind) {
    case UpdateKind::kAssignAdd:
    case UpdateKind::kScatterAdd:
      return ChangeKind::kAdd;
    case UpdateKind::kAssignSub:
    case UpdateKind::kScatterSub:
      return ChangeKind::kSubtract;
    default:
      return ChangeKind::kReplace;
  }
}

void AddAxis(int64_t extent, int64_t stride, DeviceLayout* layout) {
  layout->extents[layout->rank] = extent;
  layout->strides[layout->rank] = stride;
  ++layout->rank;
}

void SetClipping(const GradientClipping& clipping, UpdateItem* item) {
  if (clipping.global_clipnorm > 0) {
    item->clip = ClipKind::kGlobalNorm;
    item->clip_limit = clipping.global_clipnorm;
  } else if (clipping.clipvalue > 0) {
    item->clip = ClipKind::kValue;
    item->clip_limit = clipping.clipvalue;
  } else if (clipping.clipnorm > 0) {
    item->clip = ClipKind::kNorm;
    item->clip_limit = clipping.clipnorm;
  }
}

}  // namespace

template <typename Parameter>
absl::Status DeviceUpdate::Launch(const KernelImage& image,
                                  absl::string_view kernel,
                                  const LaunchShape& shape,
                                  Parameter parameter) {
  if (shape.grid[0] == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const KernelFunction function,
                   device_.FindKernel(image, kernel));
  const KernelArgument addresses[] = {&parameter};
  return stream_.Launch(function, shape, addresses);
}

absl::Status DeviceUpdate::Gather(const DeviceVariable& variable,
                                  const Tensor& indices,
                                  internal::FaultRecord* fault, Tensor* rows) {
  return Launch(
      internal::copy_image(), "gather_words",
      ThreadForEach(rows->element_count()),
      internal::GatherParameters{
          .count = rows->element_count(),
          .from = variable.value.address(),
          .to = rows->address(),
          .word_bytes = static_cast<int32_t>(SizeOf(variable.type.dtype)),
          .indices = ElementsOf(indices),
          .index_count = indices.element_count(),
          .bound = variable.row_count(),
          .inner = variable.row_elements(),
          .fault = fault});
}

absl::Status DeviceUpdate::LinkRows(const DeviceVariable& variable,
                                    const Tensor& indices, uint8_t* links,
                                    internal::FaultRecord* fault,
                                    DeviceRows* rows) {
  auto* const row_links = reinterpret_cast<internal::RowLink*>(links);
  *rows = {.indices = ElementsOf(indices), .links = row_links};
  const int64_t count = indices.element_count();
  internal::SortRowsParameters sort{
      .count = count,
      .indices = rows->indices,
      .run = internal::SortRowsParameters::kFirstRun,
      .from = nullptr,
      .to = reinterpret_cast<int32_t*>(row_links + count)};
  int32_t* other = sort.to + count;
  RETURN_IF_ERROR(Launch(internal::update_image(), "sort_runs",
                         ThreadForEach(count), sort));
  for (; sort.run < count; sort.run *= 2) {
    sort.from = std::exchange(sort.to, other);
    other = const_cast<int32_t*>(sort.from);
    RETURN_IF_ERROR(Launch(internal::update_image(), "merge_runs",
                           ThreadForEach(count), sort));
  }
  return Launch(internal::update_image(), "link_rows", ThreadForEach(count),
                internal::LinkRowsParameters{.count = count,
                                             .indices = rows->indices,
                                             .sorted = sort.to,
                                             .bound = variable.row_count(),
                                             .links = row_links,
                                             .fault = fault});
}

absl::Status DeviceUpdate::SumRows(const DeviceVariable& variable,
                                   const Tensor& gradient,
                                   const DeviceRows& rows, uint8_t* sums) {
  return Launch(
      internal::update_image(),
      gradient.dtype() == DType::kFloat64 ? "sum_rows_double"
                                          : "sum_rows_float",
      ThreadForEach(gradient.element_count()),
      internal::SumRowsParameters{.count = gradient.element_count(),
                                  .row_elements = variable.row_elements(),
                                  .from = gradient.address(),
                                  .to = sums,
                                  .links = rows.links});
}

absl::Status DeviceUpdate::Change(UpdateKind kind, const Tensor& value,
                                  const DeviceRows& rows,
                                  DeviceVariable* variable) {
  if (kind == UpdateKind::kAssign && condition_.gate == nullptr) {
    return stream_.Copy(value, &variable->value);
  }
  return Launch(
      internal::update_image(),
      IsFloating(variable->type.dtype) ? "change_float" : "change_integer",
      ThreadForEach(value.element_count()),
      internal::ChangeParameters{
          .count = value.element_count(),
          .change = ChangeOf(kind),
          .values = ElementsOf(value),
          .variable = ElementsOf(variable->value),
          .row_elements = rows.links == nullptr ? 1 : variable->row_elements(),
          .indices = rows.indices,
          .links = rows.links,
          .gate = condition_.gate});
}

absl::Status DeviceUpdate::MakeDense(const DeviceVariable& variable,
                                     const Tensor& gradient,
                                     const DeviceRows& rows, uint8_t* dense) {
  const DType dtype = variable.type.dtype;
  RETURN_IF_ERROR(stream_.Fill(
      dense, 0, variable.type.shape.element_count() * SizeOf(dtype)));
  return Launch(
      internal::update_image(), "change_float",
      ThreadForEach(gradient.element_count()),
      internal::ChangeParameters{.count = gradient.element_count(),
                                 .change = ChangeKind::kAdd,
                                 .values = ElementsOf(gradient),
                                 .variable = {dense, ElementTypeOf(dtype)},
                                 .row_elements = variable.row_elements(),
                                 .indices = rows.indices,
                                 .links = rows.links,
                                 .gate = nullptr});
}

absl::Span<DeviceUpdate::Pass> DeviceUpdate::FindPasses(const UpdateRule& rule,
                                                        DType dtype,
                                                        int64_t step) {
  const auto is_wanted = [&](const Pass& pass) {
    return pass.rule == &rule && pass.dtype == dtype && pass.step == step;
  };
  const auto end = passes_.begin() + pass_count_;
  const auto first = std::find_if(passes_.begin(), end, is_wanted);
  if (first != end) {
    const auto after = std::find_if_not(first, end, is_wanted);
    return absl::MakeSpan(&*first, after - first);
  }
  rule_passes_.clear();
  rule.AddPasses(step, dtype, &rule_passes_);
  const size_t begin = pass_count_;
  pass_count_ += rule_passes_.size();
  if (passes_.size() < pass_count_) passes_.resize(pass_count_);
  for (size_t i = begin; i < pass_count_; ++i) {
    Pass& pass = passes_[i];
    pass.rule = &rule;
    pass.dtype = dtype;
    pass.step = step;
    pass.update = rule_passes_[i - begin];
    pass.items.clear();
    pass.block_count = 0;
  }
  return absl::MakeSpan(passes_).subspan(begin, rule_passes_.size());
}

void DeviceUpdate::AddGradient(const UpdateRule& rule, uint8_t* gradient,
                               int64_t count, const DeviceRows& rows,
                               const GradientClipping& clipping,
                               const DeviceVariable& variable, int64_t step) {
  for (Pass& pass : FindPasses(rule, variable.type.dtype, step)) {
    AddItem(rule, gradient, count, rows, clipping, variable, &pass);
  }
  if (variable.spec.has_constraint()) constrained_.push_back(&variable);
}

void DeviceUpdate::AddItem(const UpdateRule& rule, uint8_t* gradient,
                           int64_t count, const DeviceRows& rows,
                           const GradientClipping& clipping,
                           const DeviceVariable& variable, Pass* pass) {
  const UpdatePass& update = pass->update;
  const bool takes_gradient = update.operand == UpdateOperand::kGradient;
  const bool takes_mean = update.operand == UpdateOperand::kMean;
  if (!takes_gradient) count = variable.type.shape.element_count();
  if (count == 0) return;
  const auto slot = [&](int i) { return variable.slots[i].value.address(); };
  UpdateItem& item = pass->items.emplace_back(UpdateItem{});
  item.variable = update.target_slot < 0 ? variable.value.address()
                                         : slot(update.target_slot);
  if (takes_gradient) item.gradient = gradient;
  if (takes_mean) {
    item.gradient = slot(rule.accumulator_slot());
    item.gradients_in_sum = rule.gradients_per_update();
  }
  const int slot_count =
      std::min<int>(UpdateItem::kSlotsMax,
                    static_cast<int>(rule.slots().size()) - update.first_slot);
  for (int i = 0; i < slot_count; ++i) {
    item.slots[i] = slot(update.first_slot + i);
  }
  item.count = count;
  item.first_block = pass->block_count;
  item.row_elements = 1;
  if (takes_gradient && rows.links != nullptr) {
    item.indices = rows.indices;
    item.links = rows.links;
    item.row_elements = variable.row_elements();
  }
  item.type = ElementTypeOf(pass->dtype);
  // Clipping applies to the mean of accumulated gradients, not to their sum.
  if (takes_mean || (takes_gradient && update.target_slot < 0)) {
    SetClipping(clipping, &item);
  }
  constexpr int64_t kElements = UpdateParameters::kElementsPerBlock;
  pass->block_count += (count + kElements - 1) / kElements;
}

// Usually the addresses are those of an earlier step, and the table of that
// step is still on the device.
absl::StatusOr<const UpdateItem*> DeviceUpdate::UploadItems() {
  const size_t size_bytes = items_.size() * sizeof(UpdateItem);
  for (int i = 0; i < kTables; ++i) {
    const ItemTable& table = tables_[i];
    if (items_ != table.items) continue;
    last_table_ = i;
    return reinterpret_cast<const UpdateItem*>(table.memory.data());
  }
  last_table_ = (last_table_ + 1) % kTables;
  ItemTable& table = tables_[last_table_];
  table.items.clear();
  ASSIGN_OR_RETURN(uint8_t* const on_device,
                   table.memory.Get(&device_, &stream_, size_bytes));
  // Pageable memory: it has been read when the call returns.
  RETURN_IF_ERROR(stream_.Copy(items_.data(), on_device, size_bytes));
  table.items = items_;
  return reinterpret_cast<const UpdateItem*>(on_device);
}

absl::StatusOr<const double*> DeviceUpdate::ClipFactors(
    const UpdateItem* items) {
  const bool has_norms =
      std::any_of(items_.begin(), items_.end(), [](const UpdateItem& item) {
        return item.clip == ClipKind::kNorm ||
               item.clip == ClipKind::kGlobalNorm;
      });
  if (!has_norms) return nullptr;
  constexpr int kBlocks = SquaresParameters::kBlocksPerItem;
  const size_t item_count = items_.size();
  ASSIGN_OR_RETURN(uint8_t* const memory,
                   norms_.Get(&device_, &stream_,
                              item_count * (kBlocks + 1) * sizeof(double)));
  auto* const partials = reinterpret_cast<double*>(memory);
  double* const factors = partials + item_count * kBlocks;
  RETURN_IF_ERROR(
      Launch(internal::update_image(), "sum_squares",
             {.grid = {kBlocks, static_cast<uint32_t>(item_count), 1},
              .block = {SquaresParameters::kThreads, 1, 1}},
             SquaresParameters{.items = items, .partials = partials}));
  RETURN_IF_ERROR(Launch(
      internal::update_image(), "clip_factors",
      {.block = {ClipFactorsParameters::kThreads, 1, 1}},
      ClipFactorsParameters{.items = items,
                            .item_count = static_cast<int64_t>(item_count),
                            .partials = partials,
                            .factors = factors}));
  return factors;
}

absl::StatusOr<const double*> DeviceUpdate::LambRatios(
    const Pass& pass, const UpdateItem* items) {
  constexpr int kBlocks = SquaresParameters::kBlocksPerItem;
  const size_t item_count = pass.items.size();
  ASSIGN_OR_RETURN(
      uint8_t* const memory,
      ratios_.Get(&device_, &stream_,
                  item_count * (2 * kBlocks + 1) * sizeof(double)));
  auto* const partials = reinterpret_cast<double*>(memory);
  LambRatiosParameters parameters{
      .items = items,
      .item_count = static_cast<int64_t>(item_count),
      .partials = partials,
      .ratios = partials + item_count * 2 * kBlocks,
      .coefficients = {}};
  std::memcpy(parameters.coefficients, pass.update.coefficients,
              sizeof(parameters.coefficients));
  RETURN_IF_ERROR(
      Launch(internal::update_image(),
             pass.dtype == DType::kFloat64 ? "lamb_squares_double"
                                           : "lamb_squares_float",
             {.grid = {kBlocks, static_cast<uint32_t>(item_count), 1},
              .block = {SquaresParameters::kThreads, 1, 1}},
             parameters));
  RETURN_IF_ERROR(Launch(internal::update_image(), "lamb_ratios",
                         ThreadForEach(parameters.item_count), parameters));
  return parameters.ratios;
}

absl::Status DeviceUpdate::ApplyWhole(const Pass& pass, const UpdateItem* items,
                                      const double* factors) {
  for (size_t i = 0; i < pass.items.size(); ++i) {
    RETURN_IF_ERROR(whole_update_.Apply(
        pass.update, pass.dtype, pass.items[i].count,
        {.item = items + i,
         .factor = factors == nullptr ? nullptr : factors + i,
         .condition = condition_}));
  }
  return absl::OkStatus();
}

absl::Status DeviceUpdate::LaunchPass(const Pass& pass, const UpdateItem* items,
                                      const double* factors) {
  if (pass.update.sees_whole_variable) return ApplyWhole(pass, items, factors);
  UpdateParameters parameters{
      .items = items,
      .item_count = static_cast<int64_t>(pass.items.size()),
      .factors = factors,
      .condition = condition_,
      .coefficients = {}};
  std::memcpy(parameters.coefficients, pass.update.coefficients,
              sizeof(parameters.coefficients));
  LaunchShape shape;
  shape.grid[0] = static_cast<uint32_t>(pass.block_count);
  shape.block[0] = UpdateParameters::kThreads;
  return Launch(
      internal::update_image(),
      absl::StrCat("update_", pass.update.function,
                   pass.dtype == DType::kFloat64 ? "_double" : "_float"),
      shape, parameters);
}

absl::Status DeviceUpdate::ApplyPasses() {
  const absl::Span<const Pass> passes =
      absl::MakeSpan(passes_).subspan(0, std::exchange(pass_count_, 0));
  items_.clear();
  for (const Pass& pass : passes) {
    items_.insert(items_.end(), pass.items.begin(), pass.items.end());
  }
  if (items_.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const UpdateItem* const items, UploadItems());
  // The norms are of the sums that this step completes, so the passes that add
  // to sums come first.
  const UpdateItem* of_pass = items;
  for (const Pass& pass : passes) {
    if (pass.update.target_slot >= 0) {
      RETURN_IF_ERROR(LaunchPass(pass, of_pass, nullptr));
    }
    of_pass += pass.items.size();
  }
  ASSIGN_OR_RETURN(const double* const factors, ClipFactors(items));
  of_pass = items;
  for (const Pass& pass : passes) {
    const double* of_items = nullptr;
    if (pass.update.operand == UpdateOperand::kLambRatio) {
      ASSIGN_OR_RETURN(of_items, LambRatios(pass, of_pass));
    } else if (factors != nullptr &&
               pass.update.operand != UpdateOperand::kNone) {
      of_items = factors + (of_pass - items);
    }
    if (pass.update.target_slot < 0) {
      RETURN_IF_ERROR(LaunchPass(pass, of_pass, of_items));
    }
    of_pass += pass.items.size();
  }
  return absl::OkStatus();
}

absl::Status DeviceUpdate::Apply() {
  RETURN_IF_ERROR(ApplyPasses());
  for (const DeviceVariable* const variable : constrained_) {
    RETURN_IF_ERROR(Constrain(*variable));
  }
  constrained_.clear();
  return absl::OkStatus();
}

absl::Status DeviceUpdate::Constrain(const DeviceVariable& variable) {
  const Shape& shape = variable.type.shape;
  const char* const type =
      variable.type.dtype == DType::kFloat64 ? "_double" : "_float";
  ConstrainParameters parameters{.variable = variable.value.address(),
                                 .element_count = shape.element_count(),
                                 .bounds = {},
                                 .norms = {},
                                 .elements = {},
                                 .condition = condition_};
  const auto constraint =
      NormConstraintOf(variable.spec.constraint(), shape.rank());
  if (!constraint.has_value()) {
    return Launch(internal::update_image(),
                  absl::StrCat("constrain_signs", type),
                  ThreadForEach(parameters.element_count), parameters);
  }
  parameters.bounds = constraint->bounds;
  parameters.element_count = 1;
  int64_t norm_count = 1;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const bool is_reduced = constraint->is_reduced[axis];
    (is_reduced ? parameters.element_count : norm_count) *= shape.dim(axis);
    AddAxis(shape.dim(axis), shape.ElementCountInRange(axis + 1, shape.rank()),
            is_reduced ? &parameters.elements : &parameters.norms);
  }
  if (parameters.element_count == 0) return absl::OkStatus();
  LaunchShape launch;
  launch.grid[0] = static_cast<uint32_t>(norm_count);
  launch.block[0] = ConstrainParameters::kThreads;
  return Launch(internal::update_image(), absl::StrCat("constrain_norms", type),
                launch, parameters);
}

}  // namespace muster
