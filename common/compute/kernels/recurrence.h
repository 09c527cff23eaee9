#ifndef COMMON_COMPUTE_KERNELS_RECURRENCE_H_
#define COMMON_COMPUTE_KERNELS_RECURRENCE_H_

#include <algorithm>
#include <cstdint>
#include <utility>

#include "common/compute/kernels/cpu/vectorized.h"
#include "common/compute/kernels/recurrence_operands.h"
#include "common/compute/kernels/row_activation.h"
#include "common/core/tensor/recurrence_options.h"

// The loops over time of the ops Recurrence and RecurrenceGrad, for some rows
// of a batch. Rows do not depend on each other, so threads need no barriers.
//
// C is float or double. Loops::Run<Body>(...) calls Body::Run(...), possibly
// compiled for wider vectors. Products of a block of rows with the recurrent
// kernel are given as functions from contiguous rows to contiguous rows.
namespace muster::recurrence {

// y = a + b
struct RowSum {
  template <typename C>
  MUSTER_INLINE static void Run(int64_t count, const C* a, const C* b, C* y) {
    MUSTER_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < count; ++i) y[i] = a[i] + b[i];
  }
};
// y = a * b
struct Multiply {
  template <typename C>
  MUSTER_INLINE static void Run(int64_t count, const C* a, const C* b, C* y) {
    MUSTER_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < count; ++i) y[i] = a[i] * b[i];
  }
};
// y = a * b + c
struct MultiplyAdd {
  template <typename C>
  MUSTER_INLINE static void Run(int64_t count, const C* a, const C* b,
                                const C* c, C* y) {
    MUSTER_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < count; ++i) y[i] = a[i] * b[i] + c[i];
  }
};
// The cell of an LSTM: f * c + i * g.
struct LstmCell {
  template <typename C>
  MUSTER_INLINE static void Run(int64_t units, const C* gates, const C* before,
                                C* after) {
    const C* const f = gates + units;
    const C* const g = gates + 2 * units;
    MUSTER_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < units; ++i) {
      after[i] = f[i] * before[i] + gates[i] * g[i];
    }
  }
};
// The gradients of the gates i, f and g and of the cell before the step, from
// that of the cell after it, which is the sum of `dc` and `through_output`.
struct LstmCellGrad {
  template <typename C>
  MUSTER_INLINE static void Run(int64_t units, const C* gates, const C* before,
                                const C* through_output, C* dc, C* dgates) {
    const C* const f = gates + units;
    const C* const g = gates + 2 * units;
    MUSTER_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < units; ++i) {
      const C gradient = dc[i] + through_output[i];
      dgates[i] = gradient * g[i];
      dgates[i + units] = gradient * before[i];
      dgates[i + 2 * units] = gradient * gates[i];
      dc[i] = gradient * f[i];
    }
  }
};
// The state of a GRU: z * h + (1 - z) * g.
struct GruState {
  template <typename C>
  MUSTER_INLINE static void Run(int64_t units, const C* z, const C* h,
                                const C* g, C* after) {
    MUSTER_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < units; ++i) {
      after[i] = z[i] * h[i] + (1 - z[i]) * g[i];
    }
  }
};
struct GruStateGrad {
  template <typename C>
  MUSTER_INLINE static void Run(int64_t units, const C* z, const C* h,
                                const C* g, const C* dh, C* dz, C* dg,
                                C* direct) {
    MUSTER_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < units; ++i) {
      dz[i] = dh[i] * (h[i] - g[i]);
      dg[i] = dh[i] * (1 - z[i]);
      direct[i] = dh[i] * z[i];
    }
  }
};

// Divides memory among the arrays of one thread.
template <typename C>
class Workspace {
 public:
  explicit Workspace(C* memory) : next_(memory) {}
  C* Take(int64_t count) { return std::exchange(next_, next_ + count); }

 private:
  C* next_;
};

