#include "common/net/collectives/schedule.h"

#include <algorithm>

#include "common/core/base/check.h"

namespace muster {
namespace {

using Action = Transfer::Action;
using Range = Communicator::Range;

int Modulo(int value, int size) { return ((value % size) + size) % size; }

void Add(std::vector<Transfer>& transfers, int peer, Range range,
         Action action = Action::kStore) {
  if (range.begin < range.end) transfers.push_back({peer, range, action});
}

// Returns, for each rank, the end of its part after ReduceScatter().
std::vector<int64_t> PartEnds(int64_t element_count, int size) {
  std::vector<int64_t> ends(size);
  for (int rank = 0; rank < size; ++rank) {
    ends[rank] = Communicator::PartOf(element_count, rank, size).end;
  }
  return ends;
}

Range PartAt(absl::Span<const int64_t> ends, int rank) {
  return {rank == 0 ? 0 : ends[rank - 1], ends[rank]};
}

void AppendDirectReduceScatter(int rank, absl::Span<const int64_t> ends,
                               Schedule& schedule) {
  const int size = static_cast<int>(ends.size());
  ScheduleStep& step = schedule.emplace_back();
  for (int distance = 1; distance < size; ++distance) {
    // The owner of a part adds the values of the ranks after it in order of
    // distance, so each rank sends to the nearest owner first.
    const int target = Modulo(rank - distance, size);
    Add(step.sends, target, PartAt(ends, target));
    Add(step.receives, Modulo(rank + distance, size), PartAt(ends, rank),
        distance == size - 1 ? Action::kAccumulateLast : Action::kAccumulate);
  }
}

void AppendDirectAllGather(int rank, absl::Span<const int64_t> ends,
                           Schedule& schedule) {
  const int size = static_cast<int>(ends.size());
  ScheduleStep& step = schedule.emplace_back();
  for (int distance = 1; distance < size; ++distance) {
    const int source = Modulo(rank + distance, size);
    Add(step.sends, Modulo(rank - distance, size), PartAt(ends, rank));
    Add(step.receives, source, PartAt(ends, source));
  }
}

void AppendRingReduceScatter(int rank, absl::Span<const int64_t> ends,
                             Schedule& schedule) {
  const int size = static_cast<int>(ends.size());
  for (int hop = 0; hop < size - 1; ++hop) {
    ScheduleStep& step = schedule.emplace_back();
    Add(step.sends, Modulo(rank + 1, size),
        PartAt(ends, Modulo(rank - hop - 1, size)));
    Add(step.receives, Modulo(rank - 1, size),
        PartAt(ends, Modulo(rank - hop - 2, size)),
        hop == size - 2 ? Action::kAccumulateLast : Action::kAccumulate);
  }
}

void AppendRingAllGather(int rank, absl::Span<const int64_t> ends,
                         Schedule& schedule) {
  const int size = static_cast<int>(ends.size());
  for (int hop = 0; hop < size - 1; ++hop) {
    ScheduleStep& step = schedule.emplace_back();
    Add(step.sends, Modulo(rank + 1, size),
        PartAt(ends, Modulo(rank - hop, size)));
    Add(step.receives, Modulo(rank - 1, size),
        PartAt(ends, Modulo(rank - hop - 1, size)));
  }
}

// If the number of ranks exceeds a power of two by e, ranks 0 to 2e-1 form
// pairs. The odd rank of each pair sends its values to the even rank first and
// receives the result last. The even ranks of the pairs and all other ranks are
// the players, which run the algorithm.
class HalvingDoubling {
 public:
  HalvingDoubling(int rank, int size, int64_t element_count)
      : rank_(rank), size_(size), whole_{0, element_count} {
    while (player_count_ * 2 <= size) player_count_ *= 2;
    paired_ = 2 * (size - player_count_);
  }

  Schedule MakeAllReduce() {
    const bool plays = BeginPairs();
    if (plays) {
      std::vector<Range> held;
      Double(Halve(&held), held);
    } else {
      schedule_.resize(schedule_.size() + 2 * RoundCount());
    }
    if (paired_ > 0) {
      ScheduleStep& step = schedule_.emplace_back();
      if (!plays) Add(step.receives, rank_ - 1, whole_);
      if (plays && rank_ < paired_) Add(step.sends, rank_ + 1, whole_);
    }
    return std::move(schedule_);
  }

  // Ends after the halving, with a step in which the players send the elements
  // of other ranks' parts to these.
  Schedule MakeReduceScatter() {
    if (BeginPairs()) {
      std::vector<Range> held;
      Halve(&held);
    } else {
      schedule_.resize(schedule_.size() + RoundCount());
    }
    ScheduleStep& step = schedule_.emplace_back();
    for (int distance = 1; distance < size_; ++distance) {
      const int target = Modulo(rank_ - distance, size_);
      Add(step.sends, target, Overlap(HeldBy(rank_), PartOf(target)));
      const int source = Modulo(rank_ + distance, size_);
      Add(step.receives, source, Overlap(HeldBy(source), PartOf(rank_)));
    }
    return std::move(schedule_);
  }

 private:
  int RankOf(int player) const {
    return player < paired_ / 2 ? 2 * player : player + paired_ / 2;
  }

  bool IsPlayer(int rank) const { return rank >= paired_ || rank % 2 == 0; }
  int PlayerOf(int rank) const {
    return rank < paired_ ? rank / 2 : rank - paired_ / 2;
  }
  Range PartOf(int rank) const {
    return Communicator::PartOf(whole_.end, rank, size_);
  }
  static Range Overlap(Range a, Range b) {
    return {std::max(a.begin, b.begin), std::min(a.end, b.end)};
  }
  int RoundCount() const {
    int count = 0;
    for (int distance = player_count_; distance > 1; distance /= 2) ++count;
    return count;
  }

