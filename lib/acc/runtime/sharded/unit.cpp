// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/sharded/unit.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <c10/core/Allocator.h>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "acc/base/error.hpp"
#include "acc/runtime/sharded/operator_watch.hpp"

namespace acc::detail {
namespace {

// In elements: 64 bytes of bfloat16, as LibTorch aligns its own tensors.
constexpr std::int64_t kAlignment = 32;

std::int64_t aligned(std::int64_t length) {
  return (length + kAlignment - 1) / kAlignment * kAlignment;
}

// What a unit's storage holds as its memory. Its deleter marks the storage as that of a unit. `unit` is null
// for a shard's own storage.
struct UnitMemory {
  at::DataPtr memory;
  Unit* unit;
};

void delete_unit_memory(void* context) {
  delete static_cast<UnitMemory*>(context);
}

at::DataPtr mark(at::DataPtr memory, Unit* unit) {
  void* data = memory.get();
  const at::Device device = memory.device();
  auto* held = new UnitMemory{.memory = std::move(memory), .unit = unit};
  return {data, held, &delete_unit_memory, device};
}

const UnitMemory* unit_memory_of(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.has_storage()) return nullptr;
  const at::DataPtr& memory = tensor.storage().unsafeGetStorageImpl()->_mutable_data_ptr_no_checks();
  if (memory.get_deleter() != &delete_unit_memory) return nullptr;
  return static_cast<const UnitMemory*>(memory.get_context());
}

}  // namespace

Unit* unit_of(const at::Tensor& tensor) {
  const UnitMemory* memory = unit_memory_of(tensor);
  return memory != nullptr ? memory->unit : nullptr;
}

bool is_shard_part(const at::Tensor& tensor) {
  const UnitMemory* memory = unit_memory_of(tensor);
  if (memory == nullptr) return false;
  if (memory->unit == nullptr) return true;
  return std::ranges::any_of(memory->unit->trained_parts(),
                             [&](const TrainedPart& part) { return part.values.is_same(tensor); });
}

Unit::Unit(std::string name, bool is_root, std::vector<Piece> pieces, UnitOptions options)
    : name_(std::move(name)), is_root_(is_root), pieces_(std::move(pieces)), options_(options) {
  std::int64_t end = 0;
  for (Piece& piece : pieces_) {
    piece.offset = end;
    // Each has a place of its own, also one without elements: piece_at tells them apart by their offsets.
    end += aligned(std::max<std::int64_t>(piece.numel, 1));
  }
  length_ = aligned((end + options_.size - 1) / options_.size);
}

Unit::~Unit() {
  if (!storage_) return;
  // Tensors may outlive this: parameters that are gathered keep their memory, others are left without.
  auto* storage = storage_.unsafeGetStorageImpl();
  auto* held = static_cast<UnitMemory*>(storage->_mutable_data_ptr_no_checks().get_context());
  at::DataPtr memory = std::move(held->memory);  // the next line deletes what holds it
  storage->set_data_ptr_noswap(std::move(memory));
  if (!is_allocated_)
    storage->release_data_and_set_meta_custom_data_ptr_error_msg_(
        "this parameter was sharded, and its sharded model has ended: save it before, by save_model or "
        "get_state_dict");
}

std::size_t Unit::bytes() const {
  return static_cast<std::size_t>(length_ * options_.size) * c10::elementSize(options_.compute);
}

std::vector<std::pair<std::int64_t, std::int64_t>> Unit::gaps() const {
  std::vector<std::pair<std::int64_t, std::int64_t>> gaps;
  std::int64_t end = 0;
  const auto add = [&](std::int64_t next) {
    if (end < next) gaps.emplace_back(end, next - end);
  };
  for (const Piece& piece : pieces_) {
    add(piece.offset);
    end = piece.end();
  }
  add(length_ * options_.size);
  return gaps;
}

std::size_t Unit::piece_at(std::int64_t offset) const {
  const auto next = std::ranges::upper_bound(pieces_, offset, {}, &Piece::offset);
  if (next != pieces_.begin()) {
    const Piece& piece = *std::prev(next);
    if (offset < std::max(piece.end(), piece.offset + 1))
      return static_cast<std::size_t>(next - pieces_.begin()) - 1;
  }
  throw Error({.what = "is not a parameter", .where = name_});
}

Overlap Unit::overlap(std::size_t index) const {
  const Piece& piece = pieces_.at(index);
  const std::int64_t from = std::max(piece.offset, begin());
  const std::int64_t to = std::min(piece.end(), begin() + length_);
  return {.in_piece = from - piece.offset,
          .in_shard = from - begin(),
          .length = std::max<std::int64_t>(to - from, 0)};
}

void Unit::set_memory(bool allocated) {
  is_allocated_ = allocated;
  at::DataPtr memory = allocated ? c10::GetAllocator(options_.device.type())->allocate(bytes())
                                 : at::DataPtr(nullptr, options_.device);
  // The storage keeps its size, so that views of freed parameters can be made.
  storage_.unsafeGetStorageImpl()->set_data_ptr_noswap(mark(std::move(memory), this));
}

at::Tensor Unit::own_part() const {
  return flat_.narrow(0, begin(), length_);
}

