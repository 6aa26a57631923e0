// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/data/loader_plan.hpp"

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "acc/base/error.hpp"
#include "acc/base/json_number.hpp"
#include "acc/runtime/process/joined_job.hpp"
#include "acc/runtime/tensors/random.hpp"

namespace acc {
namespace {

using nlohmann::json;

void require_consistent(std::optional<std::size_t> dataset_size, const DataLoaderOptions& options) {
  const auto refuse = [](const char* where, const char* what) {
    throw Error({.what = what, .where = where});
  };
  if (options.batch_sampler && (options.batch_size != 1 || options.shuffle || options.drop_last))
    refuse("batch_sampler", "excludes batch_size, shuffle and drop_last");
  if (options.batch_sampler && options.sampler) refuse("batch_sampler", "excludes sampler");
  if (options.sampler && options.shuffle) refuse("sampler", "excludes shuffle");
  if (!dataset_size && (options.sampler || options.batch_sampler || options.shuffle))
    refuse("sampler", "an iterable data set has its own order: it takes no sampler and no shuffle");
  if (options.batch_size == 0) refuse("batch_size", "must be at least 1");
  if (options.num_workers > 0 && options.prefetch_factor == 0)
    refuse("prefetch_factor", "must be at least 1");
}

// Where rank 0 reads, the others usually do so as well, each the same.
void note_reading_all() {
  const detail::JobPosition job = detail::joined_job();
  if (job.size == 1 || job.rank != 0) return;
  TORCH_WARN_ONCE("a loader that was not prepared is read as a whole by each of the ", job.size,
                  " processes that reads it; accelerator.prepare(loader) gives each a part");
}

// Distributed samplers get seed 0, as torch's DistributedSampler: all processes must use the same order even
// if they were seeded differently.
std::uint64_t choose_seed(const DataLoaderOptions& options) {
  const bool distributed = options.sampler && options.sampler->distributed();
  return options.seed.value_or(distributed ? 0 : default_seed());
}

std::shared_ptr<const Sampler> choose_sampler(std::size_t size, const DataLoaderOptions& options) {
  if (options.sampler) return options.sampler;
  if (options.shuffle && size > 0) return std::make_shared<RandomSampler>(size);
  return std::make_shared<SequentialSampler>(size);
}

}  // namespace

LoaderPlan::LoaderPlan(std::optional<std::size_t> dataset_size, const DataLoaderOptions& options)
    : dataset_size_(dataset_size),
      rule_{.batch_size = options.batch_sampler ? 0 : options.batch_size, .drop_last = options.drop_last},
      batch_sampler_(options.batch_sampler),
      seed_(choose_seed(options)) {
  require_consistent(dataset_size, options);
  sampler_ = choose_sampler(this->dataset_size(), options);
}

void LoaderPlan::set_dispatched(bool dispatched) {
  if (dispatched && sampler_->distributed())
    throw Error({.what = "excludes a distributed sampler", .where = "dispatch_batches"});
  dispatched_ = dispatched;
}

void LoaderPlan::set_epoch(std::uint64_t epoch) {
  next_ = {.epoch = epoch};
  current_.reset();
}

std::size_t LoaderPlan::batches_per_step() const {
  return dispatched_ && !shard_.split_batches ? shard_.count : 1;
}

std::size_t LoaderPlan::step_size() const {
  const std::size_t batch = std::max<std::size_t>(rule_.batch_size, 1);
  const bool dealt_out = sampler_->distributed() && sampler_->num_processes() > 0;
  if (dealt_out) return batch * sampler_->num_processes();
  return batch * (shard_.split_batches ? 1 : shard_.count);
}

std::size_t LoaderPlan::remainder_of(std::size_t samples) const {
  return repeats() ? samples % step_size() : 0;
}

std::size_t LoaderPlan::remainder_of(const std::vector<BatchIndices>& batches) const {
  if (!repeats()) return 0;
  std::size_t samples = 0;
  for (std::size_t i = batches.size() - batches.size() % shard_.count; i < batches.size(); ++i)
    samples += batches[i].size();
  return samples;
}

std::vector<BatchIndices> LoaderPlan::batches_of(std::uint64_t epoch, std::size_t* remainder) const {
  const SamplerPass pass{.seed = seed_ + epoch, .process_index = shard_.index, .num_processes = shard_.count};
  std::vector<BatchIndices> batches;
  if (batch_sampler_) {
    batches = batch_sampler_->batches(pass);
    if (remainder != nullptr) *remainder = remainder_of(batches);
  } else {
    const std::vector<std::size_t> order = sampler_->order(pass);
    batches = detail::make_batches(order, rule_);
    if (sampler_->distributed()) return batches;
    if (remainder != nullptr) *remainder = remainder_of(order.size());
  }
  return dispatched_ ? batches : detail::shard_batches(batches, rule_, shard_);
}

std::size_t LoaderPlan::size() const {
  if (!dataset_size_) {
    throw Error(
        {.what = "an iterable data set does not know how many batches it has", .where = "DataLoader::size"});
  }
  const std::size_t batches = batches_of(next_.epoch).size();
  const std::size_t step = batches_per_step();
  return rule_.drop_last ? batches / step : (batches + step - 1) / step;
}

LoaderPass LoaderPlan::begin_pass(std::size_t skip) {
  if (shard_.count == 1 && !(sampler_ && sampler_->distributed())) note_reading_all();
  LoaderPass pass{.number = passes_ + 1,
                  .epoch = next_.epoch,
                  .seed = seed_ + next_.epoch,
                  .skip = std::max(skip, next_.batches),
                  .resumed = next_.in_pass(),
                  .finished = next_.finished};
  if (dataset_size_) pass.batches = batches_of(pass.epoch, &pass.remainder);
  before_ = {.next = next_, .current = current_};
  ++passes_;
  next_ = {.epoch = pass.epoch + 1};
  current_ = LoaderPosition{.epoch = pass.epoch, .batches = pass.skip, .finished = pass.finished};
  return pass;
}

void LoaderPlan::cancel_pass(std::uint64_t number) {
  if (number != passes_) return;
  --passes_;
  next_ = before_.next;
  current_ = before_.current;
}

void LoaderPlan::set_num_yielded(const LoaderPass& pass, std::size_t batches, bool last) {
  if (pass.number == passes_)
    current_ = LoaderPosition{.epoch = pass.epoch, .batches = batches, .finished = last};
}

void LoaderPlan::skip_rest() {
  if (current_) current_->finished = true;
}

void LoaderPlan::set_finished(const LoaderPass& pass) {
  if (pass.number == passes_) current_.reset();
}

void LoaderPlan::leave_pass() {
  if (current_ && current_->finished) current_.reset();
}

std::string LoaderPlan::state() const {
  const LoaderPosition position = current_.value_or(next_);
  json state{{"epoch", position.epoch},
             {"seed", seed_},
             {"batches", position.batches},
             {"step_size", step_size()},
             {"finished", position.finished}};
  if (dataset_size_) state["dataset_size"] = *dataset_size_;
  return state.dump();
}

namespace {

[[noreturn]] void refuse_state(std::string_view reason) {
  throw Error({.kind = ErrorKind::config,
               .what = fmt::format("is not the state of a data loader: {}", reason),
               .where = "data loader state"});
}

std::uint64_t count_of(const json& fields, const char* name) {
  const json& value = fields.at(name);
  const auto count = whole_number<std::uint64_t>(value);
  if (!count) refuse_state(fmt::format("its {} is {}, not a number of 0, 1, 2, ...", name, value.dump()));
  return *count;
}

}  // namespace

void LoaderPlan::load_state(std::string_view state) {
  try {
    const json fields = json::parse(state);
    const std::uint64_t size = fields.contains("dataset_size") ? count_of(fields, "dataset_size") : 0;
    std::uint64_t samples = 0;
    if (__builtin_mul_overflow(count_of(fields, "batches"), count_of(fields, "step_size"), &samples))
      refuse_state("its batches have more samples than can be counted");
    LoaderPosition position{.epoch = count_of(fields, "epoch"),
                            .batches = samples / step_size(),
                            .finished = fields.value("finished", false)};
    const bool is_other =
        fields.contains("dataset_size") != dataset_size_.has_value() || size != dataset_size();
    // At the start of a pass there is nothing that another data set could not continue.
    if (is_other && samples > 0) {
      throw Error({.kind = ErrorKind::config,
                   .what = fmt::format("belongs to a data set of {} samples, but this one has {}", size,
                                       dataset_size()),
                   .where = "data loader state"});
    }
    seed_ = count_of(fields, "seed");
    next_ = position;
    current_.reset();
  } catch (const json::exception& error) {
    refuse_state(error.what());
  }
}

}  // namespace acc
