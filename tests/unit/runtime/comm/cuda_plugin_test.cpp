// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/comm/cuda_plugin.hpp"

#include "support/catch.hpp"

namespace cuda_plugin_test {

namespace {

std::string why_not(const std::string& file) {
  return std::get<std::string>(acc::detail::load_cuda_plugin(ACC_FAKE_CUDA "/" + file));
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("cuda_plugin: the error for a missing plug-in says how to get it", "[runtime]") {
  CHECK(says(why_not("nothing.so"), "nothing.so is not there); build it with -DACC_CUDA=ON"));
}

TEST_CASE("cuda_plugin: another library is refused", "[runtime]") {
  CHECK(says(why_not("libcuda.so.1"), "libcuda.so.1 is not a plug-in of acc"));
}

TEST_CASE("cuda_plugin: a plug-in for another LibTorch is refused", "[runtime]") {
  CHECK(says(why_not("libother_torch.so"), "was built for LibTorch 1.0.0, libacc.so for "));
}

TEST_CASE("cuda_plugin: it counts devices, and reports why there are none", "[runtime]") {
  static constexpr acc::detail::CudaTable two{.count_devices = [](std::string&) { return 2; }};
  CHECK(acc::detail::find_cuda_devices(&two).count == 2);
  CHECK(acc::detail::find_cuda_devices(&two).why_none.empty());

  static constexpr acc::detail::CudaTable none{.count_devices = [](std::string& why) {
    why = "No CUDA GPUs are available\nsecond line";
    return 0;
  }};
  CHECK(acc::detail::find_cuda_devices(&none).count == 0);
  CHECK(acc::detail::find_cuda_devices(&none).why_none == "No CUDA GPUs are available");
}

TEST_CASE("cuda_plugin: without a plug-in there are no devices, for the same reason", "[runtime]") {
  const acc::detail::CudaPlugin missing = std::string("the reason");
  CHECK(acc::detail::find_cuda_devices(missing).count == 0);
  CHECK(acc::detail::find_cuda_devices(missing).why_none == "the reason");
}

}  // namespace cuda_plugin_test
