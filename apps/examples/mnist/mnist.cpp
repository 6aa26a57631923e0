// SPDX-License-Identifier: Apache-2.0
// Trains a small network on handwritten digits, on one process or many:
//
//   mnist                                   one process
//   acc launch --num_processes 2 mnist      two, each with half of every step's images

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/nll_loss.h>
#include <torch/optim/adamw.h>
#include <torch/optim/schedulers/step_lr.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>

#include "acc/accelerator.hpp"
#include "acc/error.hpp"
#include "acc/process.hpp"
#include "common/images.hpp"
#include "common/net.hpp"
#include "progress.hpp"

namespace {

namespace fs = std::filesystem;

using Loader = acc::DataLoader<Images>;

struct Options {
  fs::path data_dir = {};
  std::size_t epochs = 3;
  std::size_t batch_size = 32;
  double lr = 2e-3;
  std::string mixed_precision = {};
  std::uint64_t seed = 42;
  fs::path save = {};
};

Options parse(int argc, char** argv) {
  Options options;
  CLI::App app("Trains a small network on handwritten digits");
  app.option_defaults()->always_capture_default();
  app.add_option("--data-dir", options.data_dir,
                 "Folder with the four MNIST files, .gz or not, or with CIFAR-10's; default: 5,000 digits")
      ->capture_default_str();
  app.add_option("--epochs", options.epochs, "Passes through the images");
  app.add_option("--batch-size", options.batch_size, "Images per process and step");
  app.add_option("--lr", options.lr, "Learning rate of AdamW, 0.7 of it after each epoch");
  app.add_option("--mixed-precision", options.mixed_precision,
                 "no or bf16; default: what the launcher was told");
  app.add_option("--seed", options.seed, "Decides the first weights and the order of the images");
  app.add_option("--save", options.save, "Write the trained weights to this safetensors file");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // 2 is what argparse and acc give for a wrong command line.
    std::exit(app.exit(error) == 0 ? 0 : 2);
  }
  return options;
}

void train(acc::Accelerator& accelerator, acc::Model<NetImpl>& model, acc::Optimizer& optimizer,
           Loader& loader, Progress& progress) {
  model->train();
  for (auto& [images, labels] : loader) {
    optimizer.zero_grad();
    const at::Tensor loss = at::nll_loss(model(images), labels);
    accelerator.backward(loss);
    optimizer.step();
    progress.step(loss.item<double>());
  }
}

double evaluate(acc::Accelerator& accelerator, acc::Model<NetImpl>& model, Loader& loader) {
  const at::NoGradGuard no_grad;
  model->eval();
  double right = 0;
  double total = 0;
  for (auto& [images, labels] : loader) {
    const auto [guesses, truth] = accelerator.gather_for_metrics(model(images).argmax(1), labels);
    right += guesses.eq(truth).sum().item<double>();
    total += static_cast<double>(truth.size(0));
  }
  return right / total;
}

void run(const Options& options) {
  acc::AcceleratorOptions accelerator_options;
  if (!options.mixed_precision.empty()) {
    accelerator_options.mixed_precision =
        acc::parse_mixed_precision(options.mixed_precision, "--mixed-precision");
  }
  acc::Accelerator accelerator(accelerator_options);
  acc::set_seed(options.seed);

  const Data data = load_data(options.data_dir);
  Net net(data.train.channels(), data.train.side());
  torch::optim::AdamW adamw(net->parameters(), torch::optim::AdamWOptions(options.lr));
  auto [model, optimizer, train_loader, test_loader] = accelerator.prepare(
      net, std::move(adamw), Loader(data.train, {.batch_size = options.batch_size, .shuffle = true}),
      Loader(data.test, {.batch_size = 250}));

  torch::optim::StepLR schedule(optimizer.native(), 1, 0.7);
  double accuracy = 0;
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t epoch = 1; epoch <= options.epochs; ++epoch) {
    Progress progress(accelerator.is_main_process(), "epoch " + std::to_string(epoch), train_loader.size());
    train(accelerator, model, optimizer, train_loader, progress);
    schedule.step();
    accuracy = evaluate(accelerator, model, test_loader);
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    char line[64];
    std::snprintf(line, sizeof line, "test accuracy %.3f  %.1f s", accuracy, time.count());
    progress.finish(line);
  }
  if (!options.save.empty()) accelerator.save_model(model, options.save);
  if (!accelerator.is_main_process()) return;
  std::printf("accuracy: %.3f\n", accuracy);
}

}  // namespace

int main(int argc, char** argv) try {
  acc::record([&] { run(parse(argc, argv)); });
  return 0;
} catch (const acc::Error& error) {
  std::fprintf(stderr, "mnist: %s\n", error.what());
  return acc::exit_code(error.kind());
}
