// SPDX-License-Identifier: Apache-2.0
#include "job.hpp"

#include "acc/base/environment.hpp"

namespace acc::test {
namespace {

CudaBackend cuda_backend() {
  return devices_are_shared() ? CudaBackend::gloo : CudaBackend::nccl;
}

}  // namespace

bool devices_are_shared() {
  return Environment::of_process().contains("ACC_TEST_SHARE_GPU");
}

AcceleratorOptions job_options() {
  return {.process_group = {.cuda_backend = cuda_backend()}};
}

const PartialState& job() {
  static const PartialState state(kDefaultTimeout, /*cpu=*/false, cuda_backend());
  return state;
}

std::shared_ptr<ProcessGroup> group() {
  static const auto group = job().process_group()
                                ? job().process_group()
                                : std::make_shared<ProcessGroup>(WorkerEnv{.world_size = 1, .master_port = 0},
                                                                 kDefaultTimeout, job().device());
  return group;
}

std::filesystem::path shared_folder() {
  // The launcher's run id is the same on all processes and different for each job.
  static const std::filesystem::path folder = [] {
    auto path = std::filesystem::temp_directory_path() /
                ("acc-gpu-" + Environment::of_process().get("TORCHELASTIC_RUN_ID", "alone"));
    job().on_main_process([&] {
      std::filesystem::remove_all(path);
      std::filesystem::create_directories(path);
    });
    job().wait_for_everyone();
    return path;
  }();
  return folder;
}

NetImpl::NetImpl()
    : first(register_module("first", torch::nn::Linear(8, 16))),
      second(register_module("second", torch::nn::Linear(16, 1))) {}

at::Tensor NetImpl::forward(const at::Tensor& x) {
  return second->forward(first->forward(x).tanh());
}

}  // namespace acc::test
