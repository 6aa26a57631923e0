// SPDX-License-Identifier: Apache-2.0
// Trains a GPT to write like a text, byte by byte, on one process or many:
//
//   gpt                                      one process
//   acc launch --num_processes 2 gpt         two, each with half of every step's pieces
//   acc launch --num_processes 2 gpt --fsdp  the same; each keeps half of the parameters and of AdamW's state

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/full.h>
#include <ATen/ops/multinomial.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "acc/accelerator.hpp"
#include "acc/error.hpp"
#include "acc/optim.hpp"
#include "acc/process.hpp"
#include "model.hpp"
#include "text.hpp"

namespace {

namespace fs = std::filesystem;

using Loader = acc::DataLoader<TextPieces>;

struct Options {
  fs::path text = "/usr/share/common-licenses";
  std::string size = "nano";
  int epochs = 10;
  std::size_t batch_size = 32;
  double lr = 3e-3;
  double weight_decay = 0.1;
  double max_norm = 1;
  std::uint64_t seed = 42;
  bool fsdp = false;
  bool activation_checkpointing = false;
  std::int64_t write = 0;
  fs::path save = {};
};

Options parse(int argc, char** argv) {
  Options options;
  CLI::App app("Trains a GPT to write like a text, byte by byte");
  app.option_defaults()->always_capture_default();
  app.add_option("--text", options.text,
                 "A file, or a folder of files; default: the licences that Debian ships");
  app.add_option("--size", options.size, "nano, micro, mini or small: from 0.9 to 86 million parameters");
  app.add_option("--epochs", options.epochs, "Passes through the text")->check(CLI::PositiveNumber);
  app.add_option("--batch-size", options.batch_size, "Pieces of text per process and step")
      ->check(CLI::PositiveNumber);
  app.add_option("--lr", options.lr, "Highest learning rate of AdamW");
  app.add_option("--weight-decay", options.weight_decay, "Of AdamW, for matrices");
  app.add_option("--max-norm", options.max_norm, "Largest norm of a step's gradients");
  app.add_option("--seed", options.seed, "Decides the first weights and the order of the pieces");
  app.add_flag("--fsdp", options.fsdp, "Divide parameters, gradients and AdamW's state among the processes");
  app.add_flag("--activation-checkpointing", options.activation_checkpointing,
               "Compute the blocks again in backward, to save memory");
  app.add_option("--write", options.write, "Bytes that the trained model writes at the end");
  app.add_option("--save", options.save, "Write the trained weights into this folder")->default_str("");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // 2 is what argparse and acc give for a wrong command line.
    std::exit(app.exit(error) == 0 ? 0 : 2);
  }
  return options;
}

// The mean loss of the text to test on.
double evaluate(acc::Accelerator& accelerator, acc::Model<GptImpl>& model, Loader& loader) {
  const at::NoGradGuard no_grad;
  model->eval();
  double sum = 0;
  double total = 0;
  for (auto& [pieces, next] : loader) {
    const torch::Tensor losses =
        at::cross_entropy_loss(model(pieces).flatten(0, 1), next.flatten(), {}, at::Reduction::None);
    const torch::Tensor means = accelerator.gather_for_metrics(losses.view(next.sizes()).mean(1));
    sum += means.sum().item<double>();
    total += static_cast<double>(means.size(0));
  }
  return sum / total;
}

// What the model writes after a line break. All processes must take part in what a model computes.
std::string generate(acc::Model<GptImpl>& model, std::int64_t count, at::Device device) {
  const at::NoGradGuard no_grad;
  model->eval();
  torch::Tensor bytes = at::full({1, 1}, '\n', at::TensorOptions(at::kLong).device(device));
  std::string text;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t length = std::min(bytes.size(1), model->options().context);
    const torch::Tensor scores = model(bytes.slice(1, bytes.size(1) - length));
    const torch::Tensor next = at::multinomial(scores.select(1, length - 1).softmax(-1), 1);
    bytes = at::cat({bytes, next}, 1);
    text += static_cast<char>(next.item<std::int64_t>());
  }
  return text;
}

void run(const Options& options) {
  acc::AcceleratorOptions how;
  if (options.fsdp) how.fsdp = acc::FsdpOptions{.transformer_cls_to_wrap = {"Block"}};
  if (options.activation_checkpointing) how.activation_checkpointing = true;
  acc::Accelerator accelerator(how);
  acc::set_seed(options.seed);
  const GptOptions sizes = gpt_options(options.size);
  const Text text = load_text(options.text, sizes.context);
  Gpt net(sizes);
  auto [model, optimizer, train_loader, test_loader] =
      accelerator.prepare(net, gpt_optimizer(net, options.lr, options.weight_decay),
                          Loader(text.train, {.batch_size = options.batch_size, .shuffle = true}),
                          Loader(text.test, {.batch_size = options.batch_size}));
  const auto steps = static_cast<std::int64_t>(train_loader.size()) * options.epochs;
  acc::Scheduler schedule(optimizer.native(), acc::cosine_with_warmup(steps / 20, steps));

  const auto start = std::chrono::steady_clock::now();
  for (int epoch = 1; epoch <= options.epochs; ++epoch) {
    model->train();
    for (auto& [pieces, next] : train_loader) {
      optimizer.zero_grad();
      accelerator.backward(at::cross_entropy_loss(model(pieces).flatten(0, 1), next.flatten()));
      accelerator.clip_grad_norm_(net->parameters(), options.max_norm);
      optimizer.step();
      schedule.step();
    }
    const double loss = evaluate(accelerator, model, test_loader);
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    if (accelerator.is_main_process())
      std::printf("epoch %d: loss %.3f  %.1f s\n", epoch, loss, time.count());
  }
  if (!options.save.empty()) accelerator.save_model(model, options.save);
  if (options.write > 0) {
    acc::set_seed(options.seed);
    const std::string written = generate(model, options.write, accelerator.device());
    if (accelerator.is_main_process()) std::printf("%s\n", written.c_str());
  }
}

}  // namespace

int main(int argc, char** argv) try {
  acc::record([&] { run(parse(argc, argv)); });
  return 0;
} catch (const acc::Error& error) {
  std::fprintf(stderr, "gpt: %s\n", error.what());
  return acc::exit_code(error.kind());
}
