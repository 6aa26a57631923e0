// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "acc/runtime/comm/flat_transfer.hpp"
#include "acc/runtime/comm/process_group.hpp"

namespace c10 {
class OperatorHandle;
}

namespace acc::detail {

/// A parameter of a unit, and its place in the unit's flat memory, in elements.
struct Piece {
  /// Its name in the module; of a tied parameter, the first one.
  std::string name = {};
  /// The module's own tensor, a view of the unit's memory.
  at::Tensor parameter = {};
  std::vector<std::int64_t> shape = {};
  std::int64_t offset = 0;
  std::int64_t numel = 0;
  /// Whether it needed a gradient when it was prepared.
  bool trains = true;
  /// False for a parameter on the meta device until values are assigned.
  bool has_values = true;

  std::int64_t end() const { return offset + numel; }
};

/// The part of a piece that is in this process's shard.
struct Overlap {
  std::int64_t in_piece = 0;  ///< Its first element, in elements of the piece.
  std::int64_t in_shard = 0;  ///< The same, in elements of the shard.
  std::int64_t length = 0;    ///< 0: they have no element in common.
};

/// The part of a piece that trains in this process's shard: what an optimizer has as a parameter.
struct TrainedPart {
  std::size_t piece = 0;
  Overlap overlap = {};
  /// A view of the shard.
  at::Tensor values = {};
};

/// How the memory of a unit is kept.
struct UnitOptions {
  int rank = 0;  ///< Of this process.
  int size = 1;  ///< The number of processes.
  /// The type of the parameters while they compute. Shards are float32.
  at::ScalarType compute = at::kFloat;
  at::Device device = at::kCPU;
  /// Frees the parameters while they are not used (stage 3); else they stay, and only gradients and
  /// optimizer states are sharded (stage 2).
  bool frees = true;
};

/// Parameters that are gathered and freed together. They lie in one flat storage that is divided evenly among
/// the processes; of each part one process keeps the values in float32, its shard.
///
/// The storage never changes, only its memory does: parameters, their views and what autograd has saved share
/// it, so all of them are freed and filled at once. While it is freed, OperatorWatch keeps the program's
/// operators from it, on threads that it watches; when this object has ended, LibTorch refuses to access it.
class Unit {
 public:
  /// Assigns places to the pieces; an operator that takes one of them can then be recognized by unit_of.
  Unit(std::string name, bool is_root, std::vector<Piece> pieces, UnitOptions options);
  ~Unit();
  Unit(const Unit&) = delete;
  Unit& operator=(const Unit&) = delete;

  const std::string& name() const { return name_; }
  /// Whether it has the parameters that belong to no other unit. It stays gathered from forward to backward.
  bool is_root() const { return is_root_; }
  const std::vector<Piece>& pieces() const { return pieces_; }
  /// In the order of the pieces. Also of those that no optimizer has: their gradients count for the norm.
  const std::vector<TrainedPart>& trained_parts() const { return trained_parts_; }
  const UnitOptions& options() const { return options_; }
  /// The number of elements of each shard.
  std::int64_t length() const { return length_; }
  /// The place of the shard in the flat memory.
  std::int64_t begin() const { return options_.rank * length_; }
  std::size_t bytes() const;
  /// The ranges of the flat memory that belong to no parameter.
  std::vector<std::pair<std::int64_t, std::int64_t>> gaps() const;
  /// The piece at an offset in the flat memory. Throws Error{usage} if there is none.
  std::size_t piece_at(std::int64_t offset) const;
  /// The part of a piece that is in this process's shard.
  Overlap overlap(std::size_t piece) const;

  /// Together: takes rank 0's values and makes the module's parameters views of this unit's memory, which is
  /// allocated.
  void take_parameters(ProcessGroup& group);

  /// This process's values, in float32, with what the program has changed in gathered parameters. For stage 2
  /// in float32 a view of the parameters.
  const at::Tensor& shard();

  /// Whether the parameters have memory, though it may not have been filled yet.
  bool is_allocated() const { return is_allocated_; }
  /// Whether the parameters can be used.
  bool is_complete() const { return is_allocated_ && !gathering_; }

  /// Starts to fill the parameters with the values of all shards; allocates their memory.
  void start_gather(ProcessGroup& group, int tag);
  /// Waits for that.
  void finish_gather();
  /// Frees the memory of the parameters, for units that do so.
  void release();
  /// Returns when the shard has been sent wherever it was asked for, so that it may change.
  void settle();

  /// Sets a parameter, in the shard and, if allocated, in the parameters. Every process assigns the same
  /// value.
  void assign(std::size_t piece, const at::Tensor& value);
  /// Sets this process's shard. `pieces` are those that have values from now on. Parameters that are
  /// allocated keep theirs until `refill`.
  void set_shard(const at::Tensor& values, const std::vector<std::size_t>& pieces);
  /// Takes over changes that the program made in gathered parameters, unless the shard is newer.
  void keep_changes();
  /// Whether the shard was changed otherwise than by this object since the parameters were gathered, as by a
  /// step of the optimizer.
  bool has_newer_shard() const;

  /// Called for each operator that takes one of the parameters or a view of it, see OperatorWatch.
  std::function<void(Unit&, const c10::OperatorHandle&)> on_use = {};
  /// Together: puts the parts of all processes, each as long as a shard, together in a new flat tensor.
  std::function<at::Tensor(const at::Tensor& part)> collect = {};
  /// Together: gives parameters that are allocated the values of all shards.
  std::function<void()> refill = {};

 private:
  void set_memory(bool allocated);
  void make_trained_parts();
  void note_version();
  at::Tensor own_part() const;

  std::string name_;
  bool is_root_;
  std::vector<Piece> pieces_;
  UnitOptions options_;
  std::int64_t length_ = 0;
  std::vector<TrainedPart> trained_parts_ = {};
  c10::Storage storage_ = {};
  at::Tensor flat_ = {};
  at::Tensor shard_ = {};
  // LibTorch's count of the shard's changes, when the parameters had its values.
  std::int64_t version_ = 0;
  bool is_allocated_ = false;
  FlatTransfer gathering_ = {};
  FlatTransfer sending_ = {};
};

/// The unit in whose memory `tensor` lies; null if it is not sharded.
Unit* unit_of(const at::Tensor& tensor);

/// Whether it is one of the TrainedPart::values of a unit.
bool is_shard_part(const at::Tensor& tensor);

/// Copies `value` to `parameter`; of a sharded one, to this process's shard. Every process assigns the same
/// value.
void assign(const at::Tensor& parameter, const at::Tensor& value);

}  // namespace acc::detail
