// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <limits>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace acc {

/// Threads that make items 0, 1, 2, ... ahead of a consumer, who gets them in this order. Each thread
/// computes on one core: LibTorch's operators start no further threads in it.
class OrderedWorkers {
 public:
  /// Makes an item and keeps it in slot `index % ahead`, of which no other item is in use. False: there is no
  /// such item, the one before was the last. `worker` counts threads from 0.
  using Make = std::function<bool(std::size_t index, std::size_t worker)>;

  /// Begins to make items from `first` on, of which at most `ahead` are made or held.
  OrderedWorkers(std::size_t threads, std::size_t ahead, std::size_t first, Make make);

  /// Ends all threads as soon as each is done with the item that it is making.
  ~OrderedWorkers();
  OrderedWorkers(const OrderedWorkers&) = delete;
  OrderedWorkers& operator=(const OrderedWorkers&) = delete;

  /// Waits for the next item and gives its slot, which is the consumer's until `release`; nothing after the
  /// last item. Throws what making the item threw; that ends the items.
  std::optional<std::size_t> wait();

  /// Whether there is a next item and `wait` would give it at once.
  bool is_ready() const;

  /// The slot that `wait` gave is free for another item.
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
  // The next item to make, the one that the consumer is at, and the one that does not exist or failed.
  std::size_t next_;
  std::size_t taken_;
  std::size_t end_ = std::numeric_limits<std::size_t>::max();
  std::exception_ptr failure_ = {};
  bool stop_ = false;
  std::vector<std::thread> threads_ = {};
};

}  // namespace acc
