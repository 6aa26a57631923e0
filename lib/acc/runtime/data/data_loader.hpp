// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/ArrayRef.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "acc/runtime/data/batch_source.hpp"
#include "acc/runtime/data/dispatcher.hpp"
#include "acc/runtime/data/loader_iterator.hpp"
#include "acc/runtime/data/loader_plan.hpp"
#include "acc/runtime/data/map_reader.hpp"
#include "acc/runtime/data/stream_reader.hpp"

namespace acc {

namespace detail {

template <class Dataset>
concept ReadableDataset =
    IterableDataset<Dataset> || requires(Dataset& dataset, c10::ArrayRef<std::size_t> indices) {
      dataset.size();
      dataset.get_batch(indices);
    } || requires(Dataset& dataset) {
      dataset.size();
      dataset.get(std::size_t{0});
    };

template <class Dataset>
struct ReaderOf {
  using Type = MapReader<Dataset>;
};
// DataLoader says what is missing; nothing else is to be reported.
template <class Dataset>
  requires(!ReadableDataset<Dataset>)
struct ReaderOf<Dataset> {
  struct Type {
    using Batch = at::Tensor;
  };
};
template <IterableDataset Dataset>
struct ReaderOf<Dataset> {
  using Type = StreamReader<Dataset>;
};

}  // namespace detail

/// Reads a data set in batches; `for (auto& batch : loader)` is one pass. The data set is one of
///  - LibTorch's concept, `size()` and `get_batch(indices)`: acc::TensorDataset, acc::ImageDataset, or
///    torch::data's own with a Stack transform;
///  - `size()` and `get(index)`, whose samples acc::collate stacks into a batch, or your own function, see
///    acc::collated;
///  - an IterableDataset.
/// Copies of a loader share its data set and the count of its passes. Several iterators may exist at once,
/// each with its own pass and threads. An exception while reading is thrown in the loop, after the batches
/// before it, as an Error that names the sample.
template <class Dataset>
class DataLoader {
  static_assert(detail::ReadableDataset<Dataset>,
                "a data set has size() and get(index) or get_batch(indices), or is an IterableDataset");

  using Reader = typename detail::ReaderOf<Dataset>::Type;

 public:
  using Batch = typename Reader::Batch;            ///< What the loop gets.
  using Iterator = detail::LoaderIterator<Batch>;  ///< One pass.
  /// Whether the data set is an IterableDataset.
  static constexpr bool kIterable = IterableDataset<Dataset>;

  /// Throws Error{usage} for invalid options, see LoaderPlan.
  DataLoader(Dataset dataset, const DataLoaderOptions& options)
      : dataset_(std::make_shared<Dataset>(std::move(dataset))),
        options_(options),
        plan_(std::make_shared<LoaderPlan>(size_of(*dataset_), options)) {}

  /// Starts the next pass. Together, if the loader was prepared and rank 0 reads for all. If it throws, as
  /// where the first batch cannot be read, the next call starts the same pass.
  Iterator begin() {
    LoaderPass pass = plan_->begin_pass(skip_);
    const std::uint64_t number = pass.number;
    try {
      if (context_.before_pass && !pass.resumed) context_.before_pass();
      auto source = source_of(pass);
      pass.batches.clear();
      detail::ActiveLoaders::Entry entry = context_.active->enter(pass.remainder);
      return Iterator(plan_, std::move(pass), std::move(source), std::move(entry),
                      detail::DeviceCopy(context_.device));
    } catch (...) {
      plan_->cancel_pass(number);
      throw;
    }
  }
  std::default_sentinel_t end() const { return {}; }  ///< The end of each pass.

  /// The number of batches in a pass of this process. Throws Error{usage} for an iterable data set, which
  /// does not know.
  std::size_t size() const {
    const std::size_t batches = plan_->size();
    return batches - std::min(skip_, batches);
  }

  /// Sets the epoch of the next pass; by default passes are counted from 0.
  void set_epoch(std::uint64_t epoch) { plan_->set_epoch(epoch); }
  std::uint64_t epoch() const { return plan_->epoch(); }  ///< The epoch of the next pass.

  /// The position of the loop, for `load_state` of a loader over the same data; see LoaderPlan. After a loop
  /// that was left early it is where that loop stopped: `set_epoch(epoch())` says that the pass is over.
  std::string state() const { return plan_->state(); }
  /// Takes a state that `state` returned.
  void load_state(std::string_view state) { plan_->load_state(state); }

