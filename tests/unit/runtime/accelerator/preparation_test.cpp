// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/accelerator/preparation.hpp"

#include <torch/torch.h>

#include <string>

#include "acc/runtime/accelerator/accelerator.hpp"
#include "acc/runtime/data/tensor_batches.hpp"
#include "support/catch.hpp"
#include "support/linear_net.hpp"

namespace preparation_test {

using acc::test::batches;
using acc::test::Net;
using acc::test::rate_of;

TEST_CASE("preparation: prepared objects are returned unchanged", "[runtime]") {
  acc::Accelerator accelerator;
  Net net;
  auto [model, optimizer, loader] =
      accelerator.prepare(net, torch::optim::SGD(net->parameters(), 1.0), batches(4, 2));
  auto scheduler = accelerator.prepare(acc::Scheduler(optimizer.native(), acc::exponential_lr(0.5)));
  auto [again, optimizer_again, loader_again, scheduler_again] =
      accelerator.prepare(model, optimizer, loader, scheduler);
  CHECK(again.module() == model.module());
  CHECK(optimizer_again == optimizer);
  CHECK(&loader_again.plan() == &loader.plan());
  CHECK(scheduler_again.native() == scheduler.native());
  CHECK(accelerator.prepared().models.size() == 1);
  CHECK(accelerator.prepared().optimizers.size() == 1);
  CHECK(accelerator.prepared().loaders.size() == 1);
  CHECK(accelerator.prepared().schedulers.size() == 1);
}

TEST_CASE("preparation: prepared objects are listed in order, with their state", "[runtime]") {
  acc::Accelerator accelerator;
  Net first;
  Net second;
  auto [a, b] = accelerator.prepare(first, second);
  auto optimizer = accelerator.prepare(torch::optim::SGD(first->parameters(), 1.0));
  auto scheduler = accelerator.prepare(acc::Scheduler(optimizer.native(), acc::exponential_lr(0.5)));
  const acc::Prepared& prepared = accelerator.prepared();
  CHECK(prepared.models.at(0).module == first.ptr());
  CHECK(prepared.models.at(1).module == second.ptr());
  CHECK(prepared.optimizers.at(0) == optimizer);
  CHECK(prepared.gradients->step() == 0);
  CHECK(prepared.scaler == nullptr);
  const std::string before = prepared.schedulers.at(0).state();
  scheduler.step();
  CHECK(rate_of(optimizer.native()) == 0.5);
  prepared.schedulers.at(0).load_state(before);
  CHECK(rate_of(optimizer.native()) == 1.0);
}

TEST_CASE("preparation: preparing a loader does not change the original", "[runtime]") {
  acc::Accelerator accelerator({.even_batches = false});
  auto loader = batches(4, 2);
  auto prepared = accelerator.prepare(loader);
  prepared.set_epoch(3);
  CHECK(&prepared.plan() != &loader.plan());
  CHECK_FALSE(prepared.plan().shard().even_batches);
  CHECK(loader.plan().shard().even_batches);
}

}  // namespace preparation_test
