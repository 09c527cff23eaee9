#include "common/compute/variables/device_update.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/compute/kernels/cuda/copy_image.h"
#include "common/compute/kernels/cuda/kernel_parameters.h"
#include "common/compute/kernels/cuda/update_image.h"
#include "common/compute/ops/gradient_clipping.h"
#include "common/core/base/check.h"
#include "common/core/base/status_macros.h"
#include "common/core/device/launch_shape.h"

namespace muster {
namespace {

using internal::ChangeKind;
using internal::ClipFactorsParameters;
using internal::ClipKind;
using internal::DeviceElements;
using internal::ElementType;
using internal::SquaresParameters;
using internal::UpdateItem;
using internal::UpdateParameters;

// The numbers are the same; launch.cc checks that they are.
ElementType ElementTypeOf(DType dtype) {
  return static_cast<ElementType>(dtype);
}

DeviceElements ElementsOf(const Tensor& tensor) {
  return {const_cast<uint8_t*>(tensor.address()),
          ElementTypeOf(tensor.dtype())};
}

LaunchShape ThreadForEach(int64_t count) {
  constexpr int64_t kThreads = 256;
  LaunchShape shape;
  shape.grid[0] = static_cast<uint32_t>((count + kThreads - 1) / kThreads);
  shape.block[0] = kThreads;
  return shape;
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

absl::StatusOr<uint8_t*> DeviceScratch::Get(Device* device,
                                            DeviceStream* stream,
                                            size_t size_bytes) {
  if (buffer_ == nullptr || buffer_->size_bytes() < size_bytes) {
    buffer_ = nullptr;
    ASSIGN_OR_RETURN(buffer_,
                     device->memory().Allocate(
                         std::max<size_t>(size_bytes, 256),
                         {"working memory of updates", device->name()}));
    device->memory().NoteUse(*buffer_, stream);
  }
  return buffer_->data();
}

template <typename Parameter>
absl::Status DeviceUpdate::Launch(const KernelImage& image,
                                  absl::string_view kernel,
                                  const LaunchShape& shape,
                                  Parameter parameter) {
  if (shape.grid[0] == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const KernelFunction function,
                   device_.FindKernel(image, kernel));
  void* const addresses[] = {&parameter};
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
  if (kind == UpdateKind::kAssign && gate_ == nullptr) {
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
          .gate = gate_});
}

void DeviceUpdate::AddGradient(const UpdateRule& rule, const uint8_t* gradient,
                               int64_t count, const DeviceRows& rows,
                               const GradientClipping& clipping,
                               DeviceVariable* variable) {
  const DType dtype = variable->type.dtype;
  const int64_t step = variable->update_count++;
  if (count == 0) return;
  const auto end = groups_.begin() + group_count_;
  auto group = std::find_if(groups_.begin(), end, [&](const Group& candidate) {
    return candidate.dtype == dtype && candidate.step == step;
  });
  if (group == end) {
    if (group_count_ == groups_.size()) groups_.emplace_back();
    group = groups_.begin() + group_count_++;
    group->dtype = dtype;
    group->step = step;
    group->form = rule.FormAt(step, dtype);
    group->items.clear();
    group->block_count = 0;
  }
  UpdateItem& item = group->items.emplace_back();
  // Items are compared as bytes.
  std::memset(static_cast<void*>(&item), 0, sizeof(item));
  item.variable = variable->value.address();
  item.gradient = gradient;
  MUSTER_CHECK(rule.slots().size() <= size_t{UpdateItem::kSlotsMax});
  for (size_t i = 0; i < rule.slots().size(); ++i) {
    item.slots[i] = variable->slots[i].value.address();
  }
  item.count = count;
  item.first_block = group->block_count;
  item.indices = rows.indices;
  item.links = rows.links;
  item.row_elements = rows.links == nullptr ? 1 : variable->row_elements();
  item.type = ElementTypeOf(dtype);
  SetClipping(clipping, &item);
  constexpr int64_t kElements = UpdateParameters::kElementsPerBlock;
  group->block_count += (count + kElements - 1) / kElements;
}

// The addresses are those of the step before, as a rule.
absl::StatusOr<const UpdateItem*> DeviceUpdate::UploadItems() {
  const size_t size_bytes = items_.size() * sizeof(UpdateItem);
  ASSIGN_OR_RETURN(uint8_t* const on_device,
                   device_items_.Get(&device_, &stream_, size_bytes));
  if (items_.size() != uploaded_items_.size() ||
      std::memcmp(items_.data(), uploaded_items_.data(), size_bytes) != 0) {
    uploaded_items_.clear();
    // Pageable memory: it has been read when the call returns.
    RETURN_IF_ERROR(stream_.Copy(items_.data(), on_device, size_bytes));
    uploaded_items_ = items_;
  }
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

absl::Status DeviceUpdate::Apply() {
  if (group_count_ == 0) return absl::OkStatus();
  items_.clear();
  for (size_t i = 0; i < group_count_; ++i) {
    items_.insert(items_.end(), groups_[i].items.begin(),
                  groups_[i].items.end());
  }
  const size_t group_count = std::exchange(group_count_, 0);
  ASSIGN_OR_RETURN(const UpdateItem* items, UploadItems());
  ASSIGN_OR_RETURN(const double* factors, ClipFactors(items));
  int64_t begin = 0;
  for (size_t i = 0; i < group_count; ++i) {
    const Group& group = groups_[i];
    const int64_t item_count = static_cast<int64_t>(group.items.size());
    UpdateParameters parameters{
        .items = items + begin,
        .item_count = item_count,
        .factors = factors == nullptr ? nullptr : factors + begin,
        .gate = gate_,
        .coefficients = {}};
    std::memcpy(parameters.coefficients, group.form.coefficients,
                sizeof(parameters.coefficients));
    LaunchShape shape;
    shape.grid[0] = static_cast<uint32_t>(group.block_count);
    shape.block[0] = UpdateParameters::kThreads;
    RETURN_IF_ERROR(Launch(
        internal::update_image(),
        absl::StrCat("update_", group.form.function,
                     group.dtype == DType::kFloat64 ? "_double" : "_float"),
        shape, parameters));
    begin += item_count;
  }
  return absl::OkStatus();
}

}  // namespace muster
