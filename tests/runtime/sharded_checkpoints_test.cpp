// SPDX-License-Identifier: Apache-2.0
// Checkpoints of sharded models on several processes, and models that are made without memory.
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <filesystem>
#include <optional>

#include "acc/runtime/checkpoint/model_weights.hpp"
#include "acc/runtime/checkpoint/pt_file.hpp"
#include "acc/runtime/tensors/meta_device.hpp"
#include "runtime/sharded_stack.hpp"
#include "support/catch.hpp"
#include "support/torch_tensor.hpp"

namespace sharded_checkpoints_test {

using namespace sharded_stack;

TEST_CASE("sharded: a checkpoint of any stage continues to the bit, and another stage or DDP reads it",
          "[ranks]") {
  const int number = GENERATE(0, 2, 3);
  const bool in_shards = GENERATE(false, true);
  if (number == 0 && in_shards) return;
  const auto options_of = [&](int stage) {
    acc::AcceleratorOptions options = stage == 0 ? acc::AcceleratorOptions() : sharded(stage);
    if (in_shards && options.fsdp) options.fsdp->state_dict_type = acc::StateDictType::sharded;
    return options;
  };
  const auto folder = job_state().broadcast_object(acc::test::temporary_folder().string());
  const auto run = [&](int stage, bool saves, bool loads) {
    acc::Accelerator accelerator(options_of(stage));
    acc::set_seed(static_cast<std::uint64_t>(loads ? 50 : 7));
    Stack net;
    auto [model, optimizer] = accelerator.prepare(net, adamw(net->parameters()));
    if (loads) accelerator.load_state(folder);
    for (int step = loads ? 3 : 0; step < 6; ++step) {
      if (saves && step == 3) accelerator.save_state(folder);
      const at::Tensor x = batch_of(step);
      accelerator.backward(loss_of(model(x), x));
      optimizer.step();
      optimizer.zero_grad();
    }
    const acc::GatheredParameters whole = accelerator.gathered_parameters(model);
    return flat(*net).clone();
  };
  const at::Tensor expected = run(number, /*saves=*/true, /*loads=*/false);
  CHECK(run(number, false, true).equal(expected));
  for (const int other : {0, 2, 3}) {
    CAPTURE(number, other, in_shards);
    CHECK(run(other, false, true).allclose(expected, 1e-4, 1e-5));
  }
  if (rank() == 0 && in_shards) {
    CHECK(std::filesystem::exists(std::filesystem::path(folder) / "pytorch_model_fsdp_0/.metadata"));
    CHECK_FALSE(std::filesystem::exists(std::filesystem::path(folder) / "model.safetensors"));
  } else if (rank() == 0) {
    CHECK(std::filesystem::exists(std::filesystem::path(folder) / "model.safetensors"));
    const acc::PtValue state = acc::read_pt_file(std::filesystem::path(folder) / "optimizer.bin");
    // As Python's AdamW writes it: whole tensors, by the numbers of the parameters.
    const acc::PtValue* first = state.find("state")->find(std::int64_t{0});
    CHECK(first->find("exp_avg")->get_if<at::Tensor>()->sizes() == c10::IntArrayRef({kWords, kWidth}));
    CHECK(first->find("step")->number() == 3);
  }
  job_state().wait_for_everyone();
}

TEST_CASE("sharded: a full checkpoint continues a parameter without dimensions, too", "[ranks]") {
  struct Scaled : torch::nn::Module {
    Scaled()
        : fc(register_module("fc", torch::nn::Linear(3, 1))),
          scale(register_parameter("scale", at::full({}, 2.0))) {}
    at::Tensor forward(const at::Tensor& x) { return fc->forward(x) * scale; }
    torch::nn::Linear fc;
    at::Tensor scale;
  };
  const bool frees = GENERATE(false, true);
  const auto folder = job_state().broadcast_object(acc::test::temporary_folder().string());
  const auto run = [&](bool loads) {
    acc::Accelerator accelerator({.fsdp = acc::FsdpOptions{.reshard_after_forward = frees}});
    acc::set_seed(static_cast<std::uint64_t>(loads ? 50 : 7));
    const auto net = std::make_shared<Scaled>();
    auto [model, optimizer] = accelerator.prepare(net, torch::optim::AdamW(net->parameters(), 0.01));
    if (loads) accelerator.load_state(folder);
    for (int step = loads ? 2 : 0; step < 4; ++step) {
      if (!loads && step == 2) accelerator.save_state(folder);
      accelerator.backward(model(at::full({2, 3}, rank() + step + 1, here())).square().mean());
      optimizer.step();
      optimizer.zero_grad();
    }
    const acc::GatheredParameters whole = accelerator.gathered_parameters(model);
    return flat(*net).clone();
  };
  const at::Tensor expected = run(/*loads=*/false);
  CHECK(run(/*loads=*/true).equal(expected));
  job_state().wait_for_everyone();
}

TEST_CASE("sharded: saved in the background, and while gradients accumulate", "[ranks]") {
  acc::Accelerator accelerator(sharded(3, {.gradient_accumulation_steps = 2}));
  Stack net = seeded_stack();
  auto [model, optimizer] = accelerator.prepare(net, adamw(net->parameters()));
  const auto folder = job_state().broadcast_object(acc::test::temporary_folder().string());
  const at::Tensor before = accelerator.get_state_dict(model)["words.weight"];
  accelerator.save_state(folder, {.background = true});
  for (int step = 0; step < 2; ++step) {
    const auto batch = accelerator.accumulate(model);
    const at::Tensor x = batch_of(step);
    accelerator.backward(loss_of(model(x), x));
    if (step == 0)
      CHECK(caught_error([&] { accelerator.save_state(folder); })
                .problems()
                .front()
                .what.starts_with("gradients of"));
    optimizer.step();
    optimizer.zero_grad();
  }
  accelerator.wait_for_save();
  if (rank() == 0) CHECK(acc::read_weights(folder).at("words.weight").equal(before.cpu()));
  accelerator.load_model(model, folder);
  const at::Tensor loaded = accelerator.get_state_dict(model)["words.weight"];
  if (rank() == 0) CHECK(loaded.equal(before));
  job_state().wait_for_everyone();
}

TEST_CASE("sharded: a model on the meta device is filled from files or shards, each process its own",
          "[ranks]") {
  const bool in_shards = GENERATE(false, true);
  const auto folder = job_state().broadcast_object(acc::test::temporary_folder().string());
  acc::AcceleratorOptions options = sharded(3);
  options.fsdp->state_dict_type = acc::StateDictType::sharded;
  acc::Accelerator accelerator(options);
  Stack source = seeded_stack();
  if (in_shards) {
    acc::Accelerator saver(options);
    Stack saved = seeded_stack();
    saver.prepare(saved);
    saver.save_state(folder);
  } else if (rank() == 0) {
    acc::save_weights(*source, folder, 1 << 30);
  }
  job_state().wait_for_everyone();
  Stack net = seeded_stack();
  for (const at::Tensor& one : net->parameters()) {
    const at::Tensor without_memory = at::empty(one.sizes(), at::TensorOptions(at::kMeta));
    one.unsafeGetTensorImpl()->shallow_copy_from(without_memory.getIntrusivePtr());
  }
  auto [model, optimizer] = accelerator.prepare(net, adamw(net->parameters()));
  CHECK(caught_error([&] { (void)model(batch_of(0)); }).problems().front().what ==
        "was made on the meta device and has no values");
  CHECK(caught_error([&] { accelerator.save_state(folder + "/none"); })
            .problems()
            .front()
            .what.find("has no values") != std::string::npos);
  accelerator.load_model(model, folder);
  const at::NoGradGuard no_grad;
  source->to(job_state().device());
  CHECK(model(batch_of(0)).equal(source->forward(batch_of(0))));
}

TEST_CASE("sharded: processes but the first may make the model without memory", "[ranks]") {
  const int number = GENERATE(2, 3);
  acc::Accelerator accelerator(sharded(number));
  Stack source = whole_stack();
  Stack net = [] {
    std::optional<acc::MetaDevice> without_memory;
    if (rank() != 0) without_memory.emplace();
    return seeded_stack();
  }();
  CHECK(net->words->weight.is_meta() == (rank() != 0));
  auto [model, optimizer] = accelerator.prepare(net, adamw(net->parameters()));
  const at::Tensor x = batch_of(0);
  const at::Tensor loss = loss_of(model(x), x);
  CHECK(loss.equal(loss_of(source->forward(x), x)));
  accelerator.backward(loss);
  optimizer.step();
}

}  // namespace sharded_checkpoints_test
