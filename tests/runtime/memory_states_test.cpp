// SPDX-License-Identifier: Apache-2.0
// States in memory. Runs on several processes, each of which runs all cases in this order.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <sys/resource.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/formats/saved_states.hpp"
#include "acc/runtime/accelerator/accelerator.hpp"
#include "acc/runtime/comm/objects.hpp"
#include "runtime/process.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/torch_tensor.hpp"

namespace memory_states_test {

namespace {

namespace fs = std::filesystem;
using Numbers = std::vector<std::int64_t>;

struct NetImpl : torch::nn::Module {
  NetImpl()
      : linear(register_module("linear", torch::nn::Linear(2, 4))),
        norm(register_module("norm", torch::nn::BatchNorm1d(4))) {}
  at::Tensor forward(const at::Tensor& x) { return norm(linear(x)); }
  torch::nn::Linear linear;
  torch::nn::BatchNorm1d norm;
};

struct Counter {
  std::int64_t value = 0;
  acc::PtValue state() const { return value; }
  void load_state(const acc::PtValue& state) { value = static_cast<std::int64_t>(state.number().value()); }
};

// The same, whose state may be large.
struct Blob {
  std::string bytes = {};
  acc::PtValue state() const { return bytes; }
  void load_state(const acc::PtValue& state) { bytes = *state.get_if<std::string>(); }
};

// A training with a folder in memory: the same for all processes, or one for each.
struct Training {
  explicit Training(bool own_machine = false) {
    if (own_machine) {
      ::setenv("LOCAL_RANK", "0", 1);
      ::setenv("LOCAL_WORLD_SIZE", "1", 1);
    }
    const acc::PartialState processes;
    memory = acc::test::temporary_folder();
    if (!own_machine) memory = processes.broadcast_object(memory.string());
    disk = processes.broadcast_object(acc::test::temporary_folder().string());
    ::setenv("ACC_MEMORY_FOLDER", memory.c_str(), 1);
    accelerator.emplace(
        acc::AcceleratorOptions{.project_dir = disk, .project = {.automatic_checkpoint_naming = true}});
    net = std::make_shared<NetImpl>();
    accelerator->prepare(net);
    accelerator->register_for_checkpointing(counter);
  }
  ~Training() { ::unsetenv("ACC_MEMORY_FOLDER"); }

  void set(std::int64_t value) {
    counter.value = value;
    const at::NoGradGuard no_grad;
    for (at::Tensor& parameter : net->parameters()) parameter.fill_(static_cast<double>(value));
  }

  void save(std::int64_t value) {
    set(value);
    accelerator->save_state(acc::in_memory);
    accelerator->wait_for_save();
  }

  // The value that a restart goes on with; -1: it begins anew.
  std::int64_t resumed() {
    set(-1);
    accelerator->wait_for_everyone();
    const bool is_there = accelerator->resume();
    CHECK(is_there == (counter.value != -1));
    CHECK(net->linear->weight.allclose(at::full({4, 2}, static_cast<double>(counter.value))));
    accelerator->wait_for_everyone();
    return counter.value;
  }

  acc::SavedStates states() const { return acc::states_of_trainings(memory).back(); }

  Numbers numbers() const {
    accelerator->wait_for_everyone();
    Numbers numbers;
    for (const acc::SavedState& state : states().all()) numbers.push_back(state.number);
    accelerator->wait_for_everyone();
    return numbers;
  }

  // One byte of the file is another one.
  void damage(std::int64_t number, const char* name, std::streamoff at) const {
    const fs::path file = states().snapshot(number) / name;
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(at);
    const int byte = stream.get();
    stream.seekp(at);
    stream.put(static_cast<char>(byte ^ 1));
  }

  void damage_on(int process, std::int64_t number, const char* name) const {
    accelerator->wait_for_everyone();
    accelerator->on_process(process, [&] { damage(number, name, 20); });
    accelerator->wait_for_everyone();
  }

  fs::path memory = {};
  fs::path disk = {};
  std::optional<acc::Accelerator> accelerator = {};
  std::shared_ptr<NetImpl> net = {};
  Counter counter = {};
};

std::map<std::string, std::string> contents(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(folder))
    files[entry.path().filename().string()] = acc::read_file(entry.path());
  return files;
}

// Files cannot grow while it exists, as on a full file system.
class NoRoom {
 public:
  explicit NoRoom(rlim_t bytes = 16) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit = {.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    std::signal(SIGXFSZ, SIG_IGN);
  }
  ~NoRoom() { ::setrlimit(RLIMIT_FSIZE, &before_); }
  NoRoom(const NoRoom&) = delete;
  NoRoom& operator=(const NoRoom&) = delete;

