// SPDX-License-Identifier: Apache-2.0
#include "acc/cli/environment_report.hpp"

#include <filesystem>

#include "acc/base/text.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

namespace environment_report_test {

using acc::launcher::environment_report;
using acc::launcher::EnvironmentFacts;
using acc::test::TemporaryFolder;

namespace {

bool has_line(const std::string& report, const std::string& line) {
  for (const std::string& each : acc::split(report, '\n')) {
    if (each == line) return true;
  }
  return false;
}

std::filesystem::path write_program(const TemporaryFolder& folder, const std::string& name) {
  const auto file = folder.write(name, "");
  std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  return file;
}

}  // namespace

TEST_CASE("environment_report: the version of acc comes first, then machine and devices", "[cli]") {
  EnvironmentFacts facts;
  facts.version = "1.2.3";
  facts.program = "/opt/acc";
  facts.machine.driver_version = "580.1";
  facts.numa = {{1, "4-7"}};
  facts.scheduler = "Slurm (job 1)";
  facts.packages = {{"nvidia_nccl_cu13", "2.29"}, {"torch", "2.11.0"}};
  facts.compiler = "GNU 12";
  facts.machine.memory_bytes = 16ULL << 30U;
  facts.machine.allowed_cpus = 2;
  facts.machine.online_cpus = 8;
  facts.machine.gpus = {{.index = 0, .name = "H200", .memory_bytes = 1ULL << 30U}};
  const std::string report = environment_report(facts);
  CHECK(report.starts_with("- `acc` version: 1.2.3\n- Platform: Linux-"));
  CHECK(has_line(report, "- `acc` location: /opt/acc"));
  CHECK(has_line(report, "- Python: Not found"));
  CHECK(has_line(report, "- System RAM: 16.00 GB"));
  CHECK(has_line(report, "- CPUs: 2 allowed of 8"));
  CHECK(has_line(report, "- GPU 0 type: H200 (1.00 GB)"));
  CHECK(has_line(report, "- NVIDIA driver: 580.1"));
  CHECK(has_line(report, "- NUMA node 1: CPUs 4-7"));
  CHECK(has_line(report, "- Scheduler: Slurm (job 1)"));
  CHECK(has_line(report, "- PyTorch version: 2.11.0"));
  CHECK(has_line(report, "- NCCL version: 2.29"));
  CHECK(has_line(report, "- Numpy version: Not found"));
  CHECK(has_line(report, "- LibTorch: Not found"));
  CHECK(has_line(report, "- Compiler of `acc`: GNU 12"));
  CHECK(has_line(report, "- `acc` default config:"));
  CHECK(has_line(report, "\tNot found"));
}

TEST_CASE("environment_report: the config is shown with its defaults and without empty sections", "[cli]") {
  EnvironmentFacts facts;
  facts.config =
      acc::launcher::parse_config("{distributed_type: NO, gpu_ids: 0, fsdp_config: {a: 1}}", "job.yaml");
  facts.config_is_default = false;
  const std::string report = environment_report(facts);
  CHECK(has_line(report, "- `acc` passed config (job.yaml):"));
  CHECK(has_line(report, "\t- distributed_type: NO"));
  CHECK(has_line(report, "\t- gpu_ids: 0"));
  CHECK(has_line(report, "\t- num_machines: 1"));
  CHECK(has_line(report, "\t- fsdp_config: {\"a\":1}"));
  CHECK(report.find("megatron_lm_config") == std::string::npos);
}

TEST_CASE("environment_report: Python's version follows from its path", "[cli]") {
  const TemporaryFolder folder;
  const auto versioned = write_program(folder, "bin/python3.99");
  std::filesystem::create_symlink(versioned, folder.path() / "bin/python3");
  CHECK(acc::launcher::python_version(folder.path() / "bin/python3") == "3.99");
  folder.write("venv/pyvenv.cfg", "home = /usr\nversion = 3.11.7\n");
  CHECK(acc::launcher::python_version(write_program(folder, "venv/bin/python")) == "3.11.7");

  EnvironmentFacts facts;
  facts.python = folder.path() / "bin/python3";
  const std::string report = environment_report(facts);
  CHECK(has_line(report, "- Python: " + facts.python.string()));
  CHECK(has_line(report, "- Python version: 3.99"));
}

}  // namespace environment_report_test