// The memory of a Workspace for `rows` rows, in numbers. Enough for both
// directions.
inline int64_t WorkspaceSize(int64_t rows, int64_t units) {
  return (16 * rows + 8) * units;
}

template <typename C, typename Loops>
class Forward {
 public:
  Forward(const RecurrenceOptions& options, const Extents& extents,
          const Activations<C>& activations, const ForwardOperands<C>& operands)
      : options_(options),
        extents_(extents),
        activations_(activations),
        operands_(operands) {}

  // `first` multiplies the output by the kernel; of kGruResetBefore by the
  // columns of z and r, and `second` multiplies r * h by those of g.
  template <typename First, typename Second>
  void Run(Rows rows, C* memory, First first, Second second) {
    Allocate(rows, memory);
    for (int64_t step = 0; step < extents_.time; ++step) {
      const C* const h = ScaledOutput(rows);
      first(h, products_);
      if (options_.cell == RecurrentCell::kGruResetBefore) {
        for (int64_t r = 0; r < rows.count(); ++r) ResetRow(rows, r, step, h);
        second(reset_, candidates_);
      }
      for (int64_t r = 0; r < rows.count(); ++r) {
        RunRow(rows, r, step, h + r * extents_.units);
      }
    }
    for (int s = 0; s < options_.state_count(); ++s) {
      std::copy_n(states_[s], rows.count() * extents_.units,
                  operands_.last[s] + rows.begin * extents_.units);
    }
    for (int64_t r = 0; r < rows.count(); ++r) CopyLastOutput(rows, r);
  }

 private:
  void CopyLastOutput(Rows rows, int64_t r) const {
    const int64_t units = extents_.units;
    C* const last = operands_.last_output + (rows.begin + r) * units;
    if (extents_.time == 0) {
      std::fill_n(last, units, C{0});
    } else {
      std::copy_n(
          operands_.outputs + Position(rows, r, extents_.time - 1) * units,
          units, last);
    }
  }

  void Allocate(Rows rows, C* memory) {
    Workspace<C> workspace(memory);
    const int64_t block = rows.count() * extents_.units;
    for (int s = 0; s < options_.state_count(); ++s) {
      states_[s] = workspace.Take(block);
      std::copy_n(operands_.initial[s] + rows.begin * extents_.units, block,
                  states_[s]);
    }
    scaled_ = workspace.Take(block);
    products_ = workspace.Take(options_.gate_count() * block);
    kept_ = workspace.Take(options_.kept_count() * block);
    reset_ = workspace.Take(block);
    candidates_ = workspace.Take(block);
    gates_ = workspace.Take(4 * extents_.units);
    output_ = workspace.Take(extents_.units);
    cell_ = workspace.Take(extents_.units);
  }

  int64_t Position(Rows rows, int64_t r, int64_t step) const {
    return (rows.begin + r) * extents_.time + step;
  }
  int64_t Time(int64_t step) const {
    return options_.go_backwards ? extents_.time - 1 - step : step;
  }
  const C* Projected(Rows rows, int64_t r, int64_t step) const {
    return operands_.projected + Position(rows, r, Time(step)) *
                                     options_.gate_count() * extents_.units;
  }
  C* Kept(Rows rows, int64_t r, int64_t step) const {
    const int64_t width = options_.kept_count() * extents_.units;
    return operands_.kept == nullptr
               ? kept_ + r * width
               : operands_.kept + Position(rows, r, Time(step)) * width;
  }

  const C* ScaledOutput(Rows rows) const {
    if (operands_.scale == nullptr) return states_[0];
    Loops::template Run<Multiply>(rows.count() * extents_.units, states_[0],
                                  operands_.scale + rows.begin * extents_.units,
                                  scaled_);
    return scaled_;
  }

  void Activate(const RowActivation<C>& activation, const C* x, C* y) const {
    activation.forward(extents_.units, x, y);
  }

