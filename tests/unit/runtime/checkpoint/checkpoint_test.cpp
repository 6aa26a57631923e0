// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/checkpoint.hpp"

#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <sys/resource.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "acc/base/files.hpp"
#include "acc/runtime/checkpoint/stateful.hpp"
#include "acc/runtime/tensors/random.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/torch_tensor.hpp"

namespace checkpoint_test {

namespace {

namespace fs = std::filesystem;

// A training on one process, and its checkpoint content.
struct Training {
  torch::nn::Linear net = torch::nn::Linear(3, 2);
  torch::optim::Adam optimizer = torch::optim::Adam(net->parameters(), torch::optim::AdamOptions(0.01));
  std::int64_t seen = 0;

  acc::CheckpointContent content() {
    const acc::Stateful counter = {
        .state = [this] { return acc::PtValue(seen); },
        .load_state =
            [this](const acc::PtValue& value) { seen = static_cast<std::int64_t>(value.number().value()); }};
    return {.models = {net.get()}, .optimizers = {&optimizer}, .registered = {counter}, .step = 5};
  }

  void train(int steps) {
    for (int step = 0; step < steps; ++step) {
      optimizer.zero_grad();
      net->forward(at::randn({4, 3})).square().mean().backward();
      optimizer.step();
      ++seen;
    }
  }
};

std::string save_error(const fs::path& folder, Training& training) {
  return acc::test::error_of([&] { acc::save_checkpoint(folder, training.content(), {}); });
}

std::string load_error(const fs::path& folder, const acc::CheckpointContent& content) {
  return acc::test::error_of([&] { acc::load_checkpoint(folder, content, 0); });
}

// While it exists, files of this process cannot grow beyond `bytes`.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limited = {bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limited);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_ = {};
  void (*handler_)(int);
};

}  // namespace

TEST_CASE("checkpoint: a resumed training equals the uninterrupted one, bit for bit", "[runtime]") {
  const bool safe = GENERATE(true, false);
  const fs::path folder = acc::test::temporary_folder() / "checkpoint";
  acc::set_seed(1);
  Training whole;
  whole.train(3);
  acc::save_checkpoint(folder, whole.content(), {}, {.safe_serialization = safe});
  whole.train(4);

  acc::set_seed(99);
  Training resumed;
  CHECK(acc::load_checkpoint(folder, resumed.content(), 0) == 5);
  CHECK(resumed.seen == 3);
  resumed.train(4);
  CHECK(resumed.net->weight.equal(whole.net->weight));
  CHECK(resumed.net->bias.equal(whole.net->bias));
}

TEST_CASE("checkpoint: what is loaded beside a save is of one save", "[runtime]") {
  const fs::path folder = acc::test::temporary_folder() / "checkpoint";
  constexpr int kLoads = 200;
  // Each load meets one save, of a model and a counter with the same value.
  std::atomic<int> begun = 0;
  Training saved;
  const auto save = [&](int number) {
    const at::NoGradGuard no_grad;
    saved.net->weight.fill_(number);
    saved.seen = number;
    acc::save_checkpoint(folder, saved.content(), {});
  };
  save(0);
  std::thread writer([&] {
    for (int number = 1; number <= kLoads; ++number) {
      begun.wait(number - 1);
      save(number);
    }
  });
  int mixed = 0;
  for (int number = 1; number <= kLoads; ++number) {
    begun = number;
    begun.notify_one();
    Training loaded;
    acc::load_checkpoint(folder, loaded.content(), 0);
    if (loaded.net->weight.ne(static_cast<double>(loaded.seen)).any().item<bool>()) ++mixed;
  }
  writer.join();
  CHECK(mixed == 0);
}

TEST_CASE("checkpoint: weights as a file and in shards are not taken for one another", "[runtime]") {
  const fs::path folder = acc::test::temporary_folder() / "checkpoint";
  Training training;
  acc::save_checkpoint(folder, training.content(), {}, {.in_shards = true});
  acc::replace_file(folder / "model.safetensors.index.json", std::string_view(R"({"weight_map":{}})"));
  CHECK(load_error(folder, training.content())
            .find("has both pytorch_model_fsdp_0 and "
                  "model.safetensors.index.json") != std::string::npos);
}

TEST_CASE("checkpoint: the files are accelerate's", "[runtime]") {
  const fs::path folder = acc::test::temporary_folder() / "checkpoint";
  Training training;
  acc::CheckpointContent content = training.content();
  content.models.push_back(content.models.front());
  content.optimizers.push_back(content.optimizers.front());
  const acc::Stateful json = {.state = [] { return acc::detail::from_json(R"({"last_epoch":1})"); },
                              .load_state = [](const acc::PtValue&) {}};
  content.schedulers = {json, json};
  content.loaders = {json};
  content.scaler = json;
  acc::save_checkpoint(folder, content, {});
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  CHECK(names == std::vector<std::string>{"custom_checkpoint_0.pkl", "dl_state_dict.bin", "model.safetensors",
                                          "model_1.safetensors", "optimizer.bin", "optimizer_1.bin",
                                          "random_states_0.pkl", "scaler.pt", "scheduler.bin",
                                          "scheduler_1.bin"});
}

