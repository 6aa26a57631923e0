// SPDX-License-Identifier: Apache-2.0
// Fine-tunes a ResNet-D of timm's on a folder of images whose names say what they show, as accelerate's
// complete_cv_example.py: first the classifier alone, then all layers.
//
//   pets --data-dir images --weights resnet50d.a1_in1k
//   acc launch --num_processes 2 pets --data-dir images --weights resnet50d.a1_in1k
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <torch/optim/adam.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "acc/accelerator.hpp"
#include "acc/base/worker_env.hpp"
#include "acc/checkpoint.hpp"
#include "acc/data.hpp"
#include "acc/error.hpp"
#include "acc/optim.hpp"
#include "acc/process.hpp"
#include "pretrained.hpp"
#include "resnet.hpp"
#include "split.hpp"

namespace {

namespace fs = std::filesystem;

struct Options {
  fs::path data_dir = {};
  std::string pattern = "^(.*)_\\d+[.](jpg|jpeg|png)$";
  fs::path weights = {};
  std::string architecture = {};
  std::optional<std::array<float, 3>> mean = {};
  std::optional<std::array<float, 3>> std = {};
  std::int64_t image_size = 224;
  int epochs = 5;
  int free_epochs = 3;
  std::size_t batch_size = 64;
  double lr = 3e-2;
  double free_lr = 1e-3;
  std::size_t workers = 4;
  std::string mixed_precision = {};
  std::uint32_t seed = 42;
  fs::path save = {};
};

Options parse(int argc, char** argv) {
  Options options;
  CLI::App app("Fine-tunes a ResNet-D on a folder of images");
  app.option_defaults()->always_capture_default();
  const auto optional = [&app](const char* name, auto& value, const char* help) {
    return app.add_option(name, value, help)->default_str("");
  };
  optional("--data-dir", options.data_dir, "Folder of images (scripts/data pets prints one)")->required();
  app.add_option("--pattern", options.pattern,
                 "Regular expression whose first group in a file's name is its label");
  optional("--weights", options.weights,
           "timm's weights, a file or folder; without them all layers are new and none is frozen");
  optional("--model", options.architecture,
           "resnet26d or resnet50d; default: config.json beside the weights");
  optional("--mean", options.mean, "Mean of the images' channels; default: config.json, else ImageNet's");
  optional("--std", options.std, "Their standard deviation");
  app.add_option("--image-size", options.image_size, "Pixels of a side of the network's input");
  app.add_option("--epochs", options.epochs, "Passes that train the classifier alone");
  app.add_option("--free-epochs", options.free_epochs, "Passes after them that train all layers");
  app.add_option("--batch-size", options.batch_size, "Images per process and step");
  app.add_option("--lr", options.lr, "Highest learning rate of the classifier alone");
  app.add_option("--free-lr", options.free_lr, "Highest learning rate of all layers");
  app.add_option("--workers", options.workers, "Threads that read images");
  optional("--mixed-precision", options.mixed_precision,
           "no, fp16 or bf16; default: the launcher's, else fp16 on GPUs and bf16 on CPUs");
  app.add_option("--seed", options.seed, "Decides the split, the new weights and the order of the images");
  optional("--save", options.save, "Write the trained weights to this safetensors file");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error) == 0 ? 0 : 2);
  }
  return options;
}

acc::MixedPrecision choose_precision(const Options& options) {
  if (!options.mixed_precision.empty())
    return acc::parse_mixed_precision(options.mixed_precision, "--mixed-precision");
  const std::string variable = "ACCELERATE_MIXED_PRECISION";
  const auto launchers =
      acc::parse_mixed_precision(acc::Environment::of_process().get(variable, "no"), variable);
  if (launchers != acc::MixedPrecision::no) return launchers;
  return acc::PartialState().device().is_cuda() ? acc::MixedPrecision::fp16 : acc::MixedPrecision::bf16;
}

// The images of both halves of the split, and how the network wants them.
struct Pets {
  acc::ImageDataset train;
  acc::ImageDataset eval;
};

