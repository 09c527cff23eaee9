#ifndef COMMON_COMPUTE_KERNELS_RECURRENCE_H_
#define COMMON_COMPUTE_KERNELS_RECURRENCE_H_

#include "common/compute/functions/cell_bodies.h"
#include "common/compute/kernels/recurrence_operands.h"
#include "common/core/base/host_device.h"
#include "common/core/tensor/recurrent_cell.h"

// The loops over time of the ops Recurrence and RecurrenceGrad, for some rows
// of a batch, on the host and in device kernels. Rows are independent of each
// other.
//
// C is float or double. Loops::Run<Body>(count, ...) calls Body::At(i, ...) for
// all i below `count`. On the host it is a loop, possibly compiled for wider
// vectors. On a device the threads of a block share the calls and wait for each
// other afterwards. The same holds for Activation (see Activations) and
// products: all threads of a block make the same calls. The caller passes
// products of a block of rows with the recurrent kernel as functions from
// contiguous rows to contiguous rows.
namespace muster::recurrence {

// Marks functions that all threads of a block call. On a device they may wait
// for the block, so they are not compiled for the host as well.
#ifdef __CUDACC__
#define MUSTER_BLOCK_FUNCTION __device__
#else
#define MUSTER_BLOCK_FUNCTION
#endif

template <typename Loops, typename C>
MUSTER_BLOCK_FUNCTION void CopyN(const C* from, int64_t count, C* to) {
  Loops::template Run<Copy>(count, from, to);
}

template <typename Loops, typename C>
MUSTER_BLOCK_FUNCTION void ClearN(C* to, int64_t count) {
  Loops::template Run<Clear>(count, to);
}

// Divides the memory of a thread or a block into arrays.
template <typename C>
class Workspace {
 public:
  MUSTER_BLOCK_FUNCTION explicit Workspace(C* memory) : next_(memory) {}
  MUSTER_BLOCK_FUNCTION C* Take(int64_t count) {
    C* const taken = next_;
    next_ += count;
    return taken;
  }

 private:
  C* next_;
};

// Returns the size of a Workspace for `rows` rows, in numbers. It is enough for
// both directions.
MUSTER_HOST_DEVICE inline int64_t WorkspaceSize(int64_t rows, int64_t units) {
  return (16 * rows + 8) * units;
}

template <typename C, typename Loops, typename Activation>
class Forward {
 public:
  MUSTER_BLOCK_FUNCTION Forward(const RecurrenceForm& options,
                                const Extents& extents,
                                const Activations<Activation>& activations,
                                const ForwardOperands<C>& operands)
      : options_(options),
        extents_(extents),
        activations_(activations),
        operands_(operands) {}

  // `first` multiplies the output by the kernel. For kGruResetBefore, `first`
  // multiplies it by the columns of z and r, and `second` multiplies r * h by
  // the columns of g.
  template <typename First, typename Second>
  MUSTER_BLOCK_FUNCTION void Run(Rows rows, C* memory, First first,
                                 Second second) {
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
      CopyN<Loops>(states_[s], rows.count() * extents_.units,
                   operands_.last[s] + rows.begin * extents_.units);
    }
    for (int64_t r = 0; r < rows.count(); ++r) CopyLastOutput(rows, r);
  }

 private:
  MUSTER_BLOCK_FUNCTION void CopyLastOutput(Rows rows, int64_t r) const {
    const int64_t units = extents_.units;
    C* const last = operands_.last_output + (rows.begin + r) * units;
    if (extents_.time == 0) {
      ClearN<Loops>(last, units);
    } else {
      CopyN<Loops>(
          operands_.outputs + Position(rows, r, extents_.time - 1) * units,
          units, last);
    }
  }