  // Returns the half of `range` that a player keeps.
  static Range HalfOf(Range range, int player, int distance) {
    const int64_t middle = range.begin + (range.end - range.begin + 1) / 2;
    return (player & distance) == 0 ? Range{range.begin, middle}
                                    : Range{middle, range.end};
  }
  // Returns the elements that a rank has reduced after the halving.
  Range HeldBy(int rank) const {
    if (!IsPlayer(rank)) return {};
    Range range = whole_;
    for (int distance = player_count_ / 2; distance > 0; distance /= 2) {
      range = HalfOf(range, PlayerOf(rank), distance);
    }
    return range;
  }

  // Returns true if this rank is a player.
  bool BeginPairs() {
    if (paired_ == 0) return true;
    ScheduleStep& step = schedule_.emplace_back();
    if (!IsPlayer(rank_)) {
      Add(step.sends, rank_ - 1, whole_);
      return false;
    }
    if (rank_ < paired_) {
      Add(step.receives, rank_ + 1, whole_,
          player_count_ == 1 ? Action::kAccumulateLast : Action::kAccumulate);
    }
    return true;
  }

  // Appends to `held` the range of which this rank was in charge before each
  // halving. Returns the range after the last one.
  Range Halve(std::vector<Range>* held) {
    const int player = PlayerOf(rank_);
    Range range = whole_;
    for (int distance = player_count_ / 2; distance > 0; distance /= 2) {
      held->push_back(range);
      ScheduleStep& step = schedule_.emplace_back();
      const int partner = RankOf(player ^ distance);
      Add(step.sends, partner, HalfOf(range, player ^ distance, distance));
      range = HalfOf(range, player, distance);
      Add(step.receives, partner, range,
          distance == 1 ? Action::kAccumulateLast : Action::kAccumulate);
    }
    return range;
  }

  void Double(Range range, std::vector<Range> held) {
    for (int distance = 1; distance < player_count_; distance *= 2) {
      ScheduleStep& step = schedule_.emplace_back();
      const int partner = RankOf(PlayerOf(rank_) ^ distance);
      const Range wider = held.back();
      held.pop_back();
      Add(step.sends, partner, range);
      Add(step.receives, partner,
          range.begin == wider.begin ? Range{range.end, wider.end}
                                     : Range{wider.begin, range.begin});
      range = wider;
    }
  }

  const int rank_;
  const int size_;
  const Range whole_;
  int player_count_ = 1;
  int paired_ = 0;
  Schedule schedule_;
};

}  // namespace

absl::string_view AlgorithmName(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::kOneShot:
      return "one-shot";
    case Algorithm::kDirect:
      return "direct";
    case Algorithm::kRing:
      return "ring";
    case Algorithm::kHalvingDoubling:
      return "halving-doubling";
    case Algorithm::kTree:
      return "tree";
    case Algorithm::kDissemination:
      return "dissemination";
  }
  return "no algorithm";
}

Schedule AllReduceSchedule(Algorithm algorithm, int rank, int size,
                           int64_t element_count) {
  if (algorithm == Algorithm::kHalvingDoubling) {
    return HalvingDoubling(rank, size, element_count).MakeAllReduce();
  }
  Schedule schedule =
      ReduceScatterSchedule(algorithm, rank, size, element_count);
  const std::vector<int64_t> ends = PartEnds(element_count, size);
  if (algorithm == Algorithm::kDirect) {
    AppendDirectAllGather(rank, ends, schedule);
  } else {
    AppendRingAllGather(rank, ends, schedule);
  }
  return schedule;
}

Schedule ReduceScatterSchedule(Algorithm algorithm, int rank, int size,
                               int64_t element_count) {
  if (algorithm == Algorithm::kHalvingDoubling) {
    return HalvingDoubling(rank, size, element_count).MakeReduceScatter();
  }
  Schedule schedule;
  const std::vector<int64_t> ends = PartEnds(element_count, size);
  if (algorithm == Algorithm::kDirect) {
    AppendDirectReduceScatter(rank, ends, schedule);
  } else {
    MUSTER_CHECK(algorithm == Algorithm::kRing);
    AppendRingReduceScatter(rank, ends, schedule);
  }
  return schedule;
}

Schedule AllGatherSchedule(Algorithm algorithm, int rank,
                           absl::Span<const int64_t> ends) {
  Schedule schedule;
  if (algorithm == Algorithm::kDirect) {
    AppendDirectAllGather(rank, ends, schedule);
  } else {
    MUSTER_CHECK(algorithm == Algorithm::kRing);
    AppendRingAllGather(rank, ends, schedule);
  }
  return schedule;
}

Schedule BroadcastSchedule(int rank, int size, int root,
                           int64_t element_count) {
  // Places count from the root. In each step, every rank that has the values
  // sends them to one that does not.
  const int place = Modulo(rank - root, size);
  Schedule schedule;
  for (int holders = 1; holders < size; holders *= 2) {
    ScheduleStep& step = schedule.emplace_back();
    const Range whole{0, element_count};
    if (place < holders) {
      if (place + holders < size) {
        Add(step.sends, Modulo(place + holders + root, size), whole);
      }
    } else if (place < 2 * holders) {
      Add(step.receives, Modulo(place - holders + root, size), whole);
    }
  }
  return schedule;
}

Schedule BarrierSchedule(int rank, int size) {
  Schedule schedule;
  for (int distance = 1; distance < size; distance *= 2) {
    ScheduleStep& step = schedule.emplace_back();
    step.sends.push_back({Modulo(rank + distance, size), {}, Action::kStore});
    step.receives.push_back(
        {Modulo(rank - distance, size), {}, Action::kStore});
  }
  return schedule;
}

}  // namespace muster
