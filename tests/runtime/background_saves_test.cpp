// SPDX-License-Identifier: Apache-2.0
// Runs on several processes, each of which runs all cases in this order.
#include <ATen/ops/arange.h>
#include <ATen/ops/randn.h>
#include <torch/optim/adam.h>

#include <atomic>
#include <map>
#include <string>
#include <vector>

#include "acc/base/files.hpp"
#include "acc/runtime/checkpoint/checkpoint_names.hpp"
#include "job.hpp"
#include "support/catch.hpp"
#include "support/torch_tensor.hpp"

namespace {

namespace fs = std::filesystem;
using acc::test::caught_error;
using acc::test::job;
using acc::test::rank;
using acc::test::size;

// A new folder that the main process creates, the same on all processes.
fs::path common_folder() {
  return job().broadcast_object(acc::test::temporary_folder().string());
}

std::map<std::string, std::string> files_in(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(folder))
    files[entry.path().filename().string()] = acc::read_file(entry.path());
  return files;
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

// An object to register, whose state is a number.
struct Counter {
  std::int64_t value = 0;
  acc::PtValue state() const { return value; }
  void load_state(const acc::PtValue& state) { value = static_cast<std::int64_t>(state.number().value()); }
};

// A training with an Accelerator of its own.
struct Training {
  explicit Training(const acc::AcceleratorOptions& options = {}) : accelerator(options) {
    acc::set_seed(1);
    net = std::make_shared<acc::test::NetImpl>(256);
    auto adam = std::make_shared<torch::optim::Adam>(net->parameters(), torch::optim::AdamOptions(0.1));
    model = accelerator.prepare(net);
    optimizer = accelerator.prepare(adam);
    accelerator.register_for_checkpointing(counter);
    acc::set_seed(10 + static_cast<std::uint64_t>(rank()));
  }

  void step() {
    optimizer->zero_grad();
    accelerator.backward((*model)(at::randn({3, 2}).to(accelerator.device())).square().mean());
    optimizer->step();
    ++counter.value;
  }

  acc::Accelerator accelerator;
  std::shared_ptr<acc::test::NetImpl> net = {};
  std::optional<acc::Model<acc::test::NetImpl>> model = {};
  std::optional<acc::Optimizer> optimizer = {};
  Counter counter = {};
};

// Makes the next save fail on the last process: a folder has the name of the file that it has to write.
acc::HookHandle fail_on_last(acc::Accelerator& accelerator) {
  return accelerator.register_save_state_pre_hook([](auto& /*weights*/, const fs::path& into) {
    if (rank() == size() - 1) fs::create_directories(into / acc::detail::random_states_file(rank()));
  });
}

}  // namespace

TEST_CASE("background saves: the training goes on, and the files are those of the call, to the byte",
          "[ranks]") {
  const fs::path folder = common_folder();
  Training training;
  training.step();
  training.accelerator.save_state(folder / "at_once");
  const bool overwrites = GENERATE(false, true);
  if (overwrites) training.accelerator.save_state(folder / "beside");
  CHECK(training.accelerator.save_state(folder / "beside", {.background = true}) == folder / "beside");
  for (int step = 0; step < 20; ++step) training.step();
  training.accelerator.wait_for_save();
  CHECK(files_in(folder / "beside") == files_in(folder / "at_once"));
  CHECK(names_in(folder) == std::vector<std::string>{"at_once", "beside"});

  // The training itself is the one of a program that saves nothing.
  const at::Tensor trained = acc::test::flat(*training.net);
  Training other;
  for (int step = 0; step < 21; ++step) other.step();
  CHECK(acc::test::flat(*other.net).equal(trained));
  job().wait_for_everyone();
}

TEST_CASE("background saves: a save waits for the one before, and a load loads it", "[ranks]") {
  const fs::path folder = common_folder();
  Training training;
  std::atomic<int> saved = 0;
  for (int i = 1; i <= 3; ++i) {
    training.step();
    const bool background = i < 3;
    training.accelerator.save_state(folder / std::to_string(i),
                                    {.background = background, .on_saved = [&] { ++saved; }});
    CHECK(saved >= (background ? i - 1 : i));
    if (i > 1) CHECK(fs::exists(folder / std::to_string(i - 1)));
  }
  training.accelerator.save_state(folder / "4", {.background = true});
  training.counter.value = 0;
  training.accelerator.load_state(folder / "4");
  CHECK(training.counter.value == 3);
  job().wait_for_everyone();
}

TEST_CASE("background saves: the next call throws the error on all, and the old checkpoint is kept",
          "[ranks]") {
  const fs::path folder = common_folder() / "checkpoint";
  Training training;
  acc::Accelerator& accelerator = training.accelerator;
  training.counter.value = 1;
  accelerator.save_state(folder);
  training.counter.value = 2;
  const std::string next = GENERATE("wait_for_save", "save_state", "load_state", "end_training");
  acc::HookHandle hook = fail_on_last(accelerator);
  accelerator.save_state(folder, {.background = true});
  hook.remove();
  const acc::Error error = caught_error([&] {
    if (next == "wait_for_save") accelerator.wait_for_save();
    if (next == "save_state") accelerator.save_state(folder);
    if (next == "load_state") accelerator.load_state(folder);
    if (next == "end_training") accelerator.end_training();
  });
  INFO(next + ": " + error.what());
  CHECK(std::string(error.what())
            .find("random_states_" + std::to_string(size() - 1) + ".pkl: cannot be replaced") !=
        std::string::npos);
  job().wait_for_everyone();
  CHECK(names_in(folder.parent_path()) == std::vector<std::string>{"checkpoint"});
  job().wait_for_everyone();
  accelerator.load_state(folder);
  CHECK(training.counter.value == 1);
  accelerator.save_state(folder, {.background = true});
  accelerator.end_training();
}

TEST_CASE("background saves: what on_saved throws on one process is the error on all", "[ranks]") {
  const fs::path folder = common_folder() / "checkpoint";
  const bool background = GENERATE(false, true);
  Training training;
  const auto upload = [] {
    if (rank() == 0) throw acc::Error({.what = "no room there", .where = "upload"});
  };
  const acc::Error error = caught_error([&] {
    training.accelerator.save_state(folder, {.background = background, .on_saved = upload});
    training.accelerator.wait_for_save();
  });
  CHECK(std::string(error.what()).find("upload: no room there") != std::string::npos);
  CHECK(fs::exists(folder));
  job().wait_for_everyone();
}

TEST_CASE("background saves: the destructor waits, so that the checkpoint is complete", "[ranks]") {
  const fs::path folder = common_folder() / "checkpoint";
  {
    Training training;
    training.step();
    training.accelerator.save_state(folder, {.background = true});
  }
  Training training;
  training.accelerator.load_state(folder);
  CHECK(training.counter.value == 1);
  job().wait_for_everyone();
}

TEST_CASE("background saves: the oldest are removed when the newest is complete", "[ranks]") {
  const fs::path project = common_folder();
  Training training(
      {.project_dir = project, .project = {.automatic_checkpoint_naming = true, .total_limit = 2}});
  for (int i = 0; i < 4; ++i) {
    training.step();
    CHECK(training.accelerator.save_state({}, {.background = true}) ==
          project / "checkpoints" / ("checkpoint_" + std::to_string(i)));
  }
  training.accelerator.wait_for_save();
  CHECK(names_in(project / "checkpoints") == std::vector<std::string>{"checkpoint_2", "checkpoint_3"});
  training.counter.value = 0;
  training.accelerator.load_state();
  CHECK(training.counter.value == 4);
  job().wait_for_everyone();
}