  Dataset& dataset() { return *dataset_; }  ///< The data set, shared with copies of the loader.
  LoaderPlan& plan() { return *plan_; }     ///< What is read, without data.
  const LoaderPlan& plan() const { return *plan_; }
  /// Replaces what is read; Accelerator::prepare calls it.
  void set_plan(std::shared_ptr<LoaderPlan> plan) { plan_ = std::move(plan); }

  /// Called by Accelerator::prepare.
  void set_context(detail::LoaderContext context) { context_ = std::move(context); }
  const detail::LoaderContext& context() const { return context_; }  ///< What Accelerator::prepare has set.

  template <class AnyDataset>
  friend DataLoader<AnyDataset> skip_first_batches(DataLoader<AnyDataset> loader, std::size_t num_batches);

 private:
  using Source = detail::BatchSource<Batch>;

  // torch::data's data sets return an optional size, acc's a plain one.
  static std::optional<std::size_t> size_of(const Dataset& dataset) {
    if constexpr (kIterable || !detail::ReadableDataset<Dataset>) {
      return std::nullopt;
    } else {
      const std::optional<std::size_t> size = dataset.size();
      return size.value_or(0);
    }
  }

  std::unique_ptr<Source> source_of(const LoaderPass& pass) {
    if (pass.finished) return std::make_unique<detail::NoBatches<Batch>>();
    return plan_->dispatched() ? dispatch(pass) : read(pass, plan_->shard(), pass.skip);
  }

  std::unique_ptr<Source> read(const LoaderPass& pass, const Shard& shard, std::size_t skip) {
    // An iterable data set is read by one thread, to keep its order.
    const std::size_t threads =
        kIterable ? std::min<std::size_t>(options_.num_workers, 1) : options_.num_workers;
    const std::size_t ahead = threads * options_.prefetch_factor;
    const auto read_batch = [&] {
      if constexpr (kIterable) {
        LoaderPass from = pass;
        from.skip = skip;
        return Reader(dataset_, from, detail::block_rule(plan_->rule(), shard));
      } else {
        return Reader(dataset_, pass, threads);
      }
    }();
    return std::make_unique<detail::ReadAhead<Batch>>(threads, ahead, skip, pinned(read_batch));
  }

  typename detail::ReadAhead<Batch>::Read pinned(Reader reader) const {
    if (!options_.pin_memory || context_.device.is_cpu()) return reader;
    return [reader = std::move(reader)](std::size_t index, std::size_t worker) mutable {
      auto item = reader(index, worker);
      if (item) for_each_tensor(item->batch, [](at::Tensor& tensor) { tensor = detail::pin(tensor); });
      return item;
    };
  }

  std::unique_ptr<Source> dispatch(const LoaderPass& /*pass*/) { detail::refuse_batch(); }
  std::unique_ptr<Source> dispatch(const LoaderPass& pass)
    requires SendableBatch<Batch>
  {
    const Shard& shard = plan_->shard();
    detail::block_rule(plan_->rule(), shard);  // throws if the batches cannot be split
    const std::size_t per_step = shard.split_batches ? 1 : shard.count;
    std::shared_ptr<Source> reader;
    std::function<std::shared_ptr<Source>()> from_start;
    if (shard.index == 0) {
      reader = read(pass, Shard(), pass.skip * per_step);
      // Reads without threads: few rows are needed, and only if the last step is not full.
      if (pass.skip > 0) {
        from_start = [loader = *this, pass]() mutable {
          loader.options_.num_workers = 0;
          return std::shared_ptr<Source>(loader.read(pass, Shard(), 0));
        };
      }
    }
    return std::make_unique<detail::DispatchSource<Batch>>(context_.broadcast, shard, plan_->rule().drop_last,
                                                           std::move(reader), std::move(from_start));
  }

  std::shared_ptr<Dataset> dataset_;
  DataLoaderOptions options_;
  std::shared_ptr<LoaderPlan> plan_;
  std::size_t skip_ = 0;
  detail::LoaderContext context_ = {};
};

template <class Dataset>
DataLoader(Dataset, DataLoaderOptions) -> DataLoader<Dataset>;

/// A loader that skips the first batches of each pass; they are only read if the data set is iterable.
/// Repeated calls add up. The result shares the count of passes with `loader`: after it has read the rest of
/// epoch 3, `loader` continues with epoch 4.
template <class Dataset>
DataLoader<Dataset> skip_first_batches(DataLoader<Dataset> loader, std::size_t num_batches) {
  loader.skip_ += num_batches;
  return loader;
}

}  // namespace acc
