// SPDX-License-Identifier: Apache-2.0
// Written as LibTorch users write programs: with torch/torch.h and LibTorch's modules, optimizers and data
// sets.
#include "acc/runtime/accelerator/accelerator.hpp"

#include <stdlib.h>
#include <torch/torch.h>

#include <cmath>
#include <string>

#include "acc/base/error.hpp"
#include "acc/base/progress_page.hpp"
#include "acc/runtime/checkpoint/pt_file.hpp"
#include "acc/runtime/data/tensor_batches.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/in_child.hpp"
#include "support/linear_net.hpp"
#include "support/torch_tensor.hpp"
#include "support/working_folder.hpp"

namespace accelerator_test {

using acc::test::batches;
using acc::test::Net;
using acc::test::NetImpl;
using acc::test::rate_of;

TEST_CASE("accelerator: without a launcher it is the only process", "[runtime]") {
  acc::Accelerator accelerator;
  CHECK(accelerator.num_processes() == 1);
  CHECK(accelerator.is_main_process());
  CHECK(accelerator.is_last_process());
  CHECK_FALSE(accelerator.distributed());
  CHECK(accelerator.gather(torch::tensor(3)).equal(torch::tensor({3})));
  accelerator.wait_for_everyone();
}

TEST_CASE("accelerator: its progress has the loss, in every form in which it has a number", "[runtime]") {
  const auto file = acc::test::temporary_folder() / "page";
  const int code = acc::test::in_child([&] {
    ::setenv("ACC_PROGRESS", file.c_str(), 1);
    acc::Accelerator accelerator;
    const auto shown = [&](const torch::Tensor& loss) {
      accelerator.backward(loss);
      return acc::ProgressPage::read(file)->loss;
    };
    const torch::Tensor weight = torch::ones({}, torch::requires_grad());
    const torch::Tensor negated = torch::imag(torch::complex(weight, 3 * weight).conj());
    const bool right = shown(2 * weight) == 2 && negated.is_neg() && shown(negated) == -3 &&
                       shown((5 * weight).to(torch::kBFloat16)) == 5 &&
                       shown((7 * weight).to(torch::kDouble)) == 7;
    return right ? 0 : 1;
  });
  CHECK(code == 0);
}

TEST_CASE("accelerator: activation checkpointing, by the option or FSDP's variable, enables the module's own",
          "[runtime]") {
  struct Enabled : NetImpl {
    void gradient_checkpointing_enable() { enabled = true; }
    bool enabled = false;
  };
  const auto is_enabled = [](const acc::AcceleratorOptions& options) {
    return acc::Accelerator(options).prepare(std::make_shared<Enabled>())->enabled;
  };
  CHECK_FALSE(is_enabled({}));
  CHECK(is_enabled({.activation_checkpointing = true}));
  const int code = acc::test::in_child([&] {
    ::setenv("ACCELERATE_USE_FSDP", "true", 1);
    ::setenv("FSDP_ACTIVATION_CHECKPOINTING", "true", 1);
    return is_enabled({}) && !is_enabled({.activation_checkpointing = false}) ? 0 : 1;
  });
  CHECK(code == 0);
}

TEST_CASE("accelerator: prepare returns several objects in order, and a single one alone", "[runtime]") {
  acc::Accelerator accelerator;
  Net net;
  torch::optim::SGD sgd(net->parameters(), 0.1);
  auto [optimizer, model, loader] = accelerator.prepare(
      std::move(sgd), net, acc::DataLoader(acc::TensorDataset(torch::ones({4, 2})), {.batch_size = 2}));
  CHECK(accelerator.unwrap_model(model) == net.ptr());
  CHECK(optimizer.native().param_groups().size() == 1);
  CHECK(loader.size() == 2);
  CHECK(accelerator.prepare(std::make_unique<torch::optim::SGD>(net->parameters(), 0.1))
            .native()
            .state()
            .empty());
  const acc::Model<NetImpl> same = accelerator.prepare(std::make_shared<NetImpl>());
  CHECK(same->fc->weight.requires_grad());
}

TEST_CASE("accelerator: a LibTorch data set trains a LibTorch module", "[runtime]") {
  acc::set_seed(0);
  acc::Accelerator accelerator;
  const torch::Tensor x = torch::randn({32, 2});
  auto dataset = torch::data::datasets::TensorDataset(x).map(
      torch::data::transforms::Stack<torch::data::TensorExample>());
  Net net;
  auto [model, optimizer, loader] = accelerator.prepare(
      net, torch::optim::SGD(net->parameters(), 0.1), acc::DataLoader(std::move(dataset), {.batch_size = 8}));
  std::vector<double> losses;
  for (int epoch = 0; epoch < 5; ++epoch) {
    for (auto& batch : loader) {
      optimizer.zero_grad();
      const torch::Tensor loss = (model(batch.data) - 1).square().mean();
      accelerator.backward(loss);
      optimizer.step();
      losses.push_back(loss.item<double>());
    }
  }
  CHECK(losses.back() < losses.front() / 2);
}

TEST_CASE("accelerator: schedulers follow an optimizer that is moved, in any argument order", "[runtime]") {
  acc::Accelerator accelerator;
  Net net;
  torch::optim::SGD sgd(net->parameters(), 1.0);
  acc::Scheduler schedule(sgd, acc::step_lr(1, 0.5));
  auto [scheduler, model, optimizer] = accelerator.prepare(std::move(schedule), net, std::move(sgd));
  scheduler.step();
  CHECK(rate_of(optimizer.native()) == 0.5);
  // A scheduler of LibTorch, whose optimizer is not moved.
  auto adam = std::make_shared<torch::optim::Adam>(net->parameters(), 1.0);
  auto [second, step_lr] = accelerator.prepare(adam, torch::optim::StepLR(*adam, 1, 0.1));
  // LibTorch's schedulers count their first step as 0, which sets the first rate.
  step_lr.step();
  CHECK(rate_of(second.native()) == 1.0);
  step_lr.step();
  CHECK(rate_of(second.native()) == 0.1);
}

TEST_CASE("accelerator: gradients accumulate to the third batch and to the last, each a third of its loss",
          "[runtime]") {
  acc::Accelerator accelerator({.gradient_accumulation_steps = 3});
  Net net;
  auto [model, optimizer, loader] =
      accelerator.prepare(net, torch::optim::SGD(net->parameters(), 0.0), batches(5, 1));
  std::string steps;
  std::vector<double> gradients;
  for (auto& [x] : loader) {
    const auto batch = accelerator.accumulate(model);
    accelerator.backward(model(x).sum());
    optimizer.step();
    steps += accelerator.sync_gradients() ? 'S' : '.';
    gradients.push_back(net->fc->bias.grad().item<double>());
    optimizer.zero_grad();
  }
  CHECK(steps == "..S.S");
  CHECK(std::abs(gradients.at(2) - 1) < 1e-6);
  CHECK(std::abs(gradients.at(4) - 2.0 / 3) < 1e-6);
  CHECK_FALSE(net->fc->bias.grad().defined());
}

TEST_CASE("accelerator: two that exist at the same time must have the same precision", "[runtime]") {
  {
    const acc::Accelerator first({.mixed_precision = acc::MixedPrecision::bf16});
    const acc::Accelerator second({.mixed_precision = acc::MixedPrecision::bf16});
    CHECK_THROWS_WITH(acc::Accelerator({.mixed_precision = acc::MixedPrecision::no}),
                      "mixed_precision: another Accelerator of this program uses bf16, this one no (destroy "
                      "the other one first, or use the same precision for both)");
  }
  CHECK(acc::Accelerator().mixed_precision() == acc::MixedPrecision::no);
}

TEST_CASE("accelerator: in fp16 it trains with a scaled loss, and clips gradients that are not",
          "[runtime]") {
  acc::set_seed(0);
  acc::Accelerator accelerator({.mixed_precision = acc::MixedPrecision::fp16,
                                .gradient_accumulation_steps = 2,
                                .grad_scaler = {.init_scale = 1024}});
  REQUIRE(accelerator.scaler() != nullptr);
  Net net;
  auto [model, optimizer] = accelerator.prepare(net, torch::optim::SGD(net->parameters(), 0.1));
  const torch::Tensor x = torch::ones({1, 2});
  std::vector<double> losses;
  for (int step = 0; step < 20; ++step) {
    const auto batch = accelerator.accumulate(model);
    const torch::Tensor loss = (model(x) - 3).square().mean();
    losses.push_back(loss.item<double>());
    accelerator.backward(loss);
    if (step == 0) CHECK_THROWS_AS(accelerator.clip_grad_norm_(net->parameters(), 1), acc::Error);
    if (accelerator.sync_gradients()) {
      // The gradient of each weight and of the bias is twice the error.
      const double norm = accelerator.clip_grad_norm_(net->parameters(), 1e9).item<double>();
      CHECK(std::abs(norm / (2 * std::sqrt(3 * losses.back())) - 1) < 0.01);
      accelerator.clip_grad_value_(net->parameters(), 1e9);
    }
    optimizer.step();
    optimizer.zero_grad();
  }
  CHECK(losses.back() < 1e-3 * losses.front());
  CHECK_FALSE(accelerator.optimizer_step_was_skipped());
  CHECK(accelerator.scaler()->get_scale() == 1024);
  CHECK(accelerator.scaler()->state().growth_tracker == 10);
}

TEST_CASE("accelerator: in fp16 the losses of a GAN train as in float32, whichever of its optimizers clips",
          "[runtime]") {
  const bool clip_generator = GENERATE(false, true);
  const bool clip_discriminator = GENERATE(false, true);
  const bool detach = GENERATE(false, true);
  const auto train = [&](acc::MixedPrecision precision) {
    // Small enough that no step is skipped.
    acc::Accelerator accelerator({.mixed_precision = precision, .grad_scaler = {.init_scale = 256}});
    torch::nn::Linear generator(3, 4);
    torch::nn::Linear discriminator(4, 1);
    {
      const torch::NoGradGuard no_grad;
      for (const torch::Tensor& one : generator->parameters()) one.fill_(0.1);
      for (const torch::Tensor& one : discriminator->parameters()) one.fill_(0.2);
    }
    auto [g, d, of_g, of_d] =
        accelerator.prepare(generator, discriminator, torch::optim::SGD(generator->parameters(), 0.1),
                            torch::optim::SGD(discriminator->parameters(), 0.1));
    const torch::Tensor noise = torch::ones({2, 3});
    const torch::Tensor real = torch::ones({2, 4});
    for (int step = 0; step < 3; ++step) {
      const torch::Tensor fake = g(noise);
      of_d.zero_grad();
      accelerator.backward(d(detach ? fake.detach() : fake).mean() - d(real).mean());
      if (clip_discriminator) accelerator.clip_grad_norm_(discriminator->parameters(), 1.0);
      of_d.step();
      of_g.zero_grad();
      accelerator.backward(-d(g(noise)).mean());
      if (clip_generator) accelerator.clip_grad_norm_(generator->parameters(), 1.0);
      of_g.step();
    }
    return std::pair(generator->weight.sum().item<double>(), discriminator->weight.sum().item<double>());
  };
  const auto [g, d] = train(acc::MixedPrecision::fp16);
  const auto [expected_g, expected_d] = train(acc::MixedPrecision::no);
  CHECK(g == Approx(expected_g).epsilon(2e-3));
  CHECK(d == Approx(expected_d).epsilon(2e-3));
}

TEST_CASE("accelerator: in fp16 clipping refuses gradients that no prepared optimizer unscales",
          "[runtime]") {
  acc::Accelerator accelerator({.mixed_precision = acc::MixedPrecision::fp16});
  Net net;
  torch::optim::SGD unprepared(net->parameters(), 0.1);
  auto model = accelerator.prepare(net);
  accelerator.backward(model(torch::ones({1, 2})).mean());
  const std::string refusal =
      "clipping in fp16: some of the parameters do not belong to a prepared optimizer, so their gradients "
      "are still scaled (prepare the optimizer, and clip only its parameters; freeze those that it does not "
      "step)";
  CHECK_THROWS_WITH(accelerator.clip_grad_norm_(net->parameters(), 1), refusal);
  CHECK_THROWS_WITH(accelerator.clip_grad_value_(net->parameters(), 1), refusal);
}

TEST_CASE("accelerator: options are returned as given, with accelerate's defaults", "[runtime]") {
  acc::Accelerator plain;
  CHECK(plain.gradient_accumulation_steps() == 1);
  CHECK(plain.even_batches());
  CHECK_FALSE(plain.split_batches());
  CHECK_FALSE(plain.dispatch_batches().has_value());
  CHECK(plain.device_placement());
  CHECK(plain.sync_gradients());
  acc::Accelerator accelerator({.gradient_accumulation_steps = 4,
                                .split_batches = true,
                                .dispatch_batches = false,
                                .project_dir = "runs",
                                .project = {.total_limit = 2, .iteration = 3}});
  CHECK(accelerator.split_batches());
  CHECK(accelerator.dispatch_batches() == false);
  CHECK(accelerator.project_dir() == "runs");
  CHECK(accelerator.logging_dir() == "runs");
  CHECK(accelerator.save_iteration() == 3);
  accelerator.set_gradient_accumulation_steps(2);
  accelerator.set_sync_gradients(false);
  accelerator.set_even_batches(false);
  CHECK(accelerator.gradient_accumulation_steps() == 2);
  CHECK_FALSE(accelerator.sync_gradients());
  CHECK_FALSE(accelerator.even_batches());
  CHECK_THROWS_AS(acc::Accelerator({.gradient_accumulation_steps = 0}), acc::Error);
  CHECK_THROWS_WITH(acc::Accelerator({.project = {.total_limit = 0}}),
                    "total_limit: must be at least 1, not 0 (leave it out to keep all checkpoints)");
}

TEST_CASE("accelerator: relative paths are relative to the working folder", "[runtime]") {
  const std::filesystem::path folder = acc::test::temporary_folder();
  const acc::test::WorkingFolder inside(folder);
  const std::string name = GENERATE("x", "./x", "a/b/x", "name with spaces", "link", "dangling");
  INFO(name);
  std::filesystem::create_directory("real");
  std::filesystem::create_directory_symlink("real", "link");
  std::filesystem::create_directory_symlink("to_come", "dangling");
  acc::Accelerator accelerator({.log_with = {"all"}, .project_dir = name});
  Net net;
  auto model = accelerator.prepare(net);

  CHECK(accelerator.save_state(name) == name);
  accelerator.load_state(name);
  accelerator.save_model(model, name);
  accelerator.save_model(model, name + "/one.safetensors");
  accelerator.save_model(model, "here.safetensors");
  accelerator.load_model(model, name);
  accelerator.load_model(model, "here.safetensors");
  accelerator.save(acc::PtDict{{"epoch", 3}}, name + "/epoch.pt");
  accelerator.save(acc::PtDict{{"epoch", 3}}, "epoch.pt");
  CHECK(acc::read_pt_file("epoch.pt").find("epoch") != nullptr);
  accelerator.init_trackers("run");
  accelerator.log({{"loss", 1.0}}, 1);
  CHECK(std::filesystem::file_size(name + "/run.jsonl") > 0);
  CHECK(std::filesystem::is_directory(name + "/run"));
  accelerator.profile({.output_trace_dir = name}, [] { torch::ones(3).sum(); });
  CHECK(std::filesystem::file_size(name + "/profile_0.json") > 0);
}

TEST_CASE("accelerator: the folder of a file must exist, and is named when it does not", "[runtime]") {
  const std::filesystem::path folder = std::filesystem::canonical(acc::test::temporary_folder());
  const acc::test::WorkingFolder inside(folder);
  acc::Accelerator accelerator;
  auto model = accelerator.prepare(Net());
  CHECK(acc::test::error_of([&] { accelerator.save(acc::PtValue(3), "no/x.pt"); }) ==
        "no/x.pt: cannot be written: there is no folder " + (folder / "no").string() +
            " (create the folder first)");
  CHECK(acc::test::error_of([&] { accelerator.save_model(model, "no/x.safetensors"); }) ==
        "no/x.safetensors: cannot be written: there is no folder " + (folder / "no").string() +
            " (create the folder first)");
  CHECK_FALSE(std::filesystem::exists("no"));
}

}  // namespace accelerator_test