  // The gates of kGruResetBefore, and r * h.
  void ResetRow(Rows rows, int64_t r, int64_t step, const C* h) const {
    const int64_t units = extents_.units;
    C* const kept = Kept(rows, r, step);
    Loops::template Run<RowSum>(2 * units, Projected(rows, r, step),
                                products_ + 2 * r * units, kept);
    Activate(activations_.gate, kept + units, gates_);
    Loops::template Run<Multiply>(units, gates_, h + r * units,
                                  reset_ + r * units);
  }

  void RunRow(Rows rows, int64_t r, int64_t step, const C* h) const {
    const int64_t units = extents_.units;
    const int64_t position = Position(rows, r, step);
    for (int s = 0; s < options_.state_count(); ++s) {
      if (operands_.before.empty()) break;
      std::copy_n(states_[s] + r * units, units,
                  operands_.before[s] + Position(rows, r, Time(step)) * units);
    }
    C* const output = operands_.outputs + position * units;
    if (operands_.mask != nullptr &&
        !operands_.mask[Position(rows, r, Time(step))]) {
      const bool repeats = step > 0 && !options_.zero_output_for_mask;
      if (repeats) std::copy_n(output - units, units, output);
      if (!repeats) std::fill_n(output, units, C{0});
      std::fill_n(Kept(rows, r, step), options_.kept_count() * units, C{0});
      return;
    }
    RunCell(Projected(rows, r, step), r, h, Kept(rows, r, step));
    std::copy_n(output_, units, output);
    std::copy_n(output_, units, states_[0] + r * units);
    if (options_.state_count() == 2) {
      std::copy_n(cell_, units, states_[1] + r * units);
    }
  }

  // Computes output_ and cell_, and what is kept of the step.
  void RunCell(const C* projected, int64_t r, const C* h, C* kept) const {
    const int64_t units = extents_.units;
    C* const product = products_ + r * options_.gate_count() * units;
    switch (options_.cell) {
      case RecurrentCell::kSimpleRnn:
        Sum(units, projected, product, kept);
        return Activate(activations_.candidate, kept, output_);
      case RecurrentCell::kLstm:
        Sum(4 * units, projected, product, kept);
        return RunLstm(states_[1] + r * units, kept);
      case RecurrentCell::kGruResetAfter:
        Sum(3 * units, product, operands_.recurrent_bias, product);
        Sum(2 * units, projected, product, kept);
        Activate(activations_.gate, kept + units, gates_);
        std::copy_n(product + 2 * units, units, kept + 3 * units);
        Loops::template Run<MultiplyAdd>(units, gates_, kept + 3 * units,
                                         projected + 2 * units,
                                         kept + 2 * units);
        return RunGru(h, kept);
      case RecurrentCell::kGruResetBefore:
        Sum(units, projected + 2 * units, candidates_ + r * units,
            kept + 2 * units);
        return RunGru(h, kept);
    }
  }

  void Sum(int64_t count, const C* a, const C* b, C* y) const {
    Loops::template Run<RowSum>(count, a, b, y);
  }

  void RunLstm(const C* before, const C* kept) const {
    const int64_t units = extents_.units;
    for (int gate = 0; gate < 4; ++gate) {
      Activate(gate == 2 ? activations_.candidate : activations_.gate,
               kept + gate * units, gates_ + gate * units);
    }
    Loops::template Run<LstmCell>(units, gates_, before, cell_);
    Activate(activations_.candidate, cell_, output_);
    Loops::template Run<Multiply>(units, output_, gates_ + 3 * units, output_);
  }

  void RunGru(const C* h, const C* kept) const {
    const int64_t units = extents_.units;
    C* const g = gates_ + units;
    Activate(activations_.gate, kept, gates_);
    Activate(activations_.candidate, kept + 2 * units, g);
    Loops::template Run<GruState>(units, gates_, h, g, output_);
  }

