// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace c10 {
class OperatorHandle;
}

namespace acc::detail {

class Unit;

/// Lets this thread call Unit::on_use before each LibTorch operator that takes a tensor in a unit's memory,
/// once for each unit:
/// in forward, in backward and where activations are computed again, and in the threads that autograd uses
/// for a backward of this thread. What on_use throws reaches the caller of the operator. Modules in C++ have
/// no hooks, and need none. Off, it costs nothing; on, some 0.1 microseconds an operator.
///
/// It is a fallback for the dispatch key TESTING_ONLY_GenericMode, which LibTorch's own tests of such modes
/// use and nothing else. Throws Error{system} when this LibTorch does not call it.
void watch_operators(bool on);

/// Whether the operator for which this thread calls Unit::on_use takes a tensor of `unit`, too. An operator
/// may take parameters of several units, and needs all of them at once.
bool is_in_use(const Unit& unit);
/// Whether that operator changes a tensor of `unit`.
bool is_written(const Unit& unit);

/// Whether an operator returns views of its arguments, and changes none: it does not read their values.
bool returns_views(const c10::OperatorHandle& op);

/// While it exists, this thread's operators are not watched: for acc's own work on units.
class UnwatchedOperators {
 public:
  UnwatchedOperators();
  ~UnwatchedOperators();
  UnwatchedOperators(const UnwatchedOperators&) = delete;
  UnwatchedOperators& operator=(const UnwatchedOperators&) = delete;

 private:
  bool was_excluded_;
};

}  // namespace acc::detail