TEST_CASE("checkpoint: when the disk is full the old one is kept, and nothing of the new one is left",
          "[runtime]") {
  const fs::path parent = acc::test::temporary_folder();
  acc::set_seed(1);
  Training training;
  acc::save_checkpoint(parent / "checkpoint", training.content(), {});
  const at::Tensor saved = training.net->weight.detach().clone();
  training.train(1);
  std::string error;
  {
    const FileSizeLimit full(600);
    error = save_error(parent / "checkpoint", training);
  }
  CHECK(error.ends_with("optimizer.bin: cannot be written: File too large"));
  CHECK(std::distance(fs::directory_iterator(parent), fs::directory_iterator()) == 1);
  Training loaded;
  acc::load_checkpoint(parent / "checkpoint", loaded.content(), 0);
  CHECK(loaded.net->weight.equal(saved));
}

TEST_CASE("checkpoint: a parameter's name that is not UTF-8 is an error before anything is written",
          "[runtime]") {
  const fs::path folder = acc::test::temporary_folder();
  torch::nn::Module net;
  net.register_parameter("gr\xfc\xdf", at::ones({2}));
  const bool safe = GENERATE(true, false);
  CHECK(acc::test::error_of([&] {
          acc::save_checkpoint(folder / "c", {.models = {&net}}, {}, {.safe_serialization = safe});
        }).starts_with("tensor 'gr\\xfc\\xdf': the name is not UTF-8"));
  CHECK(fs::is_empty(folder));
}

TEST_CASE("checkpoint: a missing or incomplete folder is an error of one line", "[runtime]") {
  const fs::path folder = acc::test::temporary_folder() / "checkpoint";
  Training training;
  CHECK(load_error(folder, training.content()) == folder.string() + ": there is no such folder");
  training.train(1);
  acc::save_checkpoint(folder, training.content(), {});
  const std::string name =
      GENERATE("model.safetensors", "optimizer.bin", "random_states_0.pkl", "custom_checkpoint_0.pkl");
  const std::string whole = acc::read_file(folder / name);
  acc::replace_file(folder / name, std::string_view(whole).substr(0, whole.size() / 2));
  Training other;
  const at::Tensor before = other.net->weight.detach().clone();
  const std::string error = load_error(folder, other.content());
  CHECK(error.starts_with((folder / name).string() + ": "));
  CHECK(error.find('\n') == std::string::npos);
  CHECK(other.net->weight.equal(before));
  CHECK(other.optimizer.state().empty());
}

TEST_CASE("checkpoint: a file that is missing is named", "[runtime]") {
  const fs::path folder = acc::test::temporary_folder() / "checkpoint";
  Training training;
  acc::save_checkpoint(folder, training.content(), {});
  fs::remove(folder / "optimizer.bin");
  CHECK(load_error(folder, training.content()) ==
        (folder / "optimizer.bin").string() +
            ": is missing (prepare the same objects as when the checkpoint was saved)");
}

TEST_CASE("checkpoint: another model's weights are refused with all their names", "[runtime]") {
  const fs::path folder = acc::test::temporary_folder() / "checkpoint";
  Training training;
  acc::save_checkpoint(folder, training.content(), {});
  torch::nn::Linear other(4, 2);
  const std::string file = (folder / "model.safetensors").string();
  CHECK(load_error(folder, {.models = {other.get()}}) ==
        file + ": tensor 'weight' is [2, 3], the model's is [2, 4]");
}

TEST_CASE("checkpoint: another number of registered objects is refused", "[runtime]") {
  const fs::path folder = acc::test::temporary_folder() / "checkpoint";
  Training training;
  acc::save_checkpoint(folder, training.content(), {});
  acc::CheckpointContent content = training.content();
  content.registered.clear();
  CHECK(load_error(folder, content) ==
        folder.string() +
            ": has 1 registered objects, but 0 are registered "
            "(register_for_checkpointing the same objects as when it was saved)");
}

TEST_CASE("checkpoint: hooks get the weights and the folder, and may write the weights themselves",
          "[runtime]") {
  const fs::path folder = acc::test::temporary_folder() / "checkpoint";
  Training training;
  const acc::SaveStatePreHook save = [](std::vector<acc::NamedTensors>& weights, const fs::path& into) {
    acc::write_safetensors(into / "own.safetensors", {.tensors = weights.at(0)});
    weights.clear();
  };
  acc::save_checkpoint(folder, training.content(), {}, {.hooks = {save}});
  CHECK_FALSE(fs::exists(folder / "model.safetensors"));
  CHECK(acc::read_safetensors(folder / "own.safetensors").tensors.at("weight").equal(training.net->weight));
  std::size_t seen = 0;
  const acc::LoadStatePreHook load = [&](std::vector<torch::nn::Module*>& models, const fs::path&) {
    seen = models.size();
    models.clear();
  };
  acc::load_checkpoint(folder, training.content(), 0, {load});
  CHECK(seen == 1);
}

TEST_CASE("checkpoint: a process without saved random states keeps its own, and loads the step",
          "[runtime]") {
  const fs::path folder = acc::test::temporary_folder() / "checkpoint";
  Training training;
  acc::save_checkpoint(folder, training.content(), {});
  acc::set_seed(8);
  const at::Tensor state = acc::random_state();
  CHECK(acc::load_checkpoint(folder, training.content(), 3) == 5);
  CHECK(acc::random_state().equal(state));
}

}  // namespace checkpoint_test