  const RecurrenceOptions& options_;
  const Extents extents_;
  const Activations<C> activations_;
  const ForwardOperands<C>& operands_;
  // Of a block of rows:
  C* states_[2] = {};
  C* scaled_ = nullptr;
  C* products_ = nullptr;
  C* kept_ = nullptr;
  C* reset_ = nullptr;
  C* candidates_ = nullptr;
  // Of one row:
  C* gates_ = nullptr;
  C* output_ = nullptr;
  C* cell_ = nullptr;
};

template <typename C, typename Loops>
class Backward {
 public:
  Backward(const RecurrenceOptions& options, const Extents& extents,
           const Activations<C>& activations,
           const BackwardOperands<C>& operands)
      : options_(options),
        extents_(extents),
        activations_(activations),
        operands_(operands) {}

  // `first` and `second` multiply by the transposed kernels of Forward::Run().
  template <typename First, typename Second>
  void Run(Rows rows, C* memory, First first, Second second) {
    Allocate(rows, memory);
    const int64_t units = extents_.units;
    for (int64_t step = extents_.time - 1; step >= 0; --step) {
      for (int64_t r = 0; r < rows.count(); ++r) RunRow(rows, r, step);
      if (options_.cell == RecurrentCell::kGruResetBefore) {
        second(candidates_, resets_);
        for (int64_t r = 0; r < rows.count(); ++r) ResetRow(rows, r, step);
      }
      first(products_, before_);
      for (int64_t r = 0; r < rows.count(); ++r) FinishRow(rows, r, step);
    }
    for (int s = 0; s < options_.state_count(); ++s) {
      std::copy_n(states_[s], rows.count() * units,
                  operands_.initial_gradients[s] + rows.begin * units);
    }
  }

 private:
  void Allocate(Rows rows, C* memory) {
    Workspace<C> workspace(memory);
    const int64_t block = rows.count() * extents_.units;
    const int64_t begin = rows.begin * extents_.units;
    for (int s = 0; s < options_.state_count(); ++s) {
      states_[s] = workspace.Take(block);
      std::copy_n(operands_.last_gradients[s] + begin, block, states_[s]);
    }
    carried_ = workspace.Take(block);
    std::copy_n(operands_.last_output_gradient + begin, block, carried_);
    direct_ = workspace.Take(block);
    before_ = workspace.Take(block);
    products_ = workspace.Take(options_.gate_count() * block);
    candidates_ = workspace.Take(block);
    resets_ = workspace.Take(block);
    gates_ = workspace.Take(4 * extents_.units);
    h_ = workspace.Take(extents_.units);
    cell_ = workspace.Take(extents_.units);
    activated_ = workspace.Take(extents_.units);
    dh_ = workspace.Take(extents_.units);
    if (operands_.scale_gradient != nullptr) {
      std::fill_n(operands_.scale_gradient + begin, block, C{0});
    }
  }

  int64_t Position(Rows rows, int64_t r, int64_t step) const {
    return (rows.begin + r) * extents_.time + step;
  }
  int64_t Time(int64_t step) const {
    return options_.go_backwards ? extents_.time - 1 - step : step;
  }
  bool IsMasked(Rows rows, int64_t r, int64_t step) const {
    return operands_.mask != nullptr &&
           !operands_.mask[Position(rows, r, Time(step))];
  }
  // The number of gates whose gradients are multiplied by `first`.
  int64_t ProductGates() const {
    return options_.cell == RecurrentCell::kGruResetBefore
               ? 2
               : options_.gate_count();
  }
  const C* Kept(Rows rows, int64_t r, int64_t step) const {
    return operands_.kept + Position(rows, r, Time(step)) *
                                options_.kept_count() * extents_.units;
  }
  C* ProjectedGradient(Rows rows, int64_t r, int64_t step) const {
    return operands_.projected_gradient + Position(rows, r, Time(step)) *
                                              options_.gate_count() *
                                              extents_.units;
  }
  C* Product(Rows rows, int64_t r, int64_t step) const {
    return operands_.product + Position(rows, r, Time(step)) *
                                   options_.product_count() * extents_.units;
  }

