// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "acc/runtime/data/active_loaders.hpp"
#include "acc/runtime/data/batch_source.hpp"
#include "acc/runtime/data/device_copy.hpp"
#include "acc/runtime/data/loader_plan.hpp"
#include "acc/runtime/nested_tensors.hpp"

namespace acc {

/// One pass of a DataLoader, from its first batch on. Ends its threads when it is destroyed.
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
        given_(pass_.skip),
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

 private:
  using Item = LoadedBatch<Batch>;

  void read() {
    item_.reset();
    item_ = copy_.needed() ? next_on_device() : source_->next();
    if (!item_) {
      plan_->set_finished(pass_);
      return;
    }
    if (item_->last) entry_.set_at_end(item_->remainder);
    plan_->set_given(pass_, ++given_);
  }

  // The next batch is copied while the loop computes on this one, if it is read by then.
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
  std::size_t given_;
  std::unique_ptr<BatchSource<Batch>> source_;
  ActiveLoaders::Entry entry_;
  DeviceCopy copy_;
  std::optional<Item> item_ = {};
  std::optional<Item> staged_ = {};
};

}  // namespace acc
