#include "common/learn/nn/window.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/learn/nn/config_visitor.h"

namespace muster {
namespace {

// Returns true if the extents of a window are `rank` numbers of at least
// `least`. Otherwise reports the error to the visitor.
bool CheckExtents(ConfigVisitor& visitor, ConfigName name,
                  const std::vector<int64_t>& extents, size_t rank,
                  int64_t least = 1) {
  for (const int64_t extent : extents) {
    if (extent >= least) continue;
    visitor.Refuse(name,
                   absl::StrCat("must be at least ", least, ", got ", extent));
    return false;
  }
  if (extents.size() == rank) return true;
  visitor.Refuse(name, absl::StrCat("must be one number",
                                    rank == 3   ? ", or depth, height and width"
                                    : rank == 2 ? ", or height and width"
                                                : "",
                                    ", got ", extents.size(), " numbers"));
  return false;
}

ConfigName WithSizeDescription(ConfigName name) {
  if (!name.description.empty()) return name;
  return Described(name, "One number for all axes, or one for each axis.");
}

}  // namespace

void VisitSize(ConfigVisitor& visitor, ConfigName name, Size3D& size) {
  std::vector<int64_t> extents = {size.depth, size.height, size.width};
  visitor.Visit(WithSizeDescription(name), extents);
  if (extents.size() == 1) extents.assign(3, extents.front());
  if (CheckExtents(visitor, name, extents, 3)) {
    size = {extents[0], extents[1], extents[2]};
  }
}

void VisitSize(ConfigVisitor& visitor, ConfigName name, Size2D& size) {
  std::vector<int64_t> extents = {size.height, size.width};
  visitor.Visit(WithSizeDescription(name), extents);
  if (extents.size() == 1) extents.push_back(extents.front());
  if (CheckExtents(visitor, name, extents, 2)) size = {extents[0], extents[1]};
}

void VisitSize(ConfigVisitor& visitor, ConfigName name, int64_t& size) {
  std::vector<int64_t> extents = {size};
  visitor.Visit(name, extents);
  if (CheckExtents(visitor, name, extents, 1)) size = extents[0];
}

void VisitOptionalSize(ConfigVisitor& visitor, ConfigName name,
                       std::optional<Size3D>& size) {
  std::vector<int64_t> extents;
  if (size.has_value()) extents = {size->depth, size->height, size->width};
  visitor.Visit(WithSizeDescription(name), extents);
  if (extents.empty()) return;
  if (extents.size() == 1) extents.assign(3, extents.front());
  if (CheckExtents(visitor, name, extents, 3, 0)) {
    size = Size3D(extents[0], extents[1], extents[2]);
  }
}

void VisitOptionalSize(ConfigVisitor& visitor, ConfigName name,
                       std::optional<Size2D>& size) {
  std::vector<int64_t> extents;
  if (size.has_value()) extents = {size->height, size->width};
  visitor.Visit(WithSizeDescription(name), extents);
  if (extents.empty()) return;
  if (extents.size() == 1) extents.push_back(extents.front());
  if (CheckExtents(visitor, name, extents, 2, 0)) {
    size = Size2D(extents[0], extents[1]);
  }
}

void VisitOptionalSize(ConfigVisitor& visitor, ConfigName name,
                       std::optional<int64_t>& size) {
  std::vector<int64_t> extents;
  if (size.has_value()) extents = {*size};
  visitor.Visit(name, extents);
  if (extents.empty()) return;
  if (CheckExtents(visitor, name, extents, 1, 0)) size = extents[0];
}

void VisitPadding(ConfigVisitor& visitor, Padding& padding) {
  static constexpr absl::string_view kNames[] = {"valid", "same"};
  visitor.Visit("padding", padding, kNames);
}

}  // namespace muster