  // Computes h_, the output before the step as the products see it.
  void LoadOutput(Rows rows, int64_t r, int64_t step) const {
    const int64_t units = extents_.units;
    const C* const h =
        operands_.before[0] + Position(rows, r, Time(step)) * units;
    if (operands_.scale == nullptr) {
      std::copy_n(h, units, h_);
    } else {
      Loops::template Run<Multiply>(
          units, h, operands_.scale + (rows.begin + r) * units, h_);
    }
  }

  void RunRow(Rows rows, int64_t r, int64_t step) const {
    const int64_t units = extents_.units;
    C* const carried = carried_ + r * units;
    C* const gradients = products_ + r * ProductGates() * units;
    C* const projected = ProjectedGradient(rows, r, step);
    const bool is_masked = IsMasked(rows, r, step);
    if (is_masked && options_.zero_output_for_mask) {
      std::fill_n(carried, units, C{0});
    } else {
      Sum(units, carried,
          operands_.output_gradient + Position(rows, r, step) * units, carried);
    }
    if (is_masked) {
      std::fill_n(gradients, ProductGates() * units, C{0});
      std::fill_n(candidates_ + r * units, units, C{0});
      std::fill_n(projected, options_.gate_count() * units, C{0});
      std::fill_n(Product(rows, r, step), options_.product_count() * units,
                  C{0});
      return;
    }
    Sum(units, states_[0] + r * units, carried, dh_);
    std::fill_n(carried, units, C{0});
    LoadOutput(rows, r, step);
    RunCell(rows, r, step, gradients, projected);
  }

  void RunCell(Rows rows, int64_t r, int64_t step, C* gradients,
               C* projected) const {
    const int64_t units = extents_.units;
    const C* const kept = Kept(rows, r, step);
    switch (options_.cell) {
      case RecurrentCell::kSimpleRnn:
        activations_.candidate.forward(units, kept, activated_);
        activations_.candidate.backward(units, kept, activated_, dh_,
                                        gradients);
        std::fill_n(direct_ + r * units, units, C{0});
        break;
      case RecurrentCell::kLstm:
        RunLstm(r, kept,
                operands_.before[1] + Position(rows, r, Time(step)) * units,
                gradients);
        std::fill_n(direct_ + r * units, units, C{0});
        break;
      case RecurrentCell::kGruResetAfter: {
        RunGru(r, kept, gradients, gradients + 2 * units);
        C* const dg = gradients + 2 * units;
        std::copy_n(dg, units, projected + 2 * units);
        activations_.gate.forward(units, kept + units, gates_);
        Loops::template Run<Multiply>(units, dg, kept + 3 * units, dh_);
        activations_.gate.backward(units, kept + units, gates_, dh_,
                                   gradients + units);
        Loops::template Run<Multiply>(units, dg, gates_, dg);
        std::copy_n(gradients, 2 * units, projected);
        std::copy_n(gradients, 3 * units, Product(rows, r, step));
        return;
      }
      case RecurrentCell::kGruResetBefore:
        RunGru(r, kept, gradients, candidates_ + r * units);
        std::copy_n(gradients, units, projected);
        std::copy_n(candidates_ + r * units, units, projected + 2 * units);
        return;
    }
    std::copy_n(gradients, options_.gate_count() * units, projected);
  }

  void RunLstm(int64_t r, const C* kept, const C* before, C* gradients) const {
    const int64_t units = extents_.units;
    const auto activation = [&](int gate) -> const RowActivation<C>& {
      return gate == 2 ? activations_.candidate : activations_.gate;
    };
    for (int gate = 0; gate < 4; ++gate) {
      activation(gate).forward(units, kept + gate * units,
                               gates_ + gate * units);
    }
    Loops::template Run<LstmCell>(units, gates_, before, cell_);
    activations_.candidate.forward(units, cell_, activated_);
    Loops::template Run<Multiply>(units, dh_, activated_,
                                  gradients + 3 * units);
    Loops::template Run<Multiply>(units, dh_, gates_ + 3 * units, dh_);
    activations_.candidate.backward(units, cell_, activated_, dh_, dh_);
    Loops::template Run<LstmCellGrad>(units, gates_, before, dh_,
                                      states_[1] + r * units, gradients);
    for (int gate = 0; gate < 4; ++gate) {
      C* const gradient = gradients + gate * units;
      activation(gate).backward(units, kept + gate * units,
                                gates_ + gate * units, gradient, gradient);
    }
  }

