// SPDX-License-Identifier: Apache-2.0
#include "acc/remote/host_environment.hpp"

#include "acc/base/error.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"

namespace host_environment_test {

using acc::Environment;
using acc::launcher::carried_environment;
using acc::launcher::environment_on_host;
using acc::test::error_of;

TEST_CASE("host_environment: the variables of the training are carried, those of the client are not",
          "[remote]") {
  const Environment client = {{"NCCL_DEBUG", "INFO"},
                              {"HF_HOME", "/hf"},
                              {"PYTHONPATH", "/p"},
                              {"TORCH_LOGS", "x"},
                              {"OMP_NUM_THREADS", "2"},
                              {"CUDA_VISIBLE_DEVICES", "0"},
                              {"ACC_LOG_LEVEL", "x"},
                              {"ACC_RSH", "ssh -v"},
                              {"TORCHELASTIC_RUN_ID", "7"},
                              {"PATH", "/bin"},
                              {"HOME", "/home/me"},
                              {"SSH_AUTH_SOCK", "/s"},
                              {"RANK", "1"},
                              {"SLURM_JOB_ID", "1"},
                              {"VIRTUAL_ENV", "/venv"},
                              {"MY_DATA", "/data"},
                              {"ACC_PROGRESS", "/dev/shm/page"}};
  CHECK(carried_environment(client, {"MY_DATA", "MORE=a=b", "HF_HOME=/other"}, "--export") ==
        Environment{{"NCCL_DEBUG", "INFO"},
                    {"HF_HOME", "/other"},
                    {"PYTHONPATH", "/p"},
                    {"TORCH_LOGS", "x"},
                    {"OMP_NUM_THREADS", "2"},
                    {"CUDA_VISIBLE_DEVICES", "0"},
                    {"ACC_LOG_LEVEL", "x"},
                    {"VIRTUAL_ENV", "/venv"},
                    {"MY_DATA", "/data"},
                    {"MORE", "a=b"}});
  CHECK(error_of([&] { carried_environment(client, {"UNKNOWN"}, "--export"); }) ==
        "--export: 'UNKNOWN' is not a variable that is set (NAME of one that is, or NAME=VALUE)");
  CHECK_THROWS_AS(carried_environment(client, {"=x"}, "--export"), acc::Error);
}

TEST_CASE("host_environment: the settings of PyTorch's CUDA allocator are carried", "[remote]") {
  const Environment client = {{"PYTORCH_ALLOC_CONF", "expandable_segments:True"},
                              {"PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:128"}};
  CHECK(carried_environment(client, {}, "--export") == client);
}

TEST_CASE("host_environment: an active virtual environment is active on the host", "[remote]") {
  const Environment there = environment_on_host({{"PATH", "/bin"}, {"HOME", "/root"}},
                                                {{"VIRTUAL_ENV", "/venv"}, {"NCCL_DEBUG", "INFO"}});
  CHECK(there ==
        Environment{
            {"PATH", "/venv/bin:/bin"}, {"HOME", "/root"}, {"VIRTUAL_ENV", "/venv"}, {"NCCL_DEBUG", "INFO"}});
}

TEST_CASE("host_environment: a host's own MASTER_PORT is not where the nodes meet", "[remote]") {
  CHECK(environment_on_host({{"MASTER_PORT", "29511"}}, {}) == Environment{});
  const Environment exported = {{"MASTER_PORT", "4711"}};
  CHECK(environment_on_host({{"MASTER_PORT", "29511"}}, exported) == exported);
}

}  // namespace host_environment_test
