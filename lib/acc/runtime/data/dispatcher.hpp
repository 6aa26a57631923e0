// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <exception>
#include <functional>
#include <optional>
#include <vector>

#include "acc/runtime/data/batch_parts.hpp"
#include "acc/runtime/data/batch_plan.hpp"
#include "acc/runtime/data/batch_source.hpp"

namespace acc::detail {

/// Together: overwrites a tensor with that of rank 0; all must have the same shape and type.
using Broadcast = std::function<void(at::Tensor&)>;

/// Rank 0 reads batches and sends them to all processes, each of which keeps its part: accelerate's
/// dispatch_batches. A step consists of one batch per process, or with split_batches of one batch for all.
class Dispatcher {
 public:
  /// Returns the next batch, nothing after the last. Called on rank 0.
  using Read = std::function<std::optional<BatchParts>()>;

  /// `from_start` is set for a resumed pass and reads that pass from its start.
  Dispatcher(Broadcast broadcast, const Shard& shard, bool drop_last, Read read, Read from_start = {});

  /// Together: this process's part of the next step; nothing after the last. Throws Error{usage} when batches
  /// cannot be concatenated. If rank 0 fails to read, throws on every rank, after the steps before.
  std::optional<BatchParts> next();

  /// Whether `next` has returned the last step, and how many rows of it are not repetitions; 0: all.
  bool at_end() const { return !ahead_ && !failure_; }
  std::size_t remainder() const { return remainder_; }

 private:
  // The batch of all processes in one step, and how many of its rows are not repetitions.
  struct Step {
    BatchParts parts = {};
    std::size_t rows = 0;
  };

  void look_ahead();
  std::optional<Step> fetch();
  std::optional<Step> receive();
  std::optional<BatchParts> read_batches(const Read& read) const;
  std::optional<Step> read_step();
  BatchParts filled(BatchParts parts, std::size_t rows);

  Broadcast broadcast_;
  Shard shard_;
  bool drop_last_;
  Read read_;
  Read from_start_;
  bool started_ = false;
  std::optional<Step> ahead_ = {};
  std::exception_ptr failure_ = {};
  // On rank 0: the first rows of the pass, to fill a last step that is not full.
  std::optional<BatchParts> first_ = {};
  std::size_t remainder_ = 0;
};

/// Throws Error{usage} for batches that are not a SendableBatch.
[[noreturn]] void refuse_batch();

/// A Dispatcher as a BatchSource.
template <SendableBatch Batch>
class DispatchSource final : public BatchSource<Batch> {
 public:
  using Item = LoadedBatch<Batch>;

  using Reader = std::shared_ptr<BatchSource<Batch>>;

  /// `reader` is null except on rank 0. `from_start` makes a reader of the whole pass; null unless the pass
  /// was resumed.
  DispatchSource(Broadcast broadcast, const Shard& shard, bool drop_last, Reader reader,
                 std::function<Reader()> from_start)
      : dispatcher_(
            std::move(broadcast), shard, drop_last, [reader] { return read(*reader); },
            from_start ? first_of(std::move(from_start)) : nullptr) {}

  std::optional<Item> next() override {
    const auto parts = dispatcher_.next();
    if (!parts) return std::nullopt;
    return Item{
        .batch = batch_of<Batch>(*parts), .last = dispatcher_.at_end(), .remainder = dispatcher_.remainder()};
  }

 private:
  static std::optional<BatchParts> read(BatchSource<Batch>& reader) {
    auto item = reader.next();
    if (!item) return std::nullopt;
    return parts_of(item->batch);
  }
  static Dispatcher::Read first_of(std::function<Reader()> from_start) {
    return [from_start = std::move(from_start), reader = Reader()]() mutable {
      if (!reader) reader = from_start();
      return read(*reader);
    };
  }

  Dispatcher dispatcher_;
};

}  // namespace acc::detail