  // The gradients of z and g before their activations.
  void RunGru(int64_t r, const C* kept, C* dz, C* dg) const {
    const int64_t units = extents_.units;
    C* const g = gates_ + units;
    activations_.gate.forward(units, kept, gates_);
    activations_.candidate.forward(units, kept + 2 * units, g);
    Loops::template Run<GruStateGrad>(units, gates_, h_, g, dh_, dz, dg,
                                      direct_ + r * units);
    activations_.gate.backward(units, kept, gates_, dz, dz);
    activations_.candidate.backward(units, kept + 2 * units, g, dg, dg);
  }

  // The part of kGruResetBefore that goes through r * h, whose gradient is in
  // resets_.
  void ResetRow(Rows rows, int64_t r, int64_t step) const {
    if (IsMasked(rows, r, step)) return;
    const int64_t units = extents_.units;
    const C* const kept = Kept(rows, r, step);
    const C* const reset_gradient = resets_ + r * units;
    C* const direct = direct_ + r * units;
    C* const dr = products_ + (2 * r + 1) * units;
    LoadOutput(rows, r, step);
    activations_.gate.forward(units, kept + units, gates_);
    Loops::template Run<MultiplyAdd>(units, reset_gradient, gates_, direct,
                                     direct);
    Loops::template Run<Multiply>(units, h_, gates_, Product(rows, r, step));
    Loops::template Run<Multiply>(units, reset_gradient, h_, dh_);
    activations_.gate.backward(units, kept + units, gates_, dh_, dr);
    std::copy_n(dr, units, ProjectedGradient(rows, r, step) + units);
  }

  // Completes the gradient of the output before the step.
  void FinishRow(Rows rows, int64_t r, int64_t step) const {
    if (IsMasked(rows, r, step)) return;
    const int64_t units = extents_.units;
    C* const dh = states_[0] + r * units;
    Sum(units, before_ + r * units, direct_ + r * units, dh);
    if (operands_.scale == nullptr) return;
    const int64_t row = (rows.begin + r) * units;
    Loops::template Run<MultiplyAdd>(
        units, dh, operands_.before[0] + Position(rows, r, Time(step)) * units,
        operands_.scale_gradient + row, operands_.scale_gradient + row);
    Loops::template Run<Multiply>(units, dh, operands_.scale + row, dh);
  }

  void Sum(int64_t count, const C* a, const C* b, C* y) const {
    Loops::template Run<RowSum>(count, a, b, y);
  }

  const RecurrenceOptions& options_;
  const Extents extents_;
  const Activations<C> activations_;
  const BackwardOperands<C>& operands_;
  // Of a block of rows: the gradients of the states, of outputs that later
  // masked steps repeat, of the output before the step without and through the
  // products, of the products, and of kGruResetBefore's g and r * h.
  C* states_[2] = {};
  C* carried_ = nullptr;
  C* direct_ = nullptr;
  C* before_ = nullptr;
  C* products_ = nullptr;
  C* candidates_ = nullptr;
  C* resets_ = nullptr;
  // Of one row:
  C* gates_ = nullptr;
  C* h_ = nullptr;
  C* cell_ = nullptr;
  C* activated_ = nullptr;
  C* dh_ = nullptr;
};

}  // namespace muster::recurrence

#endif  // COMMON_COMPUTE_KERNELS_RECURRENCE_H_
