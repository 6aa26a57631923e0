// SPDX-License-Identifier: Apache-2.0
// trainer_run ARGUMENTS.json: trains a network with dropout on the examples' digits. In ACC_TEST_KILL_AT it
// may be told a step after which rank 0 ends as by kill -9, with a folder in memory in the first attempt, in
// ACC_TEST_STOP_AT one in which the last rank gets SIGUSR1.
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "acc/error.hpp"
#include "acc/trainer.hpp"
#include "common/images.hpp"

namespace {

struct DroppingImpl : torch::nn::Module {
  DroppingImpl() {
    fc1 = register_module("fc1", torch::nn::Linear(784, 32));
    dropout = register_module("dropout", torch::nn::Dropout(0.3));
    fc2 = register_module("fc2", torch::nn::Linear(32, 10));
  }
  at::Tensor forward(const at::Tensor& images) { return fc2(dropout(fc1(images.flatten(1)).relu())); }

  torch::nn::Linear fc1 = nullptr;
  torch::nn::Dropout dropout = nullptr;
  torch::nn::Linear fc2 = nullptr;
};
TORCH_MODULE(Dropping);

class KillAt : public acc::TrainerCallback {
 public:
  explicit KillAt(long step) : step_(step) {}
  void on_step_end(const Arguments& /*arguments*/, State& state, Control& /*control*/) override {
    const bool is_first = std::getenv("ACC_MEMORY_FOLDER") == nullptr ||
                          std::getenv("TORCHELASTIC_RESTART_COUNT") == std::string("0");
    if (state.is_world_process_zero && state.global_step == step_ && is_first) std::raise(SIGKILL);
  }

 private:
  long step_;
};

class StopAt : public acc::TrainerCallback {
 public:
  StopAt(long step, bool is_last_process) : step_(step), is_last_process_(is_last_process) {}
  void on_step_begin(const Arguments& /*arguments*/, State& state, Control& /*control*/) override {
    if (is_last_process_ && state.global_step + 1 == step_) std::raise(SIGUSR1);
  }

 private:
  long step_;
  bool is_last_process_;
};

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) throw acc::Error({.what = "needs a file of arguments", .where = argv[0]});
  const auto arguments = acc::read_training_arguments(argv[1]);
  acc::TrainerOptions options;
  if (const char* step = std::getenv("ACC_TEST_KILL_AT"))
    options.callbacks.push_back(std::make_shared<KillAt>(std::atol(step)));
  const Data data = load_data();
  acc::set_seed(1);
  acc::Trainer trainer(Dropping(), arguments, data.train, data.test, options);
  if (const char* step = std::getenv("ACC_TEST_STOP_AT"))
    trainer.add_callback(std::make_shared<StopAt>(std::atol(step), trainer.accelerator().is_last_process()));
  trainer.train();
  trainer.save_model();
  trainer.save_state();
  return 0;
} catch (const acc::Error& error) {
  std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
  return acc::exit_code(error.kind());
}
