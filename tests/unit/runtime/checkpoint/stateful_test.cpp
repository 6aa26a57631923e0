// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/stateful.hpp"

#include "acc/runtime/checkpoint/checkpoint_registry.hpp"
#include "support/catch.hpp"
#include "support/torch_tensor.hpp"

namespace {

struct WithJson {
  std::string text = R"({"a":1})";
  std::string state() const { return text; }
  void load_state(std::string_view given) { text = given; }
};

struct WithTensor {
  at::Tensor tensor;
  acc::PtValue state() const { return tensor; }
  void load_state(const acc::PtValue& value) { tensor = *value.get_if<at::Tensor>(); }
};

}  // namespace

TEST_CASE("stateful: a state of JSON is plain data in the checkpoint", "[runtime]") {
  WithJson object;
  const acc::Stateful stateful = acc::stateful(object);
  CHECK(stateful.state().find("a")->number() == 1);
  stateful.load_state(acc::PtDict{{"b", 2}});
  CHECK(object.text == R"({"b":2})");
}

TEST_CASE("stateful: a state can hold tensors", "[runtime]") {
  WithTensor object{acc::test::numbers({1, 2}, {2}, at::kFloat)};
  const acc::Stateful stateful = acc::stateful(object);
  CHECK(stateful.state().get_if<at::Tensor>()->numel() == 2);
  stateful.load_state(acc::test::numbers({3}, {1}, at::kFloat));
  CHECK(object.tensor.numel() == 1);
}

TEST_CASE("stateful: hooks are kept in order, and a removed one is gone", "[runtime]") {
  acc::Hooks<int> hooks;
  hooks.add(1);
  acc::HookHandle second = hooks.add(2);
  hooks.add(3);
  CHECK(hooks.all() == std::vector<int>{1, 2, 3});
  second.remove();
  second.remove();
  CHECK(hooks.all() == std::vector<int>{1, 3});
}
