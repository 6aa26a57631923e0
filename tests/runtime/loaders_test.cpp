// SPDX-License-Identifier: Apache-2.0
// Loaders on several processes, each of which runs all cases in this order.
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include <map>
#include <stdexcept>
#include <string>

#include "acc/base/error.hpp"
#include "acc/runtime/accelerator/accelerator.hpp"
#include "acc/runtime/data/tensor_batches.hpp"
#include "support/catch.hpp"

namespace {

// A new Accelerator with these options. Another one exists for the whole program, since a process joins its
// job once.
acc::Accelerator accelerator_with(acc::AcceleratorOptions options) {
  static const acc::Accelerator job({.process_group = {.timeout = std::chrono::minutes(1)}});
  return acc::Accelerator(std::move(options));
}

// The numbers 0, 1, ... in epoch 0, 1000, 1001, ... in the next one; counts how often it was read.
struct Stream {
  std::int64_t size = 0;
  std::shared_ptr<int> asked = std::make_shared<int>(0);
  std::int64_t broken = -1;
  std::int64_t offset = 0;
  std::int64_t first = 0;

  void set_epoch(std::uint64_t epoch) { first = 1000 * static_cast<std::int64_t>(epoch); }
  void reset() { offset = 0; }
  std::optional<std::int64_t> next() {
    ++*asked;
    if (offset == broken) throw std::runtime_error("torn");
    return offset == size ? std::nullopt : std::optional(first + offset++);
  }
};

// Numbers from 0 on; a batch is a map of columns with the same content.
struct Columns {
  using Batch = std::map<std::string, std::tuple<at::Tensor, std::vector<std::string>, int>>;
  std::size_t samples = 0;

  std::size_t size() const { return samples; }
  Batch get_batch(c10::ArrayRef<std::size_t> indices) const {
    std::vector<std::int64_t> numbers(indices.begin(), indices.end());
    std::vector<std::string> texts;
    for (const std::size_t index : indices) texts.push_back(std::to_string(index));
    const at::Tensor rows = at::tensor(numbers, at::kLong);
    return {{"a", {rows, texts, 1}}, {"b", {rows + 1, texts, 2}}};
  }
};

// Sample n has n zeros and the number n.
struct Ragged {
  std::int64_t offset = 0;

  void reset() { offset = 0; }
  std::optional<std::map<std::string, at::Tensor>> next() {
    if (offset == 7) return std::nullopt;
    const std::int64_t number = offset++;
    return {{{"zeros", at::zeros({number})}, {"number", at::full({}, number, at::kLong)}}};
  }
};

struct Opaque {
  std::size_t size() const { return 8; }
  std::shared_ptr<int> get_batch(c10::ArrayRef<std::size_t> /*indices*/) const { return nullptr; }
};

template <class Loader>
at::Tensor gathered(acc::Accelerator& accelerator, Loader& loader) {
  std::vector<at::Tensor> parts;
  for (auto& batch : loader) {
    if constexpr (requires { batch.front(); }) {
      parts.push_back(accelerator.gather_for_metrics(batch.front()));
    } else {
      parts.push_back(accelerator.gather_for_metrics(batch));
    }
  }
  return at::cat(parts).cpu();
}

at::Tensor gathered_columns(acc::Accelerator& accelerator, acc::DataLoader<Columns>& loader) {
  std::vector<at::Tensor> parts;
  for (const auto& batch : loader) {
    REQUIRE(batch.size() == 2);
    const auto& [rows, texts, value] = batch.at("a");
    const auto& [more_rows, more_texts, more_value] = batch.at("b");
    std::vector<std::string> numbers;
    for (std::int64_t i = 0; i < rows.size(0); ++i)
      numbers.push_back(std::to_string(rows[i].item<std::int64_t>()));
    CHECK(texts == numbers);
    CHECK(more_texts == numbers);
    CHECK(more_rows.equal(rows + 1));
    CHECK(std::pair(value, more_value) == std::pair(1, 2));
    parts.push_back(accelerator.gather_for_metrics(rows));
  }
  return at::cat(parts).cpu();
}

}  // namespace

