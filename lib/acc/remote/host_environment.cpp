// SPDX-License-Identifier: Apache-2.0
#include "acc/remote/host_environment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "acc/base/error.hpp"

namespace acc::launcher {
namespace {

constexpr std::array<std::string_view, 24> kCarriedPrefixes = {
    "ACC_",          "ACCELERATE_",  "CUDA_",    "DEEPSPEED_",
    "FI_",           "FSDP_",        "GLOO_",    "HF_",
    "KMP_",          "MEGATRON_LM_", "MKL_",     "MLFLOW_",
    "NCCL_",         "NVTE_",        "OMP_",     "PARALLELISM_CONFIG_",
    "PET_",          "PYTHON",       "PYTORCH_", "TORCH",
    "TRANSFORMERS_", "TRITON_",      "UCX_",     "WANDB_"};
constexpr std::array<std::string_view, 2> kCarriedNames = {"VIRTUAL_ENV", "CONDA_PREFIX"};
// They describe the client, or a worker that it is.
constexpr std::array<std::string_view, 9> kKept = {"ACC_MEMORY_FOLDER",
                                                   "ACC_MEMORY_SIZE",
                                                   "ACC_PROGRESS",
                                                   "ACC_RSH",
                                                   "TORCHELASTIC_RUN_ID",
                                                   "TORCHELASTIC_ERROR_FILE",
                                                   "TORCHELASTIC_RESTART_COUNT",
                                                   "TORCHELASTIC_MAX_RESTARTS",
                                                   "TORCHELASTIC_USE_AGENT_STORE"};

bool is_carried(std::string_view name) {
  if (std::ranges::find(kKept, name) != kKept.end()) return false;
  return std::ranges::find(kCarriedNames, name) != kCarriedNames.end() ||
         std::ranges::any_of(kCarriedPrefixes,
                             [&](std::string_view prefix) { return name.starts_with(prefix); });
}

}  // namespace

Environment carried_environment(const Environment& environment, const std::vector<std::string>& exported,
                                const std::string& where) {
  Environment carried;
  for (const auto& [name, value] : environment.variables()) {
    if (is_carried(name)) carried.set(name, value);
  }
  for (const std::string& entry : exported) {
    const std::size_t equals = entry.find('=');
    const std::string name = entry.substr(0, equals);
    const auto value = environment.find(name);
    if (name.empty() || (equals == std::string::npos && !value)) {
      throw Error({.kind = ErrorKind::usage,
                   .what = fmt::format("'{}' is not a variable that is set", entry),
                   .where = where,
                   .hint = "NAME of one that is, or NAME=VALUE"});
    }
    carried.set(name, equals == std::string::npos ? *value : entry.substr(equals + 1));
  }
  return carried;
}

Environment environment_on_host(Environment environment, const Environment& carried) {
  environment.erase("MASTER_PORT");  // the other hosts do not know what this one has by itself
  environment.overlay(carried);
  for (const std::string_view name : kCarriedNames) {
    const std::string folder = carried.get(name);
    if (folder.empty()) continue;
    environment.set(
        "PATH", fmt::format("{}/bin:{}", folder, environment.get("PATH", "/usr/local/bin:/usr/bin:/bin")));
    break;
  }
  return environment;
}

}  // namespace acc::launcher
