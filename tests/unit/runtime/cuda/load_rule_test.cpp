// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/cuda/load_rule.hpp"

#include "support/catch.hpp"

using acc::Environment;
using acc::may_load_cuda;

TEST_CASE("load_rule: CUDA is loaded where either sign of a driver is there", "[runtime]") {
  CHECK(may_load_cuda({}, {.kernel_module = true}));
  CHECK(may_load_cuda({}, {.library = true}));
  CHECK_FALSE(may_load_cuda({}, {}));
}

TEST_CASE("load_rule: ACCELERATE_USE_CPU keeps CUDA out when it says yes", "[runtime]") {
  for (const char* word : {"1", "true", "True", "yes", "on"})
    CHECK_FALSE(may_load_cuda({{"ACCELERATE_USE_CPU", word}}, {.kernel_module = true}));
  for (const char* word : {"0", "False", "no", ""})
    CHECK(may_load_cuda({{"ACCELERATE_USE_CPU", word}}, {.kernel_module = true}));
}

TEST_CASE("load_rule: ACC_LOAD_CUDA keeps CUDA out when it says no", "[runtime]") {
  for (const char* word : {"0", "false", "no"})
    CHECK_FALSE(may_load_cuda({{"ACC_LOAD_CUDA", word}}, {.kernel_module = true}));
  for (const char* word : {"1", "yes", ""})
    CHECK(may_load_cuda({{"ACC_LOAD_CUDA", word}}, {.kernel_module = true}));
  CHECK_FALSE(may_load_cuda({{"ACC_LOAD_CUDA", "1"}}, {}));
}

TEST_CASE("load_rule: no visible device keeps CUDA out", "[runtime]") {
  for (const char* list : {"", " ", "-1", "-1,0"})
    CHECK_FALSE(may_load_cuda({{"CUDA_VISIBLE_DEVICES", list}}, {.library = true}));
  for (const char* list : {"0", "2,3", "GPU-1234"})
    CHECK(may_load_cuda({{"CUDA_VISIBLE_DEVICES", list}}, {.library = true}));
}
