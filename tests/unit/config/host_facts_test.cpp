// SPDX-License-Identifier: Apache-2.0
#include "acc/config/host_facts.hpp"

#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

TEST_CASE("host_facts: NUMA nodes come by number, with their CPUs", "[config]") {
  const acc::test::TemporaryFolder folder;
  folder.write("node10/cpulist", "4-7\n");
  folder.write("node2/cpulist", "0-3\n");
  folder.write("online", "2,10\n");
  CHECK(acc::launcher::numa_nodes(folder.path()) ==
        std::vector<acc::launcher::NumaNode>{{2, "0-3"}, {10, "4-7"}});
  CHECK(acc::launcher::numa_nodes(folder.path() / "none").empty());
}

TEST_CASE("host_facts: schedulers show themselves by their variables", "[config]") {
  CHECK(acc::launcher::scheduler_name({}) == "none found");
  CHECK(acc::launcher::scheduler_name({{"SLURM_JOB_ID", "17"}, {"KUBERNETES_SERVICE_HOST", "h"}}) ==
        "Slurm (job 17)");
  CHECK(acc::launcher::scheduler_name({{"KUBERNETES_SERVICE_HOST", "h"}}) == "Kubernetes");
}