TEST_CASE("loaders: rank 0 says that a loader which was not prepared is read as a whole", "[ranks]") {
  struct Warnings : c10::WarningHandler {
    void process(const c10::Warning& warning) override { texts.push_back(warning.msg()); }
    std::vector<std::string> texts;
  };
  acc::Accelerator accelerator = accelerator_with({});
  const c10::WarningUtils::WarnAlways each;
  Warnings warnings;
  const c10::WarningUtils::WarningHandlerGuard guard(&warnings);
  const auto read = [](auto loader) {
    for (const auto& batch : loader) static_cast<void>(batch);
  };
  const acc::TensorDataset data(at::arange(8));
  read(accelerator.prepare(acc::DataLoader(data, {.batch_size = 2})));
  const auto sampler = std::make_shared<acc::DistributedSampler>(8);
  read(acc::DataLoader(data, {.batch_size = 2, .sampler = sampler}));
  CHECK(warnings.texts.empty());
  read(acc::DataLoader(data, {.batch_size = 2}));
  if (accelerator.process_index() != 0 || !accelerator.distributed()) {
    CHECK(warnings.texts.empty());
  } else {
    REQUIRE(warnings.texts.size() == 1);
    CHECK(warnings.texts.front().starts_with("a loader that was not prepared is read as a whole"));
  }
}

TEST_CASE("loaders: when rank 0 reads for all, gather_for_metrics returns each sample once", "[ranks]") {
  const int samples = GENERATE(1, 7, 8, 23, 24);
  const bool split = GENERATE(false, true);
  acc::Accelerator accelerator = accelerator_with({.split_batches = split, .dispatch_batches = true});
  auto loader = accelerator.prepare(acc::DataLoader(acc::TensorDataset(at::arange(samples, at::kLong)),
                                                    {.batch_size = 6, .num_workers = 1}));
  CHECK(gathered(accelerator, loader).equal(at::arange(samples, at::kLong)));
}

TEST_CASE("loaders: an iterable data set is read by rank 0 only, unless dispatch_batches is off", "[ranks]") {
  const std::optional<bool> dispatch = GENERATE(as<std::optional<bool>>(), std::nullopt, false);
  const Stream stream{.size = 11};
  acc::Accelerator accelerator = accelerator_with({.dispatch_batches = dispatch});
  auto loader = accelerator.prepare(acc::DataLoader(stream, {.batch_size = 2}));
  CHECK(gathered(accelerator, loader).equal(at::arange(11, at::kLong)));
  const bool reads = dispatch.has_value() || accelerator.is_main_process();
  CHECK(*stream.asked == (reads ? 12 : 0));
}

TEST_CASE("loaders: a read error of rank 0 is an error on every rank, and the job continues", "[ranks]") {
  acc::Accelerator accelerator = accelerator_with({});
  auto loader = accelerator.prepare(acc::DataLoader(Stream{.size = 20, .broken = 9}, {.batch_size = 1}));
  std::string message;
  try {
    gathered(accelerator, loader);
  } catch (const acc::Error& error) {
    message = error.what();
  }
  CHECK(message.starts_with(accelerator.is_main_process() ? "sample 9: torn"
                                                          : "dispatch_batches: rank 0 could not read"));
  accelerator.wait_for_everyone();
}

TEST_CASE("loaders: when rank 0 reads for all, maps, texts and values arrive unchanged", "[ranks]") {
  const std::size_t samples = GENERATE(std::size_t{1}, std::size_t{7}, std::size_t{23}, std::size_t{24});
  const bool split = GENERATE(false, true);
  acc::Accelerator accelerator = accelerator_with({.split_batches = split, .dispatch_batches = true});
  const auto make = [&] {
    return accelerator.prepare(acc::DataLoader(Columns{samples}, {.batch_size = 6, .num_workers = 1}));
  };
  auto loader = make();
  const at::Tensor all = at::arange(static_cast<std::int64_t>(samples), at::kLong);
  CHECK(gathered_columns(accelerator, loader).equal(all));
  if (samples < 23) return;
  auto pass = loader.begin();
  const std::int64_t rows = accelerator.gather_for_metrics(std::get<0>(pass->at("a"))).size(0);
  auto restored = make();
  restored.load_state(loader.state());
  CHECK(gathered_columns(accelerator, restored).equal(all.slice(0, rows)));
}

TEST_CASE("loaders: samples that cannot be stacked are sent one by one", "[ranks]") {
  acc::Accelerator accelerator = accelerator_with({});
  auto loader = accelerator.prepare(acc::DataLoader(Ragged{}, {.batch_size = 2}));
  std::vector<std::int64_t> numbers;
  for (const auto& batch : loader) {
    std::vector<std::int64_t> local;
    for (const auto& sample : batch) {
      local.push_back(sample.at("number").item<std::int64_t>());
      CHECK(sample.at("zeros").cpu().equal(at::zeros({local.back()})));
    }
    const auto all = accelerator.gather_for_metrics(local);
    numbers.insert(numbers.end(), all.begin(), all.end());
  }
  CHECK(numbers == std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6});
}

TEST_CASE("loaders: batches that cannot be sent are the same error on every rank", "[ranks]") {
  acc::Accelerator accelerator = accelerator_with({.dispatch_batches = true});
  auto loader = accelerator.prepare(acc::DataLoader(Opaque(), {.batch_size = 2}));
  std::string message;
  try {
    loader.begin();
  } catch (const acc::Error& error) {
    message = error.what();
  }
  CHECK(message.starts_with(
      accelerator.distributed() ? "dispatch_batches: rank 0 cannot send batches of this type" : ""));
  accelerator.wait_for_everyone();
}

