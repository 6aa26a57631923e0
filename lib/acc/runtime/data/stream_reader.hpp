// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/runtime/data/batch_source.hpp"
#include "acc/runtime/data/loader_plan.hpp"
#include "acc/runtime/data/sample.hpp"
#include "acc/runtime/data/tensor_batches.hpp"

namespace acc {

namespace detail {

template <class Dataset>
concept GivesSamples = requires(Dataset& dataset) {
  dataset.reset();
  *dataset.next();
};
template <class Dataset>
concept GivesBlocks = requires(Dataset& dataset) {
  dataset.reset();
  dataset.get_batch(std::size_t{1})->front();
};

}  // namespace detail

/// A data set without indices. `reset()` starts from the beginning; then `next()` returns an optional sample,
/// nothing at the end, or `get_batch(n)` returns an optional vector of up to n samples, as torch::data's
/// stateful data sets do. If there is a `set_epoch(epoch)`, it is called before `reset()`.
///
/// Each pass reads a copy of the data set as it was given to the loader, if it can be copied: what a pass has
/// changed in it, as the state of a random generator, is gone in the next one. An order that is to change
/// with the pass, and to continue after a restart, is that of the epoch or of pass_seed().
template <class Dataset>
concept IterableDataset = detail::GivesSamples<Dataset> || detail::GivesBlocks<Dataset>;

namespace detail {

/// Reads the batches of a pass from an iterable data set, on one thread at a time. Each pass reads a copy of
/// the data set if it can be copied, so that several passes may exist at once.
template <IterableDataset Dataset>
class StreamReader {
  static auto sample_of(Dataset& dataset) {
    if constexpr (GivesSamples<Dataset>) {
      return *dataset.next();
    } else {
      return dataset.get_batch(std::size_t{1})->front();
    }
  }

 public:
  using Sample = std::remove_cvref_t<decltype(sample_of(std::declval<Dataset&>()))>;
  using Batch = decltype(collate(std::declval<std::vector<Sample>>()));

  StreamReader(const std::shared_ptr<Dataset>& dataset, const LoaderPass& pass, const BlockRule& rule)
      : dataset_(for_pass(dataset)), seed_(pass.seed), epoch_(pass.epoch), skip_(pass.skip), rule_(rule) {}

  std::optional<LoadedBatch<Batch>> operator()(std::size_t /*index*/, std::size_t /*worker*/) {
    const PassSeed seed(seed_);
    if (!std::exchange(started_, true)) start();
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    std::vector<Sample> block = std::exchange(ahead_, {});
    if (block.empty()) return std::nullopt;
    look_ahead();
    const std::size_t samples = block.size();
    if (rule_.fill) fill(block);
    const auto begin = block.begin() + static_cast<std::ptrdiff_t>(std::min(rule_.slice_begin, block.size()));
    const auto end = block.begin() + static_cast<std::ptrdiff_t>(std::min(rule_.slice_end, block.size()));
    return LoadedBatch<Batch>{.batch = collate(std::vector<Sample>(begin, end)),
                              .last = ahead_.empty() && !failure_,
                              .remainder = samples < block.size() ? samples : 0};
  }

 private:
  static std::shared_ptr<Dataset> for_pass(const std::shared_ptr<Dataset>& dataset) {
    if constexpr (std::is_copy_constructible_v<Dataset>) {
      return std::make_shared<Dataset>(*dataset);
    } else {
      return dataset;
    }
  }

  void start() {
    if constexpr (requires { dataset_->set_epoch(epoch_); }) dataset_->set_epoch(epoch_);
    dataset_->reset();
    for (std::size_t i = 0; i < skip_; ++i) read_block();
    ahead_ = read_block();
  }

  // Keeps an exception, which is thrown after the batches before it.
  void look_ahead() {
    try {
      ahead_ = read_block();
    } catch (...) {
      failure_ = std::current_exception();
    }
  }

  // Returns an empty block at the end, and for a last block that is dropped.
  std::vector<Sample> read_block() {
    std::vector<Sample> block;
    while (!ended_ && block.size() < rule_.block_size) ended_ = !read_some(block);
    if (block.size() < rule_.block_size && rule_.drop_last) block.clear();
    if (first_.empty() && rule_.fill) first_ = block;
    return block;
  }

  bool read_some(std::vector<Sample>& block) {
    try {
      if constexpr (GivesSamples<Dataset>) {
        auto sample = dataset_->next();
        if (!sample) return false;
        block.push_back(std::move(*sample));
        ++samples_;
      } else {
        const std::size_t wanted = rule_.block_size - block.size();
        auto samples = dataset_->get_batch(wanted);
        if (!samples || samples->empty()) return false;
        if (samples->size() > wanted) {
          throw Error({.what = "returned " + std::to_string(samples->size()) + " samples, but at most " +
                               std::to_string(wanted) + " were asked for",
                       .where = "get_batch"});
        }
        samples_ += samples->size();
        for (auto& sample : *samples) block.push_back(std::move(sample));
      }
      return true;
    } catch (...) {
      throw_naming_sample(samples_);
    }
  }

  void fill(std::vector<Sample>& block) const {
    for (std::size_t i = 0; block.size() < rule_.block_size; ++i) block.push_back(first_[i % first_.size()]);
  }

  std::shared_ptr<Dataset> dataset_;
  std::uint64_t seed_;
  std::uint64_t epoch_;
  std::size_t skip_;
  BlockRule rule_;
  bool started_ = false;
  bool ended_ = false;
  std::size_t samples_ = 0;
  std::vector<Sample> first_ = {};
  std::vector<Sample> ahead_ = {};
  std::exception_ptr failure_ = {};
};

}  // namespace detail

}  // namespace acc
