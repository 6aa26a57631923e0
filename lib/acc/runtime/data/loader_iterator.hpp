// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <iterator>
#include <list>
#include <memory>
#include <optional>
#include <utility>

#include "acc/runtime/comm/progress.hpp"
#include "acc/runtime/data/batch_source.hpp"
#include "acc/runtime/data/device_copy.hpp"
#include "acc/runtime/data/dispatcher.hpp"
#include "acc/runtime/data/loader_plan.hpp"
#include "acc/runtime/tensors/nested_tensors.hpp"

namespace acc::detail {

/// The loaders that a program is reading at the moment, the innermost loop last. gather_for_metrics uses it
/// to know whether a batch is the last of its pass.
class ActiveLoaders : public std::enable_shared_from_this<ActiveLoaders> {
 public:
  struct State {
    bool at_end = false;
    /// Rows of the gathered last batch that are not repetitions; 0: all.
    std::size_t remainder = 0;
  };

  /// A loader that is being read; it is removed when this object is destroyed.
  class Entry {
   public:
    Entry(std::shared_ptr<ActiveLoaders> owner, std::list<State>::iterator position)
        : owner_(std::move(owner)), position_(position) {}
    ~Entry() {
      if (owner_) owner_->states_.erase(position_);
    }
    Entry(Entry&& other) noexcept = default;
    Entry& operator=(Entry&&) = delete;

    /// The current batch is the last one of the pass, and `remainder` of its gathered rows are not
    /// repetitions.
    void set_at_end(std::size_t remainder) { *position_ = {.at_end = true, .remainder = remainder}; }

   private:
    std::shared_ptr<ActiveLoaders> owner_;
    std::list<State>::iterator position_;
  };

  Entry enter(std::size_t remainder = 0) {
    states_.push_back({.at_end = false, .remainder = remainder});
    return {shared_from_this(), std::prev(states_.end())};
  }

  /// The innermost loader, or null outside of all loops.
  const State* innermost() const { return states_.empty() ? nullptr : &states_.back(); }

 private:
  std::list<State> states_ = {};
};

/// What a prepared loader needs from its Accelerator.
struct LoaderContext {
  /// The loaders that are being read.
  std::shared_ptr<ActiveLoaders> active = std::make_shared<ActiveLoaders>();
  /// The device of the batches.
  at::Device device = at::Device(at::kCPU);
  /// Called at the start of each pass on every process, except of a resumed one.
  std::function<void()> before_pass = {};
  /// Used if rank 0 reads for all processes.
  Broadcast broadcast = {};
};

/// An input iterator over one pass of a DataLoader. Its threads end when it is destroyed.
template <class Batch>
class LoaderIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = Batch;
  using difference_type = std::ptrdiff_t;
  using pointer = Batch*;
  using reference = Batch&;

  LoaderIterator(std::shared_ptr<LoaderPlan> plan, LoaderPass pass,
                 std::unique_ptr<BatchSource<Batch>> source, ActiveLoaders::Entry entry, DeviceCopy copy)
      : plan_(std::move(plan)),
        pass_(std::move(pass)),
        num_yielded_(pass_.skip),
        source_(std::move(source)),
        entry_(std::move(entry)),
        copy_(std::move(copy)) {
    read();
  }

  Batch& operator*() { return item_->batch; }
  Batch* operator->() { return &item_->batch; }
  LoaderIterator& operator++() {
    read();
    return *this;
  }
  void operator++(int) { ++*this; }
  bool operator==(std::default_sentinel_t /*end*/) const { return !item_; }
  bool is_last() const { return item_ && item_->last; }  ///< Whether no batch follows this one.

 private:
  using Item = LoadedBatch<Batch>;

  void read() {
    const ProgressSection section(Section::data);
    item_.reset();
    item_ = copy_.needed() ? next_on_device() : source_->next();
    if (!item_) {
      plan_->set_finished(pass_);
      return;
    }
    if (item_->last) entry_.set_at_end(item_->remainder);
    plan_->set_num_yielded(pass_, ++num_yielded_, item_->last);
  }

  // Copies the next batch while the loop computes with this one, if the next batch has already been read.
  std::optional<Item> next_on_device() {
    std::optional<Item> item = staged_ ? std::exchange(staged_, std::nullopt) : start_copy();
    if (!item) return item;
    for_each_tensor(item->batch, [&](at::Tensor& tensor) { copy_.finish(tensor); });
    if (source_->is_ready()) staged_ = start_copy();
    return item;
  }

  std::optional<Item> start_copy() {
    std::optional<Item> item = source_->next();
    if (item) for_each_tensor(item->batch, [&](at::Tensor& tensor) { tensor = copy_.start(tensor); });
    return item;
  }

  std::shared_ptr<LoaderPlan> plan_;
  LoaderPass pass_;
  std::size_t num_yielded_;
  std::unique_ptr<BatchSource<Batch>> source_;
  ActiveLoaders::Entry entry_;
  DeviceCopy copy_;
  std::optional<Item> item_ = {};
  std::optional<Item> staged_ = {};
};

}  // namespace acc::detail
