#ifndef COMMON_CORE_BASE_LIFETIME_H_
#define COMMON_CORE_BASE_LIFETIME_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace muster {

// A member of an object that other objects point to. Records whether the object
// still exists at its address. Ends when the object is destroyed or moved from.
//
// Not thread-safe, except for token().
class Lifetime {
 public:
  Lifetime() = default;
  Lifetime(Lifetime&& moved) noexcept { moved.End(); }
  Lifetime& operator=(Lifetime&& moved) noexcept {
    End();
    moved.End();
    return *this;
  }

  std::weak_ptr<const char> token() const { return token_; }

 private:
  void End() { token_ = std::make_shared<const char>(); }

  std::shared_ptr<const char> token_ = std::make_shared<const char>();
};

// A pointer to an object that the program owns and may destroy before the
// pointer. A value, cheap to copy.
//
// Destroying the object while another thread uses it is a data race, as with
// any object.
template <typename T>
class Borrowed {
 public:
  Borrowed() = default;  // No object.
  // `object` is not null. `name` is for messages: `strategy "mirrored"`.
  Borrowed(T* object, const Lifetime& lifetime, std::string name)
      : object_(object), token_(lifetime.token()), name_(std::move(name)) {}

  // Null if there is no object, or it is destroyed.
  T* get() const { return token_.expired() ? nullptr : object_; }
  // Requires that the object exists.
  T& operator*() const { return *get(); }
  bool is_destroyed() const { return object_ != nullptr && token_.expired(); }
  const std::string& name() const { return name_; }

  // Checks that `user`, named as in `model "sequential"`, may use the object.
  //   kFailedPrecondition  the object is destroyed; the message names both
  //                        objects and says what to do
  absl::Status Check(
      absl::string_view user,
      absl::string_view advice = "keep it at least as long") const {
    if (!is_destroyed()) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(
        name_, " has been destroyed, and ", user, " needs it: ", advice));
  }

 private:
  T* object_ = nullptr;
  std::weak_ptr<const char> token_;
  std::string name_;
};

}  // namespace muster

#endif  // COMMON_CORE_BASE_LIFETIME_H_