  MUSTER_BLOCK_FUNCTION void Allocate(Rows rows, C* memory) {
    Workspace<C> workspace(memory);
    const int64_t block = rows.count() * extents_.units;
    for (int s = 0; s < options_.state_count(); ++s) {
      states_[s] = workspace.Take(block);
      CopyN<Loops>(operands_.initial[s] + rows.begin * extents_.units, block,
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

  MUSTER_BLOCK_FUNCTION int64_t Position(Rows rows, int64_t r,
                                         int64_t step) const {
    return (rows.begin + r) * extents_.time + step;
  }
  MUSTER_BLOCK_FUNCTION int64_t Time(int64_t step) const {
    return options_.go_backwards ? extents_.time - 1 - step : step;
  }
  MUSTER_BLOCK_FUNCTION const C* Projected(Rows rows, int64_t r,
                                           int64_t step) const {
    return operands_.projected + Position(rows, r, Time(step)) *
                                     options_.gate_count() * extents_.units;
  }
  MUSTER_BLOCK_FUNCTION C* Kept(Rows rows, int64_t r, int64_t step) const {
    const int64_t width = options_.kept_count() * extents_.units;
    return operands_.kept == nullptr
               ? kept_ + r * width
               : operands_.kept + Position(rows, r, Time(step)) * width;
  }

  MUSTER_BLOCK_FUNCTION const C* ScaledOutput(Rows rows) const {
    if (operands_.scale == nullptr) return states_[0];
    Loops::template Run<Multiply>(rows.count() * extents_.units, states_[0],
                                  operands_.scale + rows.begin * extents_.units,
                                  scaled_);
    return scaled_;
  }

  MUSTER_BLOCK_FUNCTION void Activate(const Activation& activation, const C* x,
                                      C* y) const {
    activation.forward(extents_.units, x, y);
  }

  // Computes the gates of kGruResetBefore and r * h.
  MUSTER_BLOCK_FUNCTION void ResetRow(Rows rows, int64_t r, int64_t step,
                                      const C* h) const {
    const int64_t units = extents_.units;
    C* const kept = Kept(rows, r, step);
    Loops::template Run<RowSum>(2 * units, Projected(rows, r, step),
                                products_ + 2 * r * units, kept);
    Activate(activations_.gate, kept + units, gates_);
    Loops::template Run<Multiply>(units, gates_, h + r * units,
                                  reset_ + r * units);
  }

  MUSTER_BLOCK_FUNCTION void RunRow(Rows rows, int64_t r, int64_t step,
                                    const C* h) const {
    const int64_t units = extents_.units;
    const int64_t position = Position(rows, r, step);
    for (int s = 0; s < options_.state_count(); ++s) {
      if (operands_.before[0] == nullptr) break;
      CopyN<Loops>(states_[s] + r * units, units,
                   operands_.before[s] + Position(rows, r, Time(step)) * units);
    }
    C* const output = operands_.outputs + position * units;
    if (operands_.mask != nullptr &&
        !operands_.mask[Position(rows, r, Time(step))]) {
      const bool repeats = step > 0 && !options_.zero_output_for_mask;
      if (repeats) CopyN<Loops>(output - units, units, output);
      if (!repeats) ClearN<Loops>(output, units);
      ClearN<Loops>(Kept(rows, r, step), options_.kept_count() * units);
      return;
    }
    RunCell(Projected(rows, r, step), r, h, Kept(rows, r, step));
    CopyN<Loops>(output_, units, output);
    CopyN<Loops>(output_, units, states_[0] + r * units);
    if (options_.state_count() == 2) {
      CopyN<Loops>(cell_, units, states_[1] + r * units);
    }
  }

  // Computes output_, cell_ and the values of the step that are kept.
  MUSTER_BLOCK_FUNCTION void RunCell(const C* projected, int64_t r, const C* h,
                                     C* kept) const {
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
        CopyN<Loops>(product + 2 * units, units, kept + 3 * units);
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

  MUSTER_BLOCK_FUNCTION void Sum(int64_t count, const C* a, const C* b,
                                 C* y) const {
    Loops::template Run<RowSum>(count, a, b, y);
  }

  MUSTER_BLOCK_FUNCTION void RunLstm(const C* before, const C* kept) const {
    const int64_t units = extents_.units;
    for (int gate = 0; gate < 4; ++gate) {
      Activate(gate == 2 ? activations_.candidate : activations_.gate,
               kept + gate * units, gates_ + gate * units);
    }
    Loops::template Run<LstmCell>(units, units, gates_, before, cell_);
    Activate(activations_.candidate, cell_, output_);
    Loops::template Run<Multiply>(units, output_, gates_ + 3 * units, output_);
  }

  MUSTER_BLOCK_FUNCTION void RunGru(const C* h, const C* kept) const {
    const int64_t units = extents_.units;
    C* const g = gates_ + units;
    Activate(activations_.gate, kept, gates_);
    Activate(activations_.candidate, kept + 2 * units, g);
    Loops::template Run<GruState>(units, gates_, h, g, output_);
  }

  const RecurrenceForm options_;
  const Extents extents_;
  const Activations<Activation> activations_;
  const ForwardOperands<C>& operands_;
  // For a block of rows:
  C* states_[2] = {};
  C* scaled_ = nullptr;
  C* products_ = nullptr;
  C* kept_ = nullptr;
  C* reset_ = nullptr;
  C* candidates_ = nullptr;
  // For one row:
  C* gates_ = nullptr;
  C* output_ = nullptr;
  C* cell_ = nullptr;
};

template <typename C, typename Loops, typename Activation>
class Backward {
 public:
  MUSTER_BLOCK_FUNCTION Backward(const RecurrenceForm& options,
                                 const Extents& extents,
                                 const Activations<Activation>& activations,
                                 const BackwardOperands<C>& operands)
      : options_(options),
        extents_(extents),
        activations_(activations),
        operands_(operands) {}

  // `first` and `second` multiply by the transposed kernels of Forward::Run().
  template <typename First, typename Second>
  MUSTER_BLOCK_FUNCTION void Run(Rows rows, C* memory, First first,
                                 Second second) {
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
      CopyN<Loops>(states_[s], rows.count() * units,
                   operands_.initial_gradients[s] + rows.begin * units);
    }
  }

 private:
  MUSTER_BLOCK_FUNCTION void Allocate(Rows rows, C* memory) {
    Workspace<C> workspace(memory);
    const int64_t block = rows.count() * extents_.units;
    const int64_t begin = rows.begin * extents_.units;
    for (int s = 0; s < options_.state_count(); ++s) {
      states_[s] = workspace.Take(block);
      CopyN<Loops>(operands_.last_gradients[s] + begin, block, states_[s]);
    }
    carried_ = workspace.Take(block);
    CopyN<Loops>(operands_.last_output_gradient + begin, block, carried_);
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
      ClearN<Loops>(operands_.scale_gradient + begin, block);
    }
  }

  MUSTER_BLOCK_FUNCTION int64_t Position(Rows rows, int64_t r,
                                         int64_t step) const {
    return (rows.begin + r) * extents_.time + step;
  }
  MUSTER_BLOCK_FUNCTION int64_t Time(int64_t step) const {
    return options_.go_backwards ? extents_.time - 1 - step : step;
  }
  MUSTER_BLOCK_FUNCTION bool IsMasked(Rows rows, int64_t r,
                                      int64_t step) const {
    return operands_.mask != nullptr &&
           !operands_.mask[Position(rows, r, Time(step))];
  }
  MUSTER_BLOCK_FUNCTION const C* Kept(Rows rows, int64_t r,
                                      int64_t step) const {
    return operands_.kept + Position(rows, r, Time(step)) *
                                options_.kept_count() * extents_.units;
  }
  MUSTER_BLOCK_FUNCTION C* ProjectedGradient(Rows rows, int64_t r,
                                             int64_t step) const {
    return operands_.projected_gradient + Position(rows, r, Time(step)) *
                                              options_.gate_count() *
                                              extents_.units;
  }
  MUSTER_BLOCK_FUNCTION C* Product(Rows rows, int64_t r, int64_t step) const {
    return operands_.product + Position(rows, r, Time(step)) *
                                   options_.product_count() * extents_.units;
  }

  // Computes h_, the output before the step as the products read it.
  MUSTER_BLOCK_FUNCTION void LoadOutput(Rows rows, int64_t r,
                                        int64_t step) const {
    const int64_t units = extents_.units;
    const C* const h =
        operands_.before[0] + Position(rows, r, Time(step)) * units;
    if (operands_.scale == nullptr) {
      CopyN<Loops>(h, units, h_);
    } else {
      Loops::template Run<Multiply>(
          units, h, operands_.scale + (rows.begin + r) * units, h_);
    }
  }

  MUSTER_BLOCK_FUNCTION void RunRow(Rows rows, int64_t r, int64_t step) const {
    const int64_t units = extents_.units;
    C* const carried = carried_ + r * units;
    C* const gradients = products_ + r * options_.product_gate_count() * units;
    C* const projected = ProjectedGradient(rows, r, step);
    const bool is_masked = IsMasked(rows, r, step);
    if (is_masked && options_.zero_output_for_mask) {
      ClearN<Loops>(carried, units);
    } else {
      Sum(units, carried,
          operands_.output_gradient + Position(rows, r, step) * units, carried);
    }
    if (is_masked) {
      ClearN<Loops>(gradients, options_.product_gate_count() * units);
      ClearN<Loops>(candidates_ + r * units, units);
      ClearN<Loops>(projected, options_.gate_count() * units);
      ClearN<Loops>(Product(rows, r, step), options_.product_count() * units);
      return;
    }
    Sum(units, states_[0] + r * units, carried, dh_);
    ClearN<Loops>(carried, units);
    LoadOutput(rows, r, step);
    RunCell(rows, r, step, gradients, projected);
  }

  MUSTER_BLOCK_FUNCTION void RunCell(Rows rows, int64_t r, int64_t step,
                                     C* gradients, C* projected) const {
    const int64_t units = extents_.units;
    const C* const kept = Kept(rows, r, step);
    switch (options_.cell) {
      case RecurrentCell::kSimpleRnn:
        activations_.candidate.forward(units, kept, activated_);
        activations_.candidate.backward(units, kept, activated_, dh_,
                                        gradients);
        ClearN<Loops>(direct_ + r * units, units);
        break;
      case RecurrentCell::kLstm:
        RunLstm(r, kept,
                operands_.before[1] + Position(rows, r, Time(step)) * units,
                gradients);
        ClearN<Loops>(direct_ + r * units, units);
        break;
      case RecurrentCell::kGruResetAfter: {
        RunGru(r, kept, gradients, gradients + 2 * units);
        C* const dg = gradients + 2 * units;
        CopyN<Loops>(dg, units, projected + 2 * units);
        activations_.gate.forward(units, kept + units, gates_);
        Loops::template Run<Multiply>(units, dg, kept + 3 * units, dh_);
        activations_.gate.backward(units, kept + units, gates_, dh_,
                                   gradients + units);
        Loops::template Run<Multiply>(units, dg, gates_, dg);
        CopyN<Loops>(gradients, 2 * units, projected);
        CopyN<Loops>(gradients, 3 * units, Product(rows, r, step));
        return;
      }
      case RecurrentCell::kGruResetBefore:
        RunGru(r, kept, gradients, candidates_ + r * units);
        CopyN<Loops>(gradients, units, projected);
        CopyN<Loops>(candidates_ + r * units, units, projected + 2 * units);
        return;
    }
    CopyN<Loops>(gradients, options_.gate_count() * units, projected);
  }

  MUSTER_BLOCK_FUNCTION const Activation& OfGate(int gate) const {
    return gate == 2 ? activations_.candidate : activations_.gate;
  }

  MUSTER_BLOCK_FUNCTION void RunLstm(int64_t r, const C* kept, const C* before,
                                     C* gradients) const {
    const int64_t units = extents_.units;
    for (int gate = 0; gate < 4; ++gate) {
      OfGate(gate).forward(units, kept + gate * units, gates_ + gate * units);
    }
    Loops::template Run<LstmCell>(units, units, gates_, before, cell_);
    activations_.candidate.forward(units, cell_, activated_);
    Loops::template Run<Multiply>(units, dh_, activated_,
                                  gradients + 3 * units);
    Loops::template Run<Multiply>(units, dh_, gates_ + 3 * units, dh_);
    activations_.candidate.backward(units, cell_, activated_, dh_, dh_);
    Loops::template Run<LstmCellGrad>(units, units, gates_, before, dh_,
                                      states_[1] + r * units, gradients);
    for (int gate = 0; gate < 4; ++gate) {
      C* const gradient = gradients + gate * units;
      OfGate(gate).backward(units, kept + gate * units, gates_ + gate * units,
                            gradient, gradient);
    }
  }

  // Computes the gradients of z and g before their activations.
  MUSTER_BLOCK_FUNCTION void RunGru(int64_t r, const C* kept, C* dz,
                                    C* dg) const {
    const int64_t units = extents_.units;
    C* const g = gates_ + units;
    activations_.gate.forward(units, kept, gates_);
    activations_.candidate.forward(units, kept + 2 * units, g);
    Loops::template Run<GruStateGrad>(units, gates_, h_, g, dh_, dz, dg,
                                      direct_ + r * units);
    activations_.gate.backward(units, kept, gates_, dz, dz);
    activations_.candidate.backward(units, kept + 2 * units, g, dg, dg);
  }

  // Computes the part of kGruResetBefore's gradient that passes through r * h.
  // The gradient of r * h is in resets_.
  MUSTER_BLOCK_FUNCTION void ResetRow(Rows rows, int64_t r,
                                      int64_t step) const {
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
    CopyN<Loops>(dr, units, ProjectedGradient(rows, r, step) + units);
  }

  // Completes the gradient of the output before the step.
  MUSTER_BLOCK_FUNCTION void FinishRow(Rows rows, int64_t r,
                                       int64_t step) const {
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

  MUSTER_BLOCK_FUNCTION void Sum(int64_t count, const C* a, const C* b,
                                 C* y) const {
    Loops::template Run<RowSum>(count, a, b, y);
  }

  const RecurrenceForm options_;
  const Extents extents_;
  const Activations<Activation> activations_;
  const BackwardOperands<C>& operands_;
  // For a block of rows, in this order: the gradients of the states; of outputs
  // that later masked steps repeat; of the output before the step, without the
  // products and through them; of the products; and of kGruResetBefore's g and
  // r * h.
  C* states_[2] = {};
  C* carried_ = nullptr;
  C* direct_ = nullptr;
  C* before_ = nullptr;
  C* products_ = nullptr;
  C* candidates_ = nullptr;
  C* resets_ = nullptr;
  // For one row:
  C* gates_ = nullptr;
  C* h_ = nullptr;
  C* cell_ = nullptr;
  C* activated_ = nullptr;
  C* dh_ = nullptr;
};

}  // namespace muster::recurrence

#endif  // COMMON_COMPUTE_KERNELS_RECURRENCE_H_
