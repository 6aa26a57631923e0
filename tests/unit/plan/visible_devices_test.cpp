// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/visible_devices.hpp"

#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/inputs.hpp"

namespace visible_devices_test {

using acc::launcher::device_of_each_worker;
using acc::launcher::Dialect;
using acc::launcher::require_gpus;
using acc::launcher::select_devices;
using acc::launcher::selects_devices;
using acc::test::error_of;
using acc::test::inputs;

namespace {

constexpr const char* kMask = "CUDA_VISIBLE_DEVICES";

}  // namespace

TEST_CASE("visible devices: gpu_ids are the mask where none was inherited", "[plan]") {
  CHECK(select_devices("1,3", kMask, {}, "--gpu_ids") == "1,3");
}

TEST_CASE("visible devices: gpu_ids count within the inherited mask", "[plan]") {
  CHECK(select_devices("1,3", kMask, "4,5,6,7", "--gpu_ids") == "5,7");
  CHECK(select_devices("1, 0", kMask, "MIG-aa, MIG-bb", "--gpu_ids") == "MIG-bb,MIG-aa");
  CHECK(error_of([] { select_devices("1", kMask, "0,-1,1", "--gpu_ids"); }) != "no error");
  CHECK(select_devices("1", "ZE_AFFINITY_MASK", "0.0,0.1", "--gpu_ids") == "0.1");
}

TEST_CASE("visible devices: names among gpu_ids stay as they are", "[plan]") {
  CHECK(select_devices("GPU-cc,0", kMask, "4,5", "--gpu_ids") == "GPU-cc,4");
}

TEST_CASE("visible devices: a number beyond the inherited mask is an error that names both", "[plan]") {
  CHECK(error_of([] { select_devices("0,2", kMask, "4,5", "job.yaml:3"); }) ==
        "job.yaml:3: there is no device 2 in CUDA_VISIBLE_DEVICES='4,5', which acc inherited (numbers count "
        "within that list, from 0)");
  CHECK(error_of([] { select_devices("0", kMask, "", "--gpu_ids"); }) != "no error");
}

TEST_CASE("visible devices: a list of which CUDA would show a part only is refused", "[plan]") {
  const auto refusal = [](const std::string& mask, int gpus) {
    return error_of(
        [&] { require_gpus(mask, inputs({"train.py"}, Dialect::launch, gpus).machine, "--gpu_ids"); });
  };
  CHECK(refusal("0,5", 4) == "--gpu_ids: this machine has no GPU 5 (it has 4 GPUs, counted from 0)");
  CHECK(refusal("0,1,2,2", 4) ==
        "--gpu_ids: gpu_ids names GPU 2 twice, and CUDA shows none of such a list (name it once)");
  CHECK(refusal("none", 4) ==
        "--gpu_ids: 'none' in 'none' does not name a GPU (numbers from 0, or names that begin with GPU- or "
        "MIG-, separated by commas)");
  for (const char* mask : {"7", "0,,1", "-1", "1x", "GPU-9", "GPU-1,0", ",0"}) {
    CAPTURE(mask);
    CHECK(refusal(mask, 4) != "no error");
  }
  for (const char* mask : {"3", "0, 2", "1,", "GPU-1,GPU-3", "MIG-aa,MIG-bb"}) {
    CAPTURE(mask);
    CHECK(refusal(mask, 4) == "no error");
  }
  CHECK(refusal("7", 0) == "no error");
}

TEST_CASE("visible devices: `all` in any case selects none", "[plan]") {
  for (const char* ids : {"all", "ALL", " All", ""}) CHECK_FALSE(selects_devices(ids));
  CHECK(selects_devices("0"));
}

TEST_CASE("visible devices: each worker gets one, in the mask's order", "[plan]") {
  using Devices = std::vector<std::string>;
  CHECK(device_of_each_worker("3, GPU-aa,5", "CUDA_VISIBLE_DEVICES", {}, 2, "x") == Devices{"3", "GPU-aa"});
  CHECK(device_of_each_worker("MIG-aa,MIG-bb", "CUDA_VISIBLE_DEVICES", 1, 2, "x") ==
        Devices{"MIG-aa", "MIG-bb"});
  CHECK(device_of_each_worker({}, "CUDA_VISIBLE_DEVICES", {}, 2, "x") == Devices{"0", "1"});
  CHECK(device_of_each_worker({}, "CUDA_VISIBLE_DEVICES", 2, 2, "x") == Devices{"0", "1"});
}

TEST_CASE("visible devices: more workers than devices is refused", "[plan]") {
  CHECK(error_of([] { device_of_each_worker("0", "CUDA_VISIBLE_DEVICES", {}, 2, "--isolate-gpus"); }) ==
        "--isolate-gpus: 2 workers, but CUDA_VISIBLE_DEVICES='0' names fewer devices");
  CHECK(error_of([] { device_of_each_worker("0,0", "CUDA_VISIBLE_DEVICES", 2, 2, "--isolate-gpus"); }) ==
        "--isolate-gpus: 2 workers, but CUDA_VISIBLE_DEVICES='0,0' names fewer devices");
  // torchrun's --virtual-local-rank hands out what is there.
  CHECK(device_of_each_worker("0,0", "CUDA_VISIBLE_DEVICES", {}, 2, "x") ==
        std::vector<std::string>{"0", "0"});
  CHECK(error_of([] { device_of_each_worker({}, "CUDA_VISIBLE_DEVICES", 1, 2, "--isolate-gpus"); }) ==
        "--isolate-gpus: 2 workers, but this machine has 1 GPU");
}

}  // namespace visible_devices_test
