// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "acc/runtime/data/ordered_workers.hpp"

namespace acc {

/// A batch on its way to the loop.
template <class Batch>
struct LoadedBatch {
  Batch batch;
  /// Whether no other comes after it in this pass.
  bool last = false;
  /// Of the last batch, see LoaderPass::remainder.
  std::size_t remainder = 0;
};

/// The batches of one pass, one after the other.
template <class Batch>
class BatchSource {
 public:
  using Item = LoadedBatch<Batch>;

  virtual ~BatchSource() = default;
  /// The next batch; nothing after the last. Throws what reading it threw; that ends the pass.
  virtual std::optional<Item> next() = 0;
  /// Whether there is a next batch and `next` would not wait for it.
  virtual bool is_ready() const { return false; }
};

/// Reads batches where and when it is asked for them, or ahead on threads.
template <class Batch>
class ReadAhead final : public BatchSource<Batch> {
 public:
  using Item = LoadedBatch<Batch>;
  /// Reads batch number `index`; nothing after the last. `worker` counts the threads that call it.
  using Read = std::function<std::optional<Item>(std::size_t index, std::size_t worker)>;

  /// Reads batches from number `first` on. Without threads, `next` reads.
  ReadAhead(std::size_t threads, std::size_t ahead, std::size_t first, Read read)
      : read_(std::move(read)), next_(first), slots_(ahead) {
    if (threads == 0) return;
    workers_.emplace(threads, ahead, first, [this](std::size_t index, std::size_t worker) {
      auto item = read_(index, worker);
      const bool made = item.has_value();
      slots_[index % slots_.size()] = std::move(item);
      return made;
    });
  }

  std::optional<Item> next() override {
    if (!workers_) return read_(next_++, 0);
    const std::optional<std::size_t> slot = workers_->wait();
    if (!slot) return std::nullopt;
    std::optional<Item> item = std::exchange(slots_[*slot], std::nullopt);
    workers_->release();
    return item;
  }

  bool is_ready() const override { return workers_ && workers_->is_ready(); }

 private:
  Read read_;
  std::size_t next_;
  std::vector<std::optional<Item>> slots_;
  // The last member: its threads use the others.
  std::optional<OrderedWorkers> workers_ = {};
};

}  // namespace acc