 private:
  rlimit before_ = {};
};

TEST_CASE("memory_states: the newest two stay, and the newest is loaded", "[ranks]") {
  Training training;
  CHECK(training.resumed() == -1);
  for (int value = 1; value <= 4; ++value) training.save(value);
  CHECK(training.numbers() == Numbers{3, 2});
  CHECK(training.resumed() == 4);
  training.save(5);
  CHECK(training.resumed() == 5);
  CHECK(training.numbers() == Numbers{4, 3});
}

TEST_CASE("memory_states: a state on the disk counts where it is the newest", "[ranks]") {
  Training training;
  training.save(1);
  training.set(2);
  const fs::path folder =
      training.accelerator->save_state(std::nullopt, {.background = GENERATE(false, true)});
  training.accelerator->wait_for_save();
  CHECK(training.resumed() == 2);
  training.save(3);
  CHECK(training.resumed() == 3);
  training.damage_on(0, 2, "model.safetensors");
  CHECK(training.resumed() == 2);
  training.accelerator->on_main_process([&] { fs::remove_all(folder); });
  CHECK(training.resumed() == 1);
}

TEST_CASE("memory_states: where all in memory are damaged, an older one on the disk counts", "[ranks]") {
  Training training;
  training.set(1);
  training.accelerator->save_state();
  for (int value = 2; value <= 4; ++value) training.save(value);
  CHECK(training.numbers() == Numbers{3, 2, 0});
  for (const int number : {2, 3}) training.damage_on(0, number, "model.safetensors");
  CHECK(training.resumed() == 1);
}

TEST_CASE("memory_states: of a damaged state nothing is loaded, whatever is damaged", "[ranks]") {
  const char* name = GENERATE("model.safetensors", "custom_checkpoint_0.pkl", "random_states_0.pkl",
                              "snapshot.json", "checksums_0.json");
  Training training;
  training.save(1);
  training.save(2);
  training.damage_on(0, 1, name);
  CHECK(training.resumed() == 1);
  // What could not be loaded is gone, and its number is free.
  training.save(3);
  CHECK(training.numbers() == Numbers{1, 0});
  training.damage_on(0, 1, name);
  training.damage_on(0, 0, name);
  CHECK(training.resumed() == -1);
}

TEST_CASE("memory_states: each training has its own", "[ranks]") {
  Training training;
  training.save(1);
  training.save(2);
  training.accelerator->free_memory();
  training.accelerator->prepare(training.net);
  CHECK(training.resumed() == -1);
  training.save(3);
  CHECK(training.resumed() == 3);
  // Of the one before it one stays, for a restart that begins with that one.
  CHECK(acc::states_of_trainings(training.memory).front().all().size() == 1);
}

TEST_CASE("memory_states: a save without room is none, and the training goes on", "[ranks]") {
  Training training;
  training.save(1);
  {
    const NoRoom no_room;
    training.save(2);
  }
  CHECK(training.resumed() == 1);
  training.save(3);
  CHECK(training.resumed() == 3);
}

TEST_CASE("memory_states: load_state takes the newest, wherever it is", "[ranks]") {
  Training training;
  CHECK_THROWS_WITH(training.accelerator->load_state(), Catch::Matchers::Contains("holds no checkpoint"));
  training.set(1);
  training.accelerator->save_state();
  training.save(2);
  training.set(-1);
  training.accelerator->load_state();
  CHECK(training.counter.value == 2);
}

TEST_CASE("memory_states: of another training in the folder on the disk none is replaced", "[ranks]") {
  Training training;
  training.accelerator->on_main_process(
      [&] { fs::create_directories(training.disk / "checkpoints" / "checkpoint_0"); });
  training.accelerator->wait_for_everyone();
  CHECK_THROWS_WITH(training.save(1), Catch::Matchers::Contains("checkpoint_0: already exists"));
  CHECK(training.resumed() == -1);
}

TEST_CASE("memory_states: without memory nothing is saved, and without a folder it is refused", "[ranks]") {
  ::unsetenv("ACC_MEMORY_FOLDER");
  const fs::path disk = acc::test::temporary_folder();
  acc::Accelerator named({.project_dir = disk, .project = {.automatic_checkpoint_naming = true}});
  named.save_state(acc::in_memory);
  CHECK_FALSE(named.resume());
  CHECK(fs::is_empty(disk));
  acc::Accelerator unnamed;
  CHECK(acc::test::error_of([&] {
          unnamed.save_state(acc::in_memory);
        }).starts_with("save_state(in_memory): needs a"));
}

TEST_CASE("memory_states: a save to the disk is one, also where there is no room for its note", "[ranks]") {
  Training training;
  training.save(1);
  const fs::path note = training.states().folder() / "on_disk_1";
  // A folder has the name of the note.
  const auto obstruct = [&](const fs::path& /*checkpoint*/) {
    if (training.accelerator->is_main_process()) fs::create_directories(note);
  };
  training.set(2);
  const fs::path folder = training.accelerator->save_state(std::nullopt, {.add_files = obstruct});
  CHECK(fs::exists(folder / "model.safetensors"));
  training.accelerator->wait_for_everyone();
  training.accelerator->on_main_process([&] { fs::remove(note); });
  CHECK(training.resumed() == 1);
}

// The next cases run in a job in which every process is told that it is the only one on its machine.

TEST_CASE("memory_states: each machine has all of it, as the main process has it", "[.machines]") {
  Training training(true);
  const int rank = training.accelerator->process_index();
  training.set(1);
  // As running means of a batch norm, and an object of the program.
  training.net->norm->running_mean.fill_(rank);
  training.counter.value = 10 + rank;
  training.accelerator->save_state(acc::in_memory);
  training.accelerator->wait_for_save();
  const auto files = contents(training.states().snapshot(0));
  for (int i = 0; i < training.accelerator->num_processes(); ++i)
    CHECK(files.contains("random_states_" + std::to_string(i) + ".pkl"));
  for (const char* name : {"model.safetensors", "custom_checkpoint_0.pkl", "random_states_0.pkl"}) {
    const std::string& file = files.at(name);
    const std::vector<int> bytes(file.begin(), file.end());
    CHECK(training.accelerator->broadcast_object(bytes) == bytes);
  }
}

TEST_CASE("memory_states: a machine without them gets them from one that has them", "[.machines]") {
  Training training(true);
  training.save(1);
  training.save(2);
  const int without_state = GENERATE(0, 1);
  training.accelerator->on_process(without_state, [&] { fs::remove_all(training.memory); });
  CHECK(training.resumed() == 2);
  CHECK(contents(training.states().snapshot(1)).size() >= 6);
}

TEST_CASE("memory_states: a damaged one is replaced by that of another machine", "[.machines]") {
  Training training(true);
  training.save(1);
  training.save(2);
  training.damage_on(0, 1, "model.safetensors");
  CHECK(training.resumed() == 2);
  CHECK(training.resumed() == 2);
}

// Saves two states, and replaces the first on one process.
fs::path replace_first_state(Training& training, int process,
                             const std::function<void(const fs::path&)>& replace) {
  training.save(1);
  training.save(2);
  const fs::path folder = training.states().snapshot(1);
  training.accelerator->wait_for_everyone();
  training.accelerator->on_process(process, [&] {
    fs::remove_all(folder);
    replace(folder);
  });
  return folder;
}

TEST_CASE("memory_states: a machine that cannot take a state tells the others why, and none waits",
          "[.machines]") {
  Training training(true);
  const int obstructed = GENERATE(0, 1);
  const fs::path folder = replace_first_state(training, obstructed,
                                              [](const fs::path& file) { std::ofstream(file) << "a file"; });
  const std::string error = acc::test::error_of([&] { training.accelerator->resume(); });
  CHECK(error.ends_with("snapshot_1: cannot be replaced: Not a directory"));
  CHECK(error.starts_with("process ") == (training.accelerator->process_index() != obstructed));
  training.accelerator->on_process(obstructed, [&] { fs::remove(folder); });
  CHECK(training.resumed() == 2);
}

TEST_CASE("memory_states: where the folder cannot be looked at, none waits either", "[.machines]") {
  Training training(true);
  const int obstructed = GENERATE(0, 1);
  const fs::path folder =
      replace_first_state(training, obstructed, [](const fs::path& link) { fs::create_symlink(link, link); });
  CHECK_FALSE(acc::test::error_of([&] { training.accelerator->resume(); }).empty());
  training.accelerator->on_process(obstructed, [&] { fs::remove(folder); });
  CHECK(training.resumed() == 2);
}

TEST_CASE("memory_states: a machine that cannot take what the main process has fails the save, not the job",
          "[.machines]") {
  Training training(true);
  training.save(1);
  // So large on the main process alone.
  constexpr std::size_t kRoom = std::size_t{64} << 10U;
  const int rank = training.accelerator->process_index();
  const std::size_t objects = GENERATE(std::size_t{1}, std::size_t{2});
  std::vector<Blob> blobs(objects, Blob{std::string(rank == 0 ? 2 * kRoom : 8, 'x')});
  for (Blob& blob : blobs) training.accelerator->register_for_checkpointing(blob);
  {
    std::optional<NoRoom> no_room;
    if (rank == 1) no_room.emplace(kRoom);
    training.save(2);
  }
  CHECK(training.numbers() == Numbers{0});
  training.save(3);
  CHECK(training.resumed() == 3);
}

TEST_CASE("memory_states: where no machine has the newest undamaged, all take the one before",
          "[.machines]") {
  Training training(true);
  training.save(1);
  training.save(2);
  for (int i = 0; i < training.accelerator->num_processes(); ++i)
    training.damage_on(i, 1, "model.safetensors");
  CHECK(training.resumed() == 1);
}

}  // namespace

}  // namespace memory_states_test
