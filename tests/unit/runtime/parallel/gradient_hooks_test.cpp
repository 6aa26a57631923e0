// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/parallel/gradient_hooks.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>

#include <string>
#include <vector>

#include "support/catch.hpp"

namespace gradient_hooks_test {

TEST_CASE("gradient_sink: gradients pass unchanged, and on_backward is called", "[runtime]") {
  const at::Tensor leaf = at::ones({3}).requires_grad_();
  int calls = 0;
  const auto outputs = acc::detail::pass_through_sink({leaf * 2, leaf * 3}, [&] { ++calls; });
  REQUIRE(outputs.size() == 2);
  CHECK(outputs[1].equal(at::ones({3}) * 3));
  CHECK(calls == 0);
  (outputs[0] + outputs[1]).sum().backward();
  CHECK(calls == 1);
  CHECK(leaf.grad().equal(at::ones({3}) * 5));
}

TEST_CASE("gradient_sink: an output that the loss does not use passes on no zeros", "[runtime]") {
  const at::Tensor used = at::ones({3}).requires_grad_();
  const at::Tensor unused = at::ones({3}).requires_grad_();
  const auto outputs = acc::detail::pass_through_sink({used * 2, unused * 3}, [] {});
  outputs[0].sum().backward();
  CHECK(used.grad().defined());
  CHECK_FALSE(unused.grad().defined());
}

TEST_CASE("gradient_hooks: one is called before a gradient changes, one afterwards, until they end",
          "[runtime]") {
  const at::Tensor parameter = at::ones({1}).requires_grad_();
  const auto backward = [&] { (parameter * 2).sum().backward(); };
  std::vector<std::string> calls;
  const auto call = [&](const std::string& name) {
    calls.push_back(name + (parameter.grad().defined() ? " a gradient" : " none"));
  };
  {
    acc::detail::GradientHooks hooks;
    hooks.add(parameter, [&] { call("after:"); }, [&] { call("before:"); });
    backward();
  }
  backward();
  CHECK(calls == std::vector<std::string>{"before: none", "after: a gradient"});
}

TEST_CASE("gradient_watch: gradients that are not averaged are told once, unless they are meant to stay",
          "[runtime]") {
  const at::Tensor parameter = at::ones({1}).requires_grad_();
  bool averages = true;
  std::vector<bool> second_step;
  acc::detail::GradientWatch watch(
      {parameter}, [&] { return averages; },
      [&](std::size_t, bool is_second) { second_step.push_back(is_second); });
  const auto backward = [&] { (parameter * 2).sum().backward(); };
  watch.expect_averaged();
  backward();
  backward();
  CHECK(second_step == std::vector{false, true});
  CHECK(watch.expected(0));
  averages = false;
  backward();
  CHECK_FALSE(watch.expected(0));
  CHECK(watch.take_unexpected() == std::vector<std::size_t>{0});
  CHECK(watch.take_unexpected().empty());
  watch.expect_local();
  backward();
  CHECK(watch.expected(0));
  CHECK(watch.take_unexpected().empty());
}

}  // namespace gradient_hooks_test