TEST_CASE("loaders: evaluation with DistributedEvalSampler counts each sample once", "[ranks]") {
  acc::Accelerator accelerator = accelerator_with({});
  const bool prepared = GENERATE(true, false);
  acc::DataLoader loader(acc::TensorDataset(at::arange(10000, at::kLong)),
                         {.batch_size = 64, .sampler = std::make_shared<acc::DistributedEvalSampler>(10000)});
  if (prepared) loader = accelerator.prepare(loader);
  std::int64_t count = 0;
  std::int64_t sum = 0;
  for (auto& [numbers] : loader) {
    count += numbers.size(0);
    sum += numbers.sum().item<std::int64_t>();
  }
  CHECK(accelerator.reduce(at::full({}, count, at::kLong)).item<std::int64_t>() == 10000);
  CHECK(accelerator.reduce(at::full({}, sum, at::kLong)).item<std::int64_t>() == 9999 * 10000 / 2);
}

TEST_CASE("loaders: a pass synchronizes the generators of rng_types", "[ranks]") {
  const bool asked = GENERATE(false, true);
  acc::Accelerator accelerator =
      accelerator_with({.rng_types = {asked ? acc::RngType::torch : acc::RngType::generator}});
  auto loader = accelerator.prepare(
      acc::DataLoader(acc::TensorDataset(at::arange(8, at::kLong)), {.batch_size = 1, .seed = 1}));
  acc::set_seed(static_cast<std::uint64_t>(accelerator.process_index()));
  auto pass = loader.begin();
  const at::Tensor local = at::rand({4});
  CHECK(accelerator.broadcast(local).equal(local) == (asked || accelerator.is_main_process()));
}

TEST_CASE("loaders: epochs are passes over the first loader, or over the one that is named", "[ranks]") {
  acc::Accelerator accelerator = accelerator_with({});
  const auto numbers = [&] {
    return accelerator.prepare(
        acc::DataLoader(acc::TensorDataset(at::arange(6, at::kLong)), {.batch_size = 1}));
  };
  auto evaluation = numbers();
  auto train = numbers();
  for (int pass = 0; pass < 3; ++pass)
    for (const auto& batch : evaluation) static_cast<void>(batch);
  CHECK(accelerator.epochs(4).size() == 1);
  CHECK(accelerator.epochs(4, train).size() == 4);
  CHECK(accelerator.epochs(2, evaluation).empty());
}

TEST_CASE("loaders: a restored loader gives each process its remaining batches", "[ranks]") {
  const bool dispatch = GENERATE(false, true);
  acc::Accelerator accelerator = accelerator_with({.dispatch_batches = dispatch});
  const auto make = [&] {
    return accelerator.prepare(
        acc::DataLoader(acc::TensorDataset(at::arange(90, at::kLong)),
                        {.batch_size = 4, .shuffle = true, .seed = 6, .num_workers = 2}));
  };
  auto whole = make();
  const at::Tensor all = gathered(accelerator, whole);
  auto interrupted = make();
  std::int64_t rows = 0;
  int steps = 0;
  for (auto& [numbers] : interrupted) {
    rows += accelerator.gather_for_metrics(numbers).size(0);
    if (++steps == 3) break;
  }
  auto restored = make();
  restored.load_state(interrupted.state());
  CHECK(gathered(accelerator, restored).equal(all.slice(0, rows)));
}

TEST_CASE("loaders: a restored iterable loader continues its epoch with the remaining samples", "[ranks]") {
  const bool dispatch = GENERATE(false, true);
  const bool split = GENERATE(false, true);
  const std::size_t workers = GENERATE(std::size_t{0}, std::size_t{1});
  acc::Accelerator accelerator = accelerator_with({.split_batches = split, .dispatch_batches = dispatch});
  const auto make = [&] {
    return accelerator.prepare(
        acc::DataLoader(Stream{.size = 23}, {.batch_size = 6, .num_workers = workers}));
  };
  auto interrupted = make();
  gathered(accelerator, interrupted);
  auto pass = interrupted.begin();
  const std::int64_t rows = accelerator.gather_for_metrics(*pass).size(0);
  const std::string state = interrupted.state();
  // Samples that were only read ahead count as remaining.
  auto restored = make();
  restored.load_state(state);
  CHECK(gathered(accelerator, restored).equal(at::arange(1000 + rows, 1023, at::kLong)));
  CHECK(gathered(accelerator, restored)[0].item<std::int64_t>() == 2000);
}
