// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "acc/runtime/data/batch_plan.hpp"
#include "acc/runtime/data/batch_source.hpp"
#include "acc/runtime/data/batch_tensors.hpp"

namespace acc {

/// Together: overwrites a tensor with rank 0's; all have one shape and type.
using Broadcast = std::function<void(at::Tensor&)>;

/// Rank 0 reads batches and sends them to all, of which each keeps its part: the dispatch_batches of
/// accelerate. One batch of each process, or with split_batches one in all, makes a step.
class Dispatcher {
 public:
  using Tensors = std::vector<at::Tensor>;
  /// On rank 0: the tensors of the next batch, nothing after the last.
  using Read = std::function<std::optional<Tensors>()>;

  /// `from_start`: where the pass begins in its middle, reads it from its start.
  Dispatcher(Broadcast broadcast, const Shard& shard, bool drop_last, Read read, Read from_start = {});

  /// Together: this process's part of the next step; nothing after the last. Throws Error{usage} when batches
  /// cannot be put together, and on every rank when rank 0 could not read.
  std::optional<Tensors> next();

  /// Whether `next` gave the last step, and how many of its rows are not there twice; 0: all.
  bool at_end() const { return !ahead_; }
  std::size_t remainder() const { return remainder_; }

 private:
  // What all processes get in one step, and how many of its rows are not there twice.
  struct Step {
    Tensors tensors = {};
    std::size_t rows = 0;
  };

  std::optional<Step> fetch();
  std::optional<Step> receive();
  std::optional<Tensors> read_batches(const Read& read) const;
  std::optional<Step> read_step();
  void fill(Tensors& tensors);
  Tensors part_of(Tensors tensors) const;

  Broadcast broadcast_;
  Shard shard_;
  bool drop_last_;
  Read read_;
  Read from_start_;
  bool started_ = false;
  std::optional<Step> ahead_ = {};
  // On rank 0: the first rows of the pass, which fill up a step that does not divide.
  Tensors first_ = {};
  std::size_t remainder_ = 0;
};

/// Throws Error{usage}: only tensors are sent, and a batch is more than those.
[[noreturn]] void refuse_batch();

/// A Dispatcher's batches as a loop gets them.
template <class Batch>
class DispatchSource final : public BatchSource<Batch> {
 public:
  using Item = LoadedBatch<Batch>;

  using Reader = std::shared_ptr<BatchSource<Batch>>;

  /// `reader` is null but on rank 0; `from_start` is, unless the pass begins in its middle: it makes a reader
  /// of the whole pass.
  DispatchSource(Broadcast broadcast, const Shard& shard, bool drop_last, Reader reader,
                 std::function<Reader()> from_start)
      : dispatcher_(
            std::move(broadcast), shard, drop_last, [reader] { return read(*reader); },
            from_start ? first_of(std::move(from_start)) : nullptr) {}

  std::optional<Item> next() override {
    const auto tensors = dispatcher_.next();
    if (!tensors) return std::nullopt;
    return Item{.batch = batch_of<Batch>(*tensors),
                .last = dispatcher_.at_end(),
                .remainder = dispatcher_.remainder()};
  }

 private:
  static std::optional<Dispatcher::Tensors> read(BatchSource<Batch>& reader) {
    auto item = reader.next();
    if (!item) return std::nullopt;
    Dispatcher::Tensors tensors = tensors_of(item->batch);
    if (!is_all_tensors<Batch>(tensors.size())) refuse_batch();
    return tensors;
  }
  static Dispatcher::Read first_of(std::function<Reader()> from_start) {
    return [from_start = std::move(from_start), reader = Reader()]() mutable {
      if (!reader) reader = from_start();
      return read(*reader);
    };
  }

  Dispatcher dispatcher_;
};

}  // namespace acc
