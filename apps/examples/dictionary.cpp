// SPDX-License-Identifier: Apache-2.0
// The pieces of apps/docs/cpp.md and watching.md, in the order of the pages; each says what it has done.
//
//   dictionary FOLDER        for the files that the pieces write; alone, or under acc launch
#include <torch/nn/cloneable.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "acc/acc.hpp"

namespace {

namespace fs = std::filesystem;

void said(const acc::Accelerator& accelerator, const std::string& line) {
  accelerator.print(line);
}

// begin map style
// Sample i by its index: read on several threads at once if get() is const, from a copy for each if not.
struct Squares {
  std::size_t size() const { return 64; }
  std::pair<at::Tensor, at::Tensor> get(std::size_t index) const {
    const at::Tensor number = at::full({1}, double(index) / double(size()));
    return {number, number.square()};
  }
};
// end map style

// begin iterable
// Samples one after the other: the main process reads them and sends each process its share.
class Lines {
 public:
  explicit Lines(fs::path file) : file_(std::move(file)) {}
  void reset() { stream_ = std::make_shared<std::ifstream>(file_); }
  std::optional<double> next() {
    double number = 0;
    return *stream_ >> number ? std::optional(number) : std::nullopt;
  }

 private:
  fs::path file_;
  std::shared_ptr<std::ifstream> stream_;
};
// end iterable

// begin dictionary
using Dictionary = std::map<std::string, at::Tensor>;

struct Sentences {
  std::size_t size() const { return 32; }
  Dictionary get(std::size_t index) const {
    return {{"input_ids", at::full({8}, std::int64_t(index), at::kLong)},
            {"label", at::scalar_tensor(double(index % 2))}};
  }
};

Dictionary stack(const std::vector<Dictionary>& samples) {
  Dictionary batch;
  for (const auto& [name, first] : samples.front()) {
    std::vector<at::Tensor> column;
    for (const Dictionary& sample : samples) column.push_back(sample.at(name));
    batch[name] = at::stack(column);
  }
  return batch;
}
// end dictionary

// begin struct
struct Output {
  at::Tensor logits;
  at::Tensor hidden;
};

// Lets acc find the tensors: gradients are averaged for all of them, and their precision is converted.
void for_each_tensor(Output& output, const acc::TensorFunction& function) {
  function(output.logits);
  function(output.hidden);
}

struct ClassifierImpl : torch::nn::Cloneable<ClassifierImpl> {
  ClassifierImpl() { reset(); }
  void reset() override {
    embedding = register_module("embedding", torch::nn::Embedding(32, 16));
    head = register_module("head", torch::nn::Linear(16, 1));
  }
  Output forward(const at::Tensor& input_ids) {
    const at::Tensor hidden = embedding(input_ids).mean(1);
    return {.logits = head(hidden).squeeze(1), .hidden = hidden};
  }
  torch::nn::Embedding embedding = nullptr;
  torch::nn::Linear head = nullptr;
};
TORCH_MODULE(Classifier);
// end struct

// begin own state
struct BestLoss {
  double value = 1e9;
  std::string state() const { return nlohmann::json(value).dump(); }
  void load_state(std::string_view text) { value = std::stod(std::string(text)); }
};
// end own state

using Block = torch::nn::Linear;

struct DeepImpl : torch::nn::Module {
  DeepImpl() {
    for (int i = 0; i < 3; ++i) blocks.push_back(register_module("block" + std::to_string(i), Block(4, 4)));
  }
  // begin activation checkpointing
  at::Tensor forward(at::Tensor x) {
    for (Block& block : blocks) x = acc::checkpoint(block, x);
    return x;
  }
  // end activation checkpointing
  std::vector<Block> blocks = {};
};

void data_sets(const fs::path& folder) {
  acc::Accelerator accelerator;
  accelerator.on_main_process([&] { std::ofstream(folder / "numbers") << "1 2 3 4 5 6 7 8"; });
  accelerator.wait_for_everyone();
  const fs::path numbers = folder / "numbers";
  // begin loaders
  auto [squares, lines] =
      accelerator.prepare(acc::DataLoader(Squares(), {.batch_size = 8, .shuffle = true, .num_workers = 2}),
                          acc::DataLoader(Lines(numbers), {.batch_size = 2}));
  at::Tensor sum = at::zeros({1}, accelerator.device());
  for (auto& [number, square] : squares) sum += number.sum();
  at::Tensor read = at::zeros({1}, accelerator.device());
  for (auto& batch : lines) read += accelerator.gather_for_metrics(batch).sum();
  // end loaders
  said(accelerator, "sums: " + std::to_string(int(accelerator.reduce(sum).item<double>())) + " " +
                        std::to_string(int(read.item<double>())));
}

void dictionaries() {
  acc::Accelerator accelerator;
  acc::set_seed(0);
  Classifier net;
  torch::optim::AdamW adamw(net->parameters(), 0.05);
  // begin train dictionaries
  auto [model, optimizer, batches] = accelerator.prepare(
      net, std::move(adamw),
      acc::DataLoader(acc::collated(Sentences(), stack), {.batch_size = 8, .shuffle = true}));
  for (auto& batch : batches) {
    optimizer.zero_grad();
    const Output output = model(batch.at("input_ids"));
    accelerator.backward(at::mse_loss(output.logits, batch.at("label").to(at::kFloat)));
    optimizer.step();
  }
  // end train dictionaries
  said(accelerator, "steps with dictionaries: " + std::to_string(batches.size()));
}

void fine_tune(const fs::path& folder) {
  acc::Accelerator accelerator;
  const fs::path file = folder / "base.safetensors";
  {
    const auto base = accelerator.prepare(Classifier());
    accelerator.save_model(base, file);
    accelerator.wait_for_everyone();
  }
  // begin fine-tune
  Classifier net;
  acc::NamedTensors weights = acc::read_weights(file);  // of acc or of Python, a file or a folder
  weights.erase("head.weight");                         // the new head begins with its own values
  weights.erase("head.bias");
  const acc::IncompatibleKeys keys = acc::load_state(*net, weights, file, false);
  for (at::Tensor& parameter : net->embedding->parameters())
    parameter.requires_grad_(false);  // before prepare
  torch::optim::SGD sgd(net->head->parameters(), 0.1);
  auto [model, optimizer] = accelerator.prepare(net, std::move(sgd));
  // end fine-tune
  said(accelerator, "new parameters: " + std::to_string(keys.missing_keys.size()));
}

void checkpoints(const fs::path& folder) {
  acc::Accelerator accelerator;
  torch::nn::Linear net(1, 1);
  torch::optim::SGD sgd(net->parameters(), 0.1);
  auto [model, optimizer, batches] =
      accelerator.prepare(net, std::move(sgd), acc::DataLoader(Squares(), {.batch_size = 8}));
  // begin checkpoint
  BestLoss best;
  accelerator.register_for_checkpointing(best);
  accelerator.save_state(folder / "checkpoint");  // whole or absent, whenever a process is killed
  best.value = 0;
  accelerator.load_state(folder / "checkpoint");
  // end checkpoint
  // begin background
  accelerator.save_state(folder / "beside", {.background = true});
  for (auto& [x, y] : batches) {  // the training goes on while it is written
    accelerator.backward((model(x) - y).square().mean());
    optimizer.step();
    optimizer.zero_grad();
  }
  accelerator.wait_for_save();  // now it is in its place; its error would be thrown here
  // end background
  // begin shards
  const int rank = accelerator.process_index();
  const int size = accelerator.num_processes();
  // Four rows, cut anywhere: here the first process has what does not divide evenly.
  const std::int64_t begin = rank == 0 ? 0 : 12 - 12 / size * (size - rank);
  const std::int64_t end = 12 - 12 / size * (size - rank - 1);
  const at::Tensor part = at::arange(begin, end, at::kFloat);
  const std::vector<acc::TensorRange> ranges = {
      {.path = {"model", "weight"}, .shape = {4, 3}, .begin = begin, .elements = part}};
  acc::save_sharded(folder / "shards", {.ranges = ranges}, accelerator.saving_processes());
  part.zero_();
  acc::load_sharded(folder / "shards", ranges);  // also what more or fewer processes have saved
  // end shards
  accelerator.save_model(model, folder / "weights");
  accelerator.wait_for_everyone();
  // begin large
  auto large = [] {
    const acc::MetaDevice meta;  // what is made here has shapes, but no memory
    return torch::nn::Linear(1, 1);
  }();
  acc::materialize(*large, folder / "weights");  // a file, or a folder with one or with shards
  // end large
  said(accelerator,
       "a shard: " + std::to_string(part.eq(at::arange(begin, end, at::kFloat)).all().item<bool>()) +
           ", a large model: " + std::to_string(large->weight.equal(net->weight)));
  said(accelerator, "best loss: " + std::to_string(int(best.value)));
}

void two_models() {
  acc::Accelerator accelerator;
  acc::set_seed(0);
  torch::nn::Linear generator(4, 1);
  torch::nn::Linear critic(1, 1);
  torch::optim::SGD for_generator(generator->parameters(), 0.01);
  torch::optim::SGD for_critic(critic->parameters(), 0.01);
  // begin two models
  auto [g, d, optimizer_g, optimizer_d, batches] =
      accelerator.prepare(generator, critic, std::move(for_generator), std::move(for_critic),
                          acc::DataLoader(Squares(), {.batch_size = 8}));
  for (auto& [real, unused] : batches) {
    const at::Tensor fake = g(at::randn({real.size(0), 4}, real.device()));
    optimizer_d.zero_grad();
    accelerator.backward(d(fake.detach()).mean() - d(real).mean());
    optimizer_d.step();

    optimizer_g.zero_grad();
    accelerator.backward(-d(fake).mean());  // also reaches the critic: its gradients are cleared above
    optimizer_g.step();
  }
  accelerator.check_parameters();
  // end two models
  said(accelerator, "two models agree");
}

void several_backwards() {
  acc::Accelerator accelerator;
  auto model = accelerator.prepare(torch::nn::Linear(4, 2));
  const at::Tensor x = at::ones({1, 4}, accelerator.device());
  // begin several backwards
  at::Tensor out;
  {
    const acc::NoSync alone = model.no_sync();
    out = model(x);
    accelerator.backward(out.abs().sum(), {.retain_graph = true});
  }
  accelerator.trigger_sync_in_backward(model);  // averages what both have given
  accelerator.backward(out.square().sum());
  // end several backwards
  said(accelerator, "backward twice");
}

void precision() {
  // begin precision
  acc::Accelerator accelerator({.mixed_precision = acc::MixedPrecision::bf16,
                                .process_group = {.cuda_backend = acc::CudaBackend::gloo}});
  auto model = accelerator.prepare(torch::nn::Linear(4, 2));
  const at::Tensor output =
      model(at::ones({1, 4}, accelerator.device()));  // computes in bf16, returns float32
  at::Tensor product;
  {
    const auto autocast = accelerator.autocast();  // the same for code outside of a prepared model
    product = at::mm(output, output.t());
  }
  // end precision
  said(accelerator, product.scalar_type() == at::kBFloat16 && output.scalar_type() == at::kFloat
                        ? "in bf16"
                        : "not in bf16");
}

void recomputation() {
  acc::Accelerator accelerator;
  auto model = accelerator.prepare(std::make_shared<DeepImpl>());
  accelerator.backward(model(at::ones({2, 4}, accelerator.device())).sum());
  said(accelerator, model->parameters().front().grad().defined() ? "computed again" : "no gradients");
}

void collectives() {
  acc::Accelerator accelerator;
  const std::string name = "rank " + std::to_string(accelerator.process_index());
  // begin gather
  const at::Tensor losses =
      accelerator.gather(at::ones({1}, accelerator.device()));  // of all ranks, on all ranks
  const std::vector<std::string> names = accelerator.gather_object(std::vector{name});
  accelerator.on_main_process(
      [&] { std::printf("%zu ranks, %zu losses\n", names.size(), std::size_t(losses.size(0))); });
  // end gather
  accelerator.wait_for_everyone();
  // begin silence
  accelerator.print("once for each machine");
  acc::get_logger(accelerator, "train", acc::LogLevel::info).info("once in all");
  // Whatever else the program prints.
  if (!accelerator.is_main_process() && !std::freopen("/dev/null", "w", stdout)) std::perror("stdout");
  // end silence
  std::printf("one rank prints\n");
}

void own_loop() {
  // begin progress
  torch::nn::Linear net(1, 1);
  torch::optim::SGD sgd(net->parameters(), 0.1);
  for (int step = 0; step < 4; ++step) {
    at::Tensor numbers;
    {
      const acc::ProgressSection section(acc::Section::data);
      numbers = at::rand({8, 1});
    }
    const at::Tensor loss = (net(numbers) - 2 * numbers).square().mean();
    loss.backward();
    sgd.step();
    sgd.zero_grad();
    acc::report_step({.samples = 8, .loss = loss.item<double>()});
  }
  // end progress
}

}  // namespace

int main(int argc, char** argv) try {
  const fs::path folder = argc > 1 ? argv[1] : "dictionary";
  fs::create_directories(folder);
  data_sets(folder);
  dictionaries();
  fine_tune(folder);
  checkpoints(folder);
  two_models();
  several_backwards();
  precision();
  recomputation();
  collectives();
  own_loop();
  return 0;
} catch (const acc::Error& error) {
  std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
  return acc::exit_code(error.kind());
}
