// SPDX-License-Identifier: Apache-2.0
#include "acc/config/schema_rows.hpp"

namespace acc::launcher {
namespace {

constexpr std::string_view kMpi = "MPI";

}  // namespace

// clang-format off
std::vector<SettingSpec> mpi_rows() {
  return {
      {.name = "mpirun_config", .type = ValueType::section, .in_file = true, .since = "0.28.0", .otherwise = "{}",
       .help = "Start through mpirun."},
      {.name = "mpirun_hostfile", .in_file = true, .section = "mpirun_config", .since = "0.28.0", .flags = {accelerate("--mpirun_hostfile")},
       .group = kMpi, .help = "Start CPU workers through mpirun on the hosts of this file."},
  };
}
// clang-format on

}  // namespace acc::launcher
