// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/accelerator/profile.hpp"

#include <ATen/ops/ones.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "support/catch.hpp"
#include "support/torch_tensor.hpp"

namespace profile_test {

namespace {

bool has_event(const nlohmann::json& trace, const std::string& name) {
  for (const auto& event : trace.at("traceEvents")) {
    if (event.value("name", "") == name) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("profile: the trace has the operations of the function, and no others", "[runtime]") {
  const auto file = acc::test::temporary_folder() / "below" / "profile_0.json";
  const at::Tensor x = at::ones({4, 4});
  x.sin();
  acc::profile_to(file, {.record_shapes = true}, c10::DeviceType::CPU, [&] { x.mm(x); });
  x.cos();
  const auto trace = nlohmann::json::parse(acc::read_file(file.string()));
  CHECK(has_event(trace, "aten::mm"));
  CHECK_FALSE(has_event(trace, "aten::sin"));
  CHECK_FALSE(has_event(trace, "aten::cos"));
}

TEST_CASE("profile: an exception passes through, and the next profile works", "[runtime]") {
  const auto file = acc::test::temporary_folder() / "profile_0.json";
  const auto fail = [] { throw std::runtime_error("function"); };
  CHECK_THROWS_WITH(acc::profile_to(file, {}, c10::DeviceType::CPU, fail), "function");
  CHECK_FALSE(std::filesystem::exists(file));
  acc::profile_to(file, {}, c10::DeviceType::CPU, [] { at::ones({2}); });
  CHECK(std::filesystem::exists(file));
  acc::profile_to({}, {}, c10::DeviceType::CPU, [] {});
}

TEST_CASE("profile: a file that cannot be written is reported before anything runs", "[runtime]") {
  bool ran = false;
  CHECK_THROWS_AS(
      acc::profile_to("/proc/none/profile_0.json", {}, c10::DeviceType::CPU, [&ran] { ran = true; }),
      acc::Error);
  CHECK_FALSE(ran);
}

}  // namespace profile_test
