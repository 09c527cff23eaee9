#include "common/core/base/lifetime.h"

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct Lamp {
  Borrowed<Lamp> Borrow() { return {this, lifetime, "lamp \"red\""}; }
  Lifetime lifetime;
};

TEST(LifetimeTest, EndsWithTheObject) {
  auto lamp = std::make_unique<Lamp>();
  const Borrowed<Lamp> borrowed = lamp->Borrow();
  EXPECT_EQ(borrowed.get(), lamp.get());
  EXPECT_FALSE(borrowed.is_destroyed());
  EXPECT_OK(borrowed.Check("the switch"));
  lamp = nullptr;
  EXPECT_EQ(borrowed.get(), nullptr);
  EXPECT_TRUE(borrowed.is_destroyed());
  EXPECT_THAT(borrowed.Check("the switch"),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("lamp \"red\" has been destroyed"),
                             HasSubstr("the switch needs it"))));
}

TEST(LifetimeTest, EndsWhenTheObjectMovesAway) {
  Lamp lamp;
  const Borrowed<Lamp> first = lamp.Borrow();
  Lamp other = std::move(lamp);
  EXPECT_TRUE(first.is_destroyed());
  const Borrowed<Lamp> second = other.Borrow();
  EXPECT_EQ(second.get(), &other);
  other = Lamp();
  EXPECT_TRUE(second.is_destroyed());
  EXPECT_EQ(other.Borrow().get(), &other);
}

TEST(LifetimeTest, AnUnsetPointerIsNotADestroyedObject) {
  const Borrowed<Lamp> none;
  EXPECT_EQ(none.get(), nullptr);
  EXPECT_FALSE(none.is_destroyed());
  EXPECT_OK(none.Check("the switch"));
}

}  // namespace
}  // namespace muster
