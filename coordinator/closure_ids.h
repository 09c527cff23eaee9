#ifndef COORDINATOR_CLOSURE_IDS_H_
#define COORDINATOR_CLOSURE_IDS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace muster {

// A set of closure ids. Ids come nearly in order, so it takes the memory of its
// gaps. A value; not thread-safe.
class ClosureIds {
 public:
  void Add(uint64_t id);
  bool Contains(uint64_t id) const;
  int64_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  // Those that `other` has not.
  ClosureIds Minus(const ClosureIds& other) const;

  // The lowest `count_max`.
  std::vector<uint64_t> First(size_t count_max) const;

  bool operator==(const ClosureIds& other) const {
    return runs_ == other.runs_;
  }

 private:
  void AddRun(uint64_t begin, uint64_t end);

  std::map<uint64_t, uint64_t> runs_;  // Begin to end; apart from each other.
  int64_t size_ = 0;
};

}  // namespace muster

#endif  // COORDINATOR_CLOSURE_IDS_H_
