#ifndef COORDINATOR_CLOSURE_IDS_H_
#define COORDINATOR_CLOSURE_IDS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace muster {

// A set of closure ids, stored as ranges. Ids are added almost in order, so its
// memory is proportional to the number of gaps. Copyable; not thread-safe.
class ClosureIds {
 public:
  void Add(uint64_t id);
  bool Contains(uint64_t id) const;
  int64_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  // Returns the ids that are not in `other`.
  ClosureIds Minus(const ClosureIds& other) const;

  // Returns the lowest `count_max` ids.
  std::vector<uint64_t> First(size_t count_max) const;

  bool operator==(const ClosureIds& other) const {
    return runs_ == other.runs_;
  }

 private:
  void AddRun(uint64_t begin, uint64_t end);

  // Ranges from begin to end (exclusive). They are disjoint and not adjacent.
  std::map<uint64_t, uint64_t> runs_;
  int64_t size_ = 0;
};

}  // namespace muster

#endif  // COORDINATOR_CLOSURE_IDS_H_
