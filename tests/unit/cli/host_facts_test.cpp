// SPDX-License-Identifier: Apache-2.0
#include "acc/cli/host_facts.hpp"

#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

namespace host_facts_test {

using acc::test::TemporaryFolder;

TEST_CASE("host_facts: NUMA nodes come by number, with their CPUs", "[cli]") {
  const acc::test::TemporaryFolder folder;
  folder.write("node10/cpulist", "4-7\n");
  folder.write("node2/cpulist", "0-3\n");
  folder.write("online", "2,10\n");
  CHECK(acc::launcher::numa_nodes(folder.path()) ==
        std::vector<acc::launcher::NumaNode>{{2, "0-3"}, {10, "4-7"}});
  CHECK(acc::launcher::numa_nodes(folder.path() / "none").empty());
}

TEST_CASE("host_facts: schedulers are detected by their variables", "[cli]") {
  CHECK(acc::launcher::scheduler_name({}) == "none found");
  CHECK(acc::launcher::scheduler_name({{"SLURM_JOB_ID", "17"}, {"KUBERNETES_SERVICE_HOST", "h"}}) ==
        "Slurm (job 17)");
  CHECK(acc::launcher::scheduler_name({{"KUBERNETES_SERVICE_HOST", "h"}}) == "Kubernetes");
}

TEST_CASE("installed_packages: versions are read from the names of folders", "[cli]") {
  const TemporaryFolder folder;
  folder.write("venv/bin/python", "");
  folder.write("venv/pyvenv.cfg", "");
  folder.write("venv/lib/python3.11/site-packages/torch-2.11.0+cu130.dist-info/METADATA", "");
  folder.write("venv/lib/python3.11/site-packages/nvidia_nccl_cu13-2.29.7.dist-info/METADATA", "");
  folder.write("venv/lib/python3.11/site-packages/torch/x", "");
  const auto packages = acc::launcher::site_packages(folder.path() / "venv/bin/python");
  REQUIRE(packages.size() == 1);
  CHECK(acc::launcher::installed_packages(packages) ==
        std::map<std::string, std::string>{{"nvidia_nccl_cu13", "2.29.7"}, {"torch", "2.11.0+cu130"}});
  CHECK(acc::launcher::installed_packages({folder.path() / "none"}).empty());
}

TEST_CASE("installed_packages: the version of LibTorch is in a header", "[cli]") {
  const TemporaryFolder folder;
  CHECK(acc::launcher::libtorch_version(folder.path()).empty());
  folder.write(
      "include/torch/headeronly/version.h",
      "#define TORCH_VERSION_MAJOR 2\n#define TORCH_VERSION_MINOR 11\n#define TORCH_VERSION_PATCH 0\n");
  CHECK(acc::launcher::libtorch_version(folder.path()) == "2.11.0");
}

}  // namespace host_facts_test