Pets read_pets(const Options& options, const acc::Normalize& normalize) {
  const Split files = split(acc::labelled_images(options.data_dir, options.pattern), options.seed);
  // A few of the Oxford pets are GIF images under another name.
  const auto images = [&](const acc::ImageFiles& part, acc::ImageTransform transform) {
    return acc::ImageDataset(
        part,
        {.transforms = {std::move(transform)}, .normalize = normalize, .broken = acc::BrokenImages::skip});
  };
  return {.train = images(files.train, acc::random_resized_crop(options.image_size, {.scale = {0.5, 1}})),
          .eval = images(files.eval, acc::resize(options.image_size, options.image_size))};
}

double evaluate(acc::Accelerator& accelerator, acc::Model<ResNetDImpl>& model,
                acc::DataLoader<acc::ImageDataset>& loader) {
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

struct Phase {
  int first_epoch = 0;
  int epochs = 0;
  double max_lr = 0;
};

// One cycle of the learning rate for the parameters that require gradients.
void train(acc::Accelerator& accelerator, ResNetD net, const Pets& pets, const Options& options,
           const Phase& phase) {
  if (phase.epochs == 0) return;
  std::vector<at::Tensor> parameters;
  for (const at::Tensor& parameter : net->parameters()) {
    if (parameter.requires_grad()) parameters.push_back(parameter);
  }
  acc::DataLoader batches(
      pets.train, {.batch_size = options.batch_size, .shuffle = true, .num_workers = options.workers});
  const auto steps = static_cast<std::int64_t>(batches.size());
  const auto adam = std::make_shared<torch::optim::Adam>(parameters, phase.max_lr / 25);
  const auto one_cycle = std::make_shared<acc::Scheduler>(
      *adam, acc::one_cycle_lr({.max_lr = {phase.max_lr}, .total_steps = phase.epochs * steps}));
  auto [model, optimizer, scheduler, train_loader, eval_loader] = accelerator.prepare(
      net, adam, one_cycle, std::move(batches),
      acc::DataLoader(pets.eval, {.batch_size = options.batch_size, .num_workers = options.workers}));

  for (int epoch = phase.first_epoch; epoch < phase.first_epoch + phase.epochs; ++epoch) {
    model->train();
    train_loader.plan().set_epoch(static_cast<std::uint64_t>(epoch));
    for (auto& [images, labels] : train_loader) {
      const at::Tensor loss = at::cross_entropy_loss(model(images), labels);
      accelerator.backward(loss);
      optimizer.step();
      scheduler.step();
      optimizer.zero_grad();
    }
    const double accuracy = evaluate(accelerator, model, eval_loader);
    if (!accelerator.is_main_process()) continue;
    std::printf("epoch %d: %.2f\n", epoch, 100 * accuracy);
    std::fflush(stdout);
  }
  accelerator.free_memory();
}

void run(const Options& options) {
  acc::Accelerator accelerator({.mixed_precision = choose_precision(options)});
  acc::set_seed(options.seed);
  const bool pretrained = !options.weights.empty();
  PretrainedConfig config = pretrained ? read_pretrained_config(options.weights) : PretrainedConfig{};
  if (!options.architecture.empty()) config.architecture = options.architecture;
  config.normalize.mean = options.mean.value_or(config.normalize.mean);
  config.normalize.std = options.std.value_or(config.normalize.std);

  const Pets pets = read_pets(options, config.normalize);
  ResNetD net(config.architecture, static_cast<std::int64_t>(pets.train.classes().size()));
  const int frozen_epochs = pretrained ? options.epochs : 0;
  if (pretrained) load_pretrained(*net, options.weights);

  net->train_encoder(false);
  train(accelerator, net, pets, options, {.epochs = frozen_epochs, .max_lr = options.lr});
  net->train_encoder(true);
  train(accelerator, net, pets, options,
        {.first_epoch = frozen_epochs, .epochs = options.free_epochs, .max_lr = options.free_lr});
  for (const std::string& reason : pets.train.skipped())
    std::fprintf(stderr, "pets: skipped %s\n", reason.c_str());
  if (!options.save.empty()) accelerator.on_main_process([&] { acc::save_model_file(*net, options.save); });
}

}  // namespace

int main(int argc, char** argv) try {
  acc::record([&] { run(parse(argc, argv)); });
  return 0;
} catch (const acc::Error& error) {
  std::fprintf(stderr, "pets: %s\n", error.what());
  return acc::exit_code(error.kind());
}