void Unit::take_parameters(ProcessGroup& group) {
  const at::NoGradGuard no_grad;
  const std::int64_t length = length_ * options_.size;
  storage_ = c10::Storage(c10::Storage::use_byte_size_t(), bytes(),
                          mark(at::DataPtr(nullptr, options_.device), this), nullptr, /*resizable=*/false);
  set_memory(true);
  const at::TensorOptions options = at::TensorOptions(options_.device).dtype(options_.compute);
  flat_ = at::empty({0}, options).set_(storage_, 0, {length}, {1});
  const bool is_float = options_.compute == at::kFloat;
  at::Tensor values = is_float ? flat_ : at::empty({length}, options.dtype(at::kFloat));

  at::Tensor has_values = at::zeros({static_cast<std::int64_t>(pieces_.size())}, at::kByte);
  if (options_.rank == 0) {
    values.zero_();
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      const Piece& piece = pieces_[i];
      if (piece.parameter.is_meta()) continue;
      has_values[static_cast<std::int64_t>(i)] = 1;
      values.narrow(0, piece.offset, piece.numel).view(piece.shape).copy_(piece.parameter);
    }
  }
  group.broadcast(has_values, 0);
  group.broadcast(values, 0);
  if (!is_float) flat_.copy_(values);
  const bool in_place = is_float && !options_.frees;
  shard_ = in_place ? own_part() : values.narrow(0, begin(), length_).clone();
  if (!in_place) {
    auto* storage = shard_.storage().unsafeGetStorageImpl();
    storage->set_data_ptr_noswap(mark(std::move(storage->_mutable_data_ptr_no_checks()), nullptr));
  }
  make_trained_parts();
  note_version();

  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    Piece& piece = pieces_[i];
    piece.has_values = has_values[static_cast<std::int64_t>(i)].item<int>() != 0;
    const at::Tensor view = flat_.narrow(0, piece.offset, piece.numel).view(piece.shape);
    if (piece.parameter.is_meta()) {
      // set_data refuses another kind of device.
      piece.parameter.unsafeGetTensorImpl()->shallow_copy_from(view.getIntrusivePtr());
    } else {
      piece.parameter.set_data(view);
    }
  }
}

void Unit::make_trained_parts() {
  for (std::size_t piece = 0; piece < pieces_.size(); ++piece) {
    const Overlap part = overlap(piece);
    if (!pieces_[piece].trains || part.length == 0) continue;
    const at::Tensor values = shard_.narrow(0, part.in_shard, part.length).detach();
    values.set_requires_grad(true);
    trained_parts_.push_back({.piece = piece, .overlap = part, .values = values});
  }
}

const at::Tensor& Unit::shard() {
  const UnwatchedOperators unwatched;
  if (is_complete()) keep_changes();
  return shard_;
}

void Unit::start_gather(ProcessGroup& group, int tag) {
  const at::NoGradGuard no_grad;
  settle();
  if (!is_allocated_) set_memory(true);
  const at::Tensor part = own_part();
  const bool in_place = shard_.is_alias_of(flat_);
  if (!in_place) part.copy_(shard_);
  gathering_ = start_all_gather(group, flat_, options_.compute == at::kFloat ? shard_ : part, tag);
  sending_ = gathering_;
}

void Unit::finish_gather() {
  if (!gathering_) return;
  gathering_.wait_received();
  gathering_ = {};
  note_version();
}

void Unit::release() {
  if (!is_allocated_ || !options_.frees) return;
  finish_gather();
  if (options_.compute != at::kFloat) settle();
  set_memory(false);
}

void Unit::settle() {
  sending_.wait_sent();
  sending_ = {};
}

void Unit::assign(std::size_t index, const at::Tensor& value) {
  const at::NoGradGuard no_grad;
  Piece& piece = pieces_.at(index);
  const at::Tensor values = value.detach().reshape({-1});
  const auto [in_piece, in_shard, length] = overlap(index);
  settle();
  if (length > 0) shard_.narrow(0, in_shard, length).copy_(values.narrow(0, in_piece, length));
  if (is_allocated_) {
    finish_gather();
    flat_.narrow(0, piece.offset, piece.numel).copy_(values);
  }
  note_version();
  piece.has_values = true;
}

void Unit::set_shard(const at::Tensor& values, const std::vector<std::size_t>& pieces) {
  const at::NoGradGuard no_grad;
  settle();
  if (is_allocated_) finish_gather();
  shard_.copy_(values);
  note_version();
  for (const std::size_t piece : pieces) pieces_.at(piece).has_values = true;
}

void assign(const at::Tensor& parameter, const at::Tensor& value) {
  const at::NoGradGuard no_grad;
  if (Unit* unit = unit_of(parameter)) {
    const UnwatchedOperators unwatched;
    unit->assign(unit->piece_at(parameter.storage_offset()), value);
  } else {
    parameter.copy_(value);
  }
}

void Unit::keep_changes() {
  const at::NoGradGuard no_grad;
  if (shard_.is_alias_of(flat_) || has_newer_shard()) return;
  settle();
  const at::Tensor part = own_part();
  if (options_.compute == at::kFloat) {
    shard_.copy_(part);
  } else {
    // On a CPU in pieces that its cache holds, of which those without changes are only read.
    const std::int64_t step = part.is_cpu() ? std::int64_t{1} << 16 : length_;
    for (std::int64_t start = 0; start < length_; start += step) {
      const std::int64_t length = std::min(step, length_ - start);
      const at::Tensor values = shard_.narrow(0, start, length);
      const at::Tensor gathered = part.narrow(0, start, length);
      const at::Tensor known = values.to(options_.compute);
      if (part.is_cpu() && gathered.equal(known)) continue;
      // What was not changed keeps the digits that the parameters lack.
      values.copy_(at::where(gathered == known, values, gathered.to(at::kFloat)));
    }
  }
  note_version();
}

bool Unit::has_newer_shard() const {
  return static_cast<std::int64_t>(shard_._version()) != version_;
}

void Unit::note_version() {
  version_ = static_cast<std::int64_t>(shard_._version());
}

}  // namespace acc::detail
