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

/// While it lives, LibTorch's operations of the calling thread do not start further threads: for operations
/// too small to divide, or work that is already divided among threads.
class OneCore {
 public:
  OneCore();
  ~OneCore();
  OneCore(const OneCore&) = delete;
  OneCore& operator=(const OneCore&) = delete;

 private:
  int before_;
};

/// Threads that make items 0, 1, 2, ... ahead of a consumer, who gets them in this order. Each thread
/// computes on one core: LibTorch's operators start no further threads in it.
class OrderedWorkers {
 public:
  /// Makes an item and stores it in slot `index % ahead`, which is free. False: there is no such item, the
  /// one before was the last. `worker` counts threads from 0.
  using Make = std::function<bool(std::size_t index, std::size_t worker)>;

  /// Begins to make items from `first` on, at most `ahead` in advance.
  OrderedWorkers(std::size_t threads, std::size_t ahead, std::size_t first, Make make);

  /// Ends all threads, each after the item that it is making.
  ~OrderedWorkers();
  OrderedWorkers(const OrderedWorkers&) = delete;
  OrderedWorkers& operator=(const OrderedWorkers&) = delete;

  /// Waits for the next item and returns its slot, which belongs to the consumer until `release`; nothing
  /// after the last item. Throws what making the item threw; that ends the items.
  std::optional<std::size_t> wait();

  /// Whether there is a next item and `wait` would return at once.
  bool is_ready() const;

  /// Frees the slot that `wait` returned.
  void release();

 private:
  void run(std::size_t worker);
  bool at_end() const { return taken_ >= end_; }

  Make make_;
  std::size_t ahead_;

  mutable std::mutex mutex_ = {};
  std::condition_variable work_ = {};
  std::condition_variable ready_ = {};
  std::vector<bool> done_;
  // The next item to make, the consumer's next item, and the first one that does not exist or failed.
  std::size_t next_;
  std::size_t taken_;
  std::size_t end_ = std::numeric_limits<std::size_t>::max();
  std::exception_ptr failure_ = {};
  bool stop_ = false;
  std::vector<std::thread> threads_ = {};
};

/// A batch that was read, for the loop.
template <class Batch>
struct LoadedBatch {
  Batch batch;
  /// Whether it is the last one of this pass.
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
  /// Whether there is a next batch and `next` would return at once.
  virtual bool is_ready() const { return false; }
};

/// Reads batches on demand in the calling thread, or ahead on threads.
template <class Batch>
class ReadAhead final : public BatchSource<Batch> {
 public:
  using Item = LoadedBatch<Batch>;
  /// Reads batch number `index`; nothing after the last. `worker` is the number of the calling thread.
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

}  // namespace acc::detail
