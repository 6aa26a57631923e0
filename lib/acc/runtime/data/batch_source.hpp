// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace acc::detail {

/// While this object exists, LibTorch's operations on the calling thread use this thread only: for operations
/// that are too small to divide, or work that is already divided among threads.
class OneCore {
 public:
  OneCore();
  ~OneCore();
  OneCore(const OneCore&) = delete;
  OneCore& operator=(const OneCore&) = delete;

 private:
  int before_;
};

/// Threads that produce items 0, 1, 2, ... ahead of a consumer, which gets them in this order. LibTorch's
/// operators do not start further threads in them.
class OrderedWorkers {
 public:
  /// Produces an item and stores it in slot `index % ahead`, which is free. Returns false if there is no such
  /// item. `worker` is the index of the thread.
  using Make = std::function<bool(std::size_t index, std::size_t worker)>;

  /// Starts to produce items from number `first` on, at most `ahead` of them in advance. Throws Error{system}
  /// when the system has too few threads.
  OrderedWorkers(std::size_t threads, std::size_t ahead, std::size_t first, Make make);

  /// Ends all threads, each after the item that it is producing.
  ~OrderedWorkers();
  OrderedWorkers(const OrderedWorkers&) = delete;
  OrderedWorkers& operator=(const OrderedWorkers&) = delete;

  /// Waits for the next item and returns its slot, which belongs to the consumer until `release`; nothing
  /// after the last item. Rethrows an exception of the thread that produced the item, which is then the last.
  std::optional<std::size_t> wait();

  /// Whether there is a next item that `wait` would return without waiting.
  bool is_ready() const;

  /// Frees the slot that `wait` returned.
  void release();

 private:
  void run(std::size_t worker);
  void end();
  bool at_end() const { return taken_ >= end_; }

  Make make_;
  std::size_t ahead_;

  mutable std::mutex mutex_ = {};
  std::condition_variable work_ = {};
  std::condition_variable ready_ = {};
  std::vector<bool> done_;
  // The next item to produce, the consumer's next item, and the first item that failed or does not exist.
  std::size_t next_;
  std::size_t taken_;
  std::size_t end_ = std::numeric_limits<std::size_t>::max();
  std::exception_ptr failure_ = {};
  bool stop_ = false;
  std::vector<std::thread> threads_ = {};
};

/// A batch that was read.
template <class Batch>
struct LoadedBatch {
  Batch batch;
  /// Whether it is the last one of this pass.
  bool last = false;
  /// For the last batch: LoaderPass::remainder.
  std::size_t remainder = 0;
};

/// The batches of one pass, in order.
template <class Batch>
class BatchSource {
 public:
  using Item = LoadedBatch<Batch>;

  virtual ~BatchSource() = default;
  /// The next batch; nothing after the last. Rethrows an exception of reading it, which ends the pass.
  virtual std::optional<Item> next() = 0;
  /// Whether there is a next batch that `next` would return without waiting.
  virtual bool is_ready() const { return false; }
};

/// Of a pass of which nothing is left.
template <class Batch>
class NoBatches final : public BatchSource<Batch> {
 public:
  std::optional<LoadedBatch<Batch>> next() override { return std::nullopt; }
};

/// Reads batches in the calling thread when they are needed, or ahead in worker threads.
template <class Batch>
class ReadAhead final : public BatchSource<Batch> {
 public:
  using Item = LoadedBatch<Batch>;
  /// Reads batch number `index`; nothing after the last. `worker` is the index of the calling thread.
  using Read = std::function<std::optional<Item>(std::size_t index, std::size_t worker)>;

  /// Reads batches from number `first` on. If `threads` is 0, `next` reads them.
  ReadAhead(std::size_t threads, std::size_t ahead, std::size_t first, Read read)
      : read_(std::move(read)), next_(first), slots_(ahead) {
    if (threads == 0) return;
    workers_.emplace(threads, ahead, first, [this](std::size_t index, std::size_t worker) {
      auto item = read_(index, worker);
      const bool has_item = item.has_value();
      slots_[index % slots_.size()] = std::move(item);
      return has_item;
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
  // Must be the last member: its threads use the others.
  std::optional<OrderedWorkers> workers_ = {};
};

}  // namespace acc::detail
